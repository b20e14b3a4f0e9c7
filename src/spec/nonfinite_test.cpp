// A step whose logits are not finite commits nothing and names the command where it began; the next request works.
#include "spec/nonfinite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "spec/step.h"
#include "state/test_model.h"
#include "weights/patched_source_test.h"

namespace stet {
namespace {

constexpr const char* kModel = "synth:tiny-gqa:f32";
constexpr uint32_t kHidden = 96;
constexpr int32_t kBad = 7;  // the token that leaves the finite numbers; all others are sound

void set_column_0(test::PatchedSource& s, const std::string& tensor, float value) {
  const uint64_t k = s.find(tensor)->shape[0];
  const std::span<float> w = s.floats(tensor);
  for (uint64_t i = 0; i < w.size(); i += k) w[i] = value;
}

// Element 0 of the residual stream belongs to the bad token alone, through both halves of the first layer.
void reserve_element_0(test::PatchedSource& s) {
  set_column_0(s, "token_embd.weight", 0.0f);
  const std::span<float> embedding = s.floats("token_embd.weight");
  std::fill_n(embedding.begin() + kBad * kHidden, kHidden, 0.0f);
  embedding[kBad * kHidden] = 100.0f;
  const uint64_t k = s.find("blk.0.attn_output.weight")->shape[0];
  std::fill_n(s.floats("blk.0.attn_output.weight").begin(), k, 0.0f);
}

struct BadCase {
  const char* command;
  void (*patch)(test::PatchedSource&);
};

std::ostream& operator<<(std::ostream& out, const BadCase& c) { return out << c.command; }

const BadCase kCases[] = {
    {"token_embd", [](test::PatchedSource& s) { s.floats("token_embd.weight")[kBad * kHidden + 5] = NAN; }},
    {"token_embd", [](test::PatchedSource& s) { s.floats("token_embd.weight")[kBad * kHidden + 95] = -INFINITY; }},
    {"blk.0.attn_q", [](test::PatchedSource& s) { set_column_0(s, "blk.0.attn_q.weight", 3e38f); }},
    {"blk.0.attn_k", [](test::PatchedSource& s) { set_column_0(s, "blk.0.attn_k.weight", -3e38f); }},
    {"blk.0.attn_v", [](test::PatchedSource& s) { set_column_0(s, "blk.0.attn_v.weight", 3e38f); }},
    {"blk.0.attend",
     [](test::PatchedSource& s) {
       set_column_0(s, "blk.0.attn_q.weight", 1e30f);
       set_column_0(s, "blk.0.attn_k.weight", 1e30f);
     }},
    {"blk.0.ffn_gate", [](test::PatchedSource& s) { set_column_0(s, "blk.0.ffn_gate.weight", 3e38f); }},
    {"blk.0.ffn_up", [](test::PatchedSource& s) { set_column_0(s, "blk.0.ffn_up.weight", 3e38f); }},
    {"blk.0.swiglu",
     [](test::PatchedSource& s) {
       set_column_0(s, "blk.0.ffn_gate.weight", 1e30f);
       set_column_0(s, "blk.0.ffn_up.weight", 1e30f);
     }},
};

class Nonfinite : public testing::TestWithParam<BadCase> {
 protected:
  static std::unique_ptr<TensorSource> source() {
    auto s = std::make_unique<test::PatchedSource>(kModel);
    if (GetParam().command != std::string_view("token_embd")) reserve_element_0(*s);
    GetParam().patch(*s);
    return s;
  }
  std::vector<int32_t> good_prompt(uint32_t n) const {
    std::vector<int32_t> tokens = test::test_tokens(model.desc, n);
    for (int32_t& t : tokens) t = t == kBad ? kBad + 1 : t;
    return tokens;
  }
  // The message of the step's error.
  std::string run_bad_step(Session& session, Draft* draft = nullptr) {
    Sampler sampler(kernels(available_isas().back()), {}, model.desc.vocab);
    const uint64_t state = session.state_hash();
    std::string text;
    try {
      step(session, sampler, {.draft = draft, .depth = 3, .is_stop = nullptr, .max_tokens = UINT32_MAX, .hook = nullptr});
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInput);
      text = e.what();
    }
    EXPECT_EQ(session.state_hash(), state);
    return text;
  }

