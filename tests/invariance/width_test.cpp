// Width: any number of rows in one pass, any split of the prompt, gives the bits of one row at a time.
#include <gtest/gtest.h>

#include "mutants.h"

namespace stet::test {
namespace {

using Pieces = std::vector<uint32_t>;

const std::vector<Pieces>& splits() {
  static const std::vector<Pieces> all = {{2}, {3}, {4}, {5}, {8}, {9}, {15}, {16}, {17}, {31}, {127}, {128}, {129}, {300},
                                          {16, 1, 7}, {1, 128, 2}, {130, 13}};
  return all;
}

// Everything again with prompt passes of other widths.
const std::vector<uint32_t>& prompt_rows() {
  static const std::vector<uint32_t> all = {128, 100, 24, 5};
  return all;
}

class Width : public testing::TestWithParam<std::tuple<const char*, KvFormat>> {};

TEST_P(Width, AnySplitGivesTheBitsOfSingleRows) {
  const auto [name, kv] = GetParam();
  const TestModel model(name);
  const auto tokens = test_tokens(model.desc, 290);
  Way way;
  way.decoder.kv = kv;
  const Trace want = Machine(model, way).feed(tokens, {1});
  for (size_t i = 0; i < splits().size(); ++i) {
    way.decoder.prompt_rows = prompt_rows()[i % prompt_rows().size()];
    way.pool.threads = static_cast<unsigned>(1 + i % 2);
    EXPECT_EQ(difference(Machine(model, way).feed(tokens, splits()[i]), want), "")
        << testing::PrintToString(splits()[i]) << " prompt rows " << way.decoder.prompt_rows;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Width,
                         testing::Combine(testing::Values("synth:tiny:q4_0", "synth:tiny-gqa:q8_0",
                                                          "synth:tiny-wide:q4_1", "synth:tiny-256:q6_k",
                                                          "synth:tiny-gqa:bf16", "synth:tiny-wide:f32",
                                                          "synth:tiny-256:f8_e4m3", "synth:tiny-256:f8_e4m3 by e4m3",
                                                          "synth:tiny:mxfp4 by e4m3"),
                                          testing::Values(KvFormat::f16)));
INSTANTIATE_TEST_SUITE_P(KvFormats, Width,
                         testing::Combine(testing::Values("synth:tiny-wide:q4_0"), testing::Values(KvFormat::f32, KvFormat::q8)));

// forward_all gives the rows of forward.
TEST(WidthOfHead, EveryPositionOfAPassHasTheBitsOfASingleRow) {
  const TestModel model("synth:tiny-gqa:q4_1");
  const auto tokens = test_tokens(model.desc, 150);
  const Trace want = Machine(model, {}).feed(tokens, {1});
  for (uint32_t rows : {1u, 7u, 16u, 33u, 128u}) {
    Way way;
    way.decoder.prompt_rows = rows;
    Machine machine(model, way);
    Trace got;
    machine.decoder().forward_all(tokens, 0, [&](uint32_t position, const float* row) {
      ASSERT_EQ(position, got.logits.size());
      got.logits.emplace_back(row, row + model.desc.vocab);
    });
    got.kv = machine.decoder().kv_hash(150);
    ASSERT_EQ(got.logits.size(), 150u);
    EXPECT_EQ(difference(got, want), "") << rows;
  }
}

// Attention of a narrow pass is cut into at most 8 runs of a power of two chunks: the cut changes behind 1024, 2048 and 4096 tokens.
// Passes that straddle such a place, and the uncut attention of wide passes, give the same bits.
TEST(WidthOfAttention, NoCutOfALongContextShows) {
  const TestModel model("synth:tiny:q4_0");
  const auto tokens = test_tokens(model.desc, 4120);
  for (KvFormat kv : {KvFormat::f16, KvFormat::f32}) {
    Way way;
    way.decoder = {.context = 4352, .kv = kv};
    way.pool.first_count = 0xfffffff0u;
    Machine wide(model, way), narrow(model, way);
    const Trace want = wide.feed(tokens, {1010, 15, 14, 988, 13, 15, 2000, 15, 16, 4, 16});
    Trace all;
    wide.decoder().forward_all(std::span(tokens).subspan(4000), 4000, [&](uint32_t position, const float* row) {
      all.logits.resize(position + 1);
      all.logits.back().assign(row, row + model.desc.vocab);
    });
    all.kv = want.kv;
    EXPECT_EQ(difference(all, want), "");
    // The same places, one row at a time.
    for (uint32_t edge : {1024u, 2048u, 4096u}) {
      narrow.feed(std::span(tokens).first(edge - 14), {128});
      const Trace got = narrow.feed(std::span(tokens).subspan(edge - 14, 24), {1}, edge - 14);
      Trace rows = want;
      rows.kv = got.kv;
      EXPECT_EQ(difference(got, rows), "") << edge;
      EXPECT_EQ(got.kv, wide.decoder().kv_hash(edge + 10));
    }
  }
}

TEST(WidthMutants, CodeOfTheMutantsIsRightWithoutTheirMistake) {
  for (const char* name : {"synth:tiny:q4_1", "synth:tiny:f32"}) {
    const TestModel model(name);
    const auto tokens = test_tokens(model.desc, 20);
    const Kernels same = mutants::nothing_wrong();
    Way way;
    way.kernels = &same;
    EXPECT_EQ(difference(Machine(model, way).feed(tokens, {7}), Machine(model, {}).feed(tokens, {1})), "");
  }
}

TEST(WidthMutants, ReductionOrderThatDependsOnWidthIsCaught) {
  const Kernels wrong = mutants::two_accumulators_when_wide();
  Way way;
  way.kernels = &wrong;
  for (const char* name : {"synth:tiny-gqa:q4_0", "synth:tiny:f16"}) {
    const TestModel model(name);
    const auto tokens = test_tokens(model.desc, 16);
    EXPECT_EQ(difference(Machine(model, way).feed(tokens, {1}), Machine(model, {}).feed(tokens, {1})), "") << "right at width 1";
    EXPECT_NE(difference(Machine(model, way).feed(tokens, {8}), Machine(model, way).feed(tokens, {1})), "");
  }
}

// Chunks joined in a line are right up to three of them.
TEST(WidthMutants, AttentionThatDependsOnTheCutIsCaught) {
  const TestModel model("synth:tiny:q4_0");
  const Kernels wrong = mutants::chunks_joined_in_line();
  Way way;
  way.kernels = &wrong;
  way.decoder.context = 640;
  const auto tokens = test_tokens(model.desc, 600);
  EXPECT_EQ(difference(Machine(model, way).feed(std::span(tokens).first(384), {128}),
                       Machine(model, way).feed(std::span(tokens).first(384), {16})), "");
  EXPECT_NE(difference(Machine(model, way).feed(tokens, {128}), Machine(model, way).feed(tokens, {16})), "");
}

}  // namespace
}  // namespace stet::test
