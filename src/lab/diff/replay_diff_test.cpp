// Wrong kernels on one side: the comparison names the command, the row, the element and the bits.
#include "lab/diff/replay_diff.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/fp.h"
#include "lab/tiny_engine_test.h"
#include "kernels/attend/kv_element.h"

namespace stet {
namespace {

const Kernels& best() { return kernels(available_isas().back()); }
void flip(float& x) { x = float_of_bits(bits_of_float(x) ^ 1u); }

class ReplayDiff : public testing::Test {
 protected:
  explicit ReplayDiff(const char* kv = "f16") : engine_(diff_options(kv)) {
    options_.sides = parse_diff_sides("cpu,cpu");
    options_.prompt = engine_.tokenize("0123456789ab");
    options_.tokens = 4;
    options_.threads = 2;
  }
  static Options diff_options(const char* kv) {
    Options o = test::tiny_engine(1);
    o.kv = kv;
    return o;
  }

  uint32_t prompt_rows() const { return static_cast<uint32_t>(options_.prompt.size()); }
  std::optional<Difference> find(const Kernels& wrong,
                                 std::vector<ReplayMode> forms = {ReplayMode::eager, ReplayMode::recorded,
                                                                  ReplayMode::replayed}) {
    options_.sides[1].wrong_kernels = &wrong;
    options_.forms = std::move(forms);
    const auto found = diff_replays(engine_.parts(), options_).difference;
    if (found) text_ = found->text(options_.sides);
    return found;
  }

  Engine engine_;
  DiffOptions options_;
  std::string text_;
};

TEST_F(ReplayDiff, EqualSidesAreCounted) {
  options_.sides = parse_diff_sides("cpu:scalar,cpu");
  options_.rows = 3;
  const DiffReport r = diff_replays(engine_.parts(), options_);
  ASSERT_FALSE(r.difference) << r.difference->text(options_.sides);
  EXPECT_EQ(r.answer.size(), 4u);
  EXPECT_EQ(r.passes, 3u * (1 + 3 + 1));
  // Eager: an embedding, 12 commands a layer, a norm and the head; the last form has logits alone.
  EXPECT_GT(r.commands, 5u * (2 * 12 + 3));
  EXPECT_GT(r.values, 100000u);
  // Three forms; two layers, two heads, keys and values of 32; the answer's three rows twice.
  EXPECT_EQ(r.cache_values, 3u * (prompt_rows() + 6) * 2 * 2 * 2 * 32);
}

TEST_F(ReplayDiff, ALongPromptRunsInSeveralPasses) {
  options_.prompt.assign(300, 7);
  options_.tokens = 2;
  const DiffReport r = diff_replays(engine_.parts(), options_);
  EXPECT_FALSE(r.difference);
  EXPECT_EQ(r.passes, 3u * (3 + 1));
}

const uint8_t* wrong_matrix = nullptr;
uint32_t wrong_rows = 0;  // 0: passes of any number
void wrong_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  best().matvec(w, tile, x, out);
  if (w.data == wrong_matrix && tile == 2 && (wrong_rows == 0 || x.rows == wrong_rows))
    flip(out[(x.rows - 1) * kTileRows + 5]);
}

TEST_F(ReplayDiff, AWrongProductIsNamed) {
  Kernels wrong = best();
  wrong.matvec = wrong_matvec;
  wrong_matrix = engine_.parts().pack->matrix("blk.1.attn_k.weight")->data;
  wrong_rows = 0;
  const auto d = find(wrong);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->form, ReplayMode::eager);
  EXPECT_EQ(d->pass, "prompt pass");
  EXPECT_EQ(d->command, "blk.1.attn_k");
  EXPECT_EQ(d->tensor, "k");
  EXPECT_EQ(d->row, prompt_rows() - 1);
  EXPECT_EQ(d->position, prompt_rows() - 1);
  EXPECT_EQ(d->index, 2 * kTileRows + 5);
  EXPECT_EQ(d->bits[0] ^ d->bits[1], 1u);
  EXPECT_EQ(d->note, "");
  EXPECT_NE(text_.find("command blk.1.attn_k, buffer k, row 11 (position 11), element 37: 0x"), std::string::npos)
      << text_;
}

TEST_F(ReplayDiff, OneThatIsWrongAtOneWidthIsNamedInItsPass) {
  Kernels wrong = best();
  wrong.matvec = wrong_matvec;
  wrong_matrix = engine_.parts().pack->matrix("blk.0.ffn_up.weight")->data;
  wrong_rows = 1;
  auto d = find(wrong);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->pass, "decode pass");
  EXPECT_EQ(d->command, "blk.0.ffn_up");
  EXPECT_EQ(d->position, prompt_rows());
  wrong_rows = 3;
  EXPECT_FALSE(find(wrong));
  options_.rows = 3;
  d = find(wrong);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->pass, "verify pass");
  EXPECT_EQ(d->row, 2u);
}