  const test::TestModel model{source()};
  WorkerPool pool{test::pool_options(2)};
  Decoder decoder{model.desc, *model.pack, kernels(available_isas().back()), pool, {.context = 256}, test::unqualified()};
};

// In narrow passes, in wide ones, and in the last row of either.
TEST_P(Nonfinite, IsNamedAndLeavesNoTrace) {
  for (uint32_t length : {1u, 12u, 100u, 150u})
    for (uint32_t at : {0u, length / 2, length - 1}) {
      SCOPED_TRACE(fmt::format("token {} of {}", at, length));
      std::vector<int32_t> prompt = good_prompt(length);
      prompt[at] = kBad;
      Session session(decoder);
      session.begin(prompt, false);
      const std::string text = run_bad_step(session);
      // What is NaN in a row of the cache reaches later rows through attention alone; what is not stored there does not.
      if (text.empty()) {
        EXPECT_LT(at, length - 1);
        continue;
      }
      EXPECT_NE(text.find(fmt::format("first in the output of {};", GetParam().command)), std::string::npos) << text;
      EXPECT_NE(text.find(fmt::format("at position {},", length)), std::string::npos) << text;
    }
}

TEST_P(Nonfinite, TheNextRequestWorks) {
  Sampler sampler(kernels(available_isas().back()), {}, model.desc.vocab);
  const std::vector<int32_t> good = good_prompt(40);
  std::vector<int32_t> bad = good;
  bad.push_back(kBad);
  Decoder other(model.desc, *model.pack, kernels(available_isas().back()), pool, {.context = 256}, test::unqualified());
  Session fresh(other), session(decoder);
  fresh.begin(good, false);
  const StepResult want = step(fresh, sampler, {});
  EXPECT_EQ(decoder.options().mode, ReplayMode::replayed);
  session.begin(bad, false);
  EXPECT_NE(run_bad_step(session), "");
  EXPECT_EQ(decoder.options().mode, ReplayMode::replayed) << "the search ran eagerly";
  session.begin(good, true);
  const StepResult got = step(session, sampler, {});
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(std::memcmp(got.logits, want.logits, model.desc.vocab * sizeof(float)), 0);
  EXPECT_EQ(session.state_hash(), fresh.state_hash());
}

INSTANTIATE_TEST_SUITE_P(Commands, Nonfinite, testing::ValuesIn(kCases));

// A proposal that is not finite harms only the rows behind it: nobody reads them before it is accepted.
TEST(NonfiniteProposal, ARejectedOneDoesNotEndTheStep) {
  auto source = std::make_unique<test::PatchedSource>(kModel);
  source->floats("token_embd.weight")[kBad * kHidden] = NAN;
  const test::TestModel model(std::move(source));
  class Bad : public Draft {
   public:
    void propose(const SessionView&, uint32_t depth, std::vector<int32_t>& proposals) override { proposals.assign(depth, kBad); }
  };
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(model.desc, *model.pack, kernels(available_isas().back()), pool, {.context = 64}, test::unqualified());
  const SamplingParams never_bad = {.logit_bias = {{kBad, -1000.0f}}};
  std::vector<int32_t> answers[2];
  for (int drafted : {0, 1}) {
    Sampler sampler(kernels(available_isas().back()), never_bad, model.desc.vocab);
    Session session(decoder);
    session.begin(std::vector<int32_t>{1, 2, 3}, false);
    Bad draft;
    while (session.output().size() < 10)
      step(session, sampler,
           {.draft = drafted ? &draft : nullptr, .depth = 4, .is_stop = nullptr, .max_tokens = UINT32_MAX, .hook = nullptr});
    answers[drafted].assign(session.output().begin(), session.output().begin() + 10);
  }
  EXPECT_EQ(answers[0], answers[1]);
}

// The search for the command may itself be stopped: the decoder is as it was.
TEST(NonfiniteSearch, AnEndOfTheSearchLeavesNothingBehind) {
  auto source = std::make_unique<test::PatchedSource>(kModel);
  source->floats("token_embd.weight")[kBad * kHidden] = NAN;
  const test::TestModel model(std::move(source));
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(model.desc, *model.pack, kernels(available_isas().back()), pool, {.context = 64}, test::unqualified());
  struct Stopped {};
  Sampler sampler(kernels(available_isas().back()), {}, model.desc.vocab);
  Session session(decoder);
  session.begin(std::vector<int32_t>{1, 2, kBad}, false);
  int passes = 0;
  decoder.set_between_passes([&](uint32_t, uint32_t) {
    if (++passes == 2) throw Stopped();
  });
  EXPECT_THROW(step(session, sampler, {}), Stopped);
  decoder.set_between_passes(nullptr);
  EXPECT_EQ(decoder.options().mode, ReplayMode::replayed);
  session.begin(std::vector<int32_t>{1, 2, 3}, false);
  EXPECT_NO_THROW(step(session, sampler, {}));
}

}  // namespace
}  // namespace stet