void wrong_store(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position, const float* key,
                 const float* value) {
  best().store_kv(layout, layer, head, position, key, value);
  if (position == 6 && head == 1) *value_address(layout, layer, head, position, 3) ^= 1;
}

TEST_F(ReplayDiff, AWrongRowOfTheCacheIsNamed) {
  Kernels wrong = best();
  wrong.store_kv = wrong_store;
  for (const ReplayMode form : {ReplayMode::eager, ReplayMode::recorded, ReplayMode::replayed}) {
    const auto d = find(wrong, {form});
    ASSERT_TRUE(d) << form_name(form);
    EXPECT_EQ(d->command, form == ReplayMode::replayed ? "" : "blk.0.rope_store");
    EXPECT_EQ(d->tensor, "values");
    EXPECT_EQ(d->layer, 0u);
    EXPECT_EQ(d->head, 1u);
    EXPECT_EQ(d->position, 6u);
    EXPECT_EQ(d->index, 3u);
    EXPECT_EQ(d->bits[0] ^ d->bits[1], 1u);
  }
}

void wrong_attend(const AttendRun& run, AttendPart* parts) {
  best().attend(run, parts);
  if (run.position == 4 && run.kv_head == 0) flip(parts[0].l);
}

TEST_F(ReplayDiff, AWrongAttentionIsNamed) {
  Kernels wrong = best();
  wrong.attend = wrong_attend;
  const auto d = find(wrong);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->command, "blk.0.attend");
  EXPECT_EQ(d->row, 4u);
}

void wrong_swiglu(const float* gate, const float* up, uint32_t n, float* y) {
  best().swiglu(gate, up, n, y);
  if (n == kTileRows) flip(y[0]);
}

TEST_F(ReplayDiff, WhatIsWrongOnlyWhereItIsFusedIsFoundThere) {
  Kernels wrong = best();
  wrong.swiglu = wrong_swiglu;
  const auto d = find(wrong);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->form, ReplayMode::recorded);
  EXPECT_EQ(d->pass, "decode pass");
  EXPECT_EQ(d->command, "blk.0.swiglu");
  const auto whole = find(wrong, {ReplayMode::replayed});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->form, ReplayMode::replayed);
}

int calls = 0;
void forgetful_rmsnorm(const float* x, const float* w, float eps, uint32_t k, float* y) {
  best().rmsnorm(x, w, eps, k, y);
  if (++calls == 1) flip(y[0]);
}

// The first side is run again to show its bits.
TEST_F(ReplayDiff, ASideThatDoesNotRepeatItselfIsSaidToDoSo) {
  Kernels wrong = best();
  wrong.rmsnorm = forgetful_rmsnorm;
  options_.threads = 1;
  options_.sides[0].wrong_kernels = &wrong;
  options_.prompt.assign(1, 3);
  options_.forms = {ReplayMode::eager};
  // Warming runs kernels too.
  options_.progress = [](std::string_view, uint32_t done, uint32_t) { calls = done == 0 ? 0 : 1; };
  const auto found = diff_replays(engine_.parts(), options_).difference;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->command, "blk.0.attn_norm");
  EXPECT_NE(found->note.find("does not repeat itself"), std::string::npos);
}

class ReplayDiffQ8 : public ReplayDiff {
 protected:
  ReplayDiffQ8() : ReplayDiff("q8") {}
};

void wrong_scale(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position, const float* key,
                 const float* value) {
  best().store_kv(layout, layer, head, position, key, value);
  if (position == 2) flip(*key_scale(layout, layer, head, position, 0));
}

TEST_F(ReplayDiffQ8, AWrongScaleIsNamed) {
  Kernels wrong = best();
  EXPECT_FALSE(find(wrong));
  wrong.store_kv = wrong_scale;
  const auto d = find(wrong);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->tensor, "key scales");
  EXPECT_EQ(d->position, 2u);
}

TEST(DiffSides, AreReadAsTheyAreTyped) {
  const auto sides = parse_diff_sides("cpu:scalar,cuda");
  EXPECT_EQ(sides[0].text(), "cpu:scalar");
  EXPECT_TRUE(sides[1].cuda);
  EXPECT_EQ(parse_diff_sides("cpu,cpu")[1].isa, available_isas().back());
  for (const char* wrong : {"", "cpu", "cpu,", "cpu,cpu,cpu", "gpu,cpu", "cpu:sse,cpu", "cuda:avx2,cpu", "cpu,cpu:"})
    EXPECT_THROW(parse_diff_sides(wrong), Error) << wrong;
}

}  // namespace
}  // namespace stet
