// Speculation: no draft, any draft, any depth; greedy and sampled. Tokens, logits and KV rows are those of the plain decoder.
#include <gtest/gtest.h>

#include "mutants.h"

namespace stet::test {
namespace {

constexpr const char* kModel = "synth:tiny:q4_0";

const TestModel& target() {
  static const TestModel model(kModel);
  return model;
}

struct SamplingCase {
  const char* name;
  SamplingParams params;
};

const std::vector<SamplingCase>& samplings() {
  static const std::vector<SamplingCase> all = {
      {"greedy", {}},
      {"temperature", {.temperature = 0.7f, .seed = 1}},
      {"hot", {.temperature = 1.5f, .seed = 0xfedcba9876543210u}},
      {"top_k", {.temperature = 1.0f, .top_k = 5, .seed = 2}},
      {"top_p", {.temperature = 0.9f, .top_p = 0.4f, .seed = 3}},
      {"min_p", {.temperature = 1.0f, .min_p = 0.2f, .seed = 4}},
      {"penalties", {.repetition_penalty = 1.3f, .presence_penalty = 0.4f, .frequency_penalty = 0.2f}},
      {"bias", {.temperature = 0.5f, .seed = 5, .logit_bias = {{3, 2.0f}, {17, -4.0f}, {200, 3.0f}}}},
      {"all", {.temperature = 0.8f, .top_k = 40, .top_p = 0.9f, .min_p = 0.01f, .repetition_penalty = 1.1f,
               .presence_penalty = 0.2f, .frequency_penalty = 0.1f, .seed = 6, .logit_bias = {{9, 1.0f}}}}};
  return all;
}

// A prompt that repeats itself, so that an n-gram draft has something to find.
std::vector<int32_t> prompt(uint32_t period = 23, uint32_t length = 60) {
  std::vector<int32_t> tokens = test_tokens(target().desc, length);
  for (uint32_t i = period; i < length; ++i) tokens[i] = tokens[i - period];
  return tokens;
}

constexpr const char* kDrafts[] = {"ngram", "model:synth:tiny:q4_0", "model:synth:tiny:q4_0:2", "model:synth:tiny-256:q8_0",
                                   "right", "lies", "sometimes"};

std::unique_ptr<Draft> make(Machine& machine, const std::string& name, const Trace& want) {
  const ScriptedDraft::Rule rule = name == "right" ? always_right : name == "lies" ? always_lies : name == "sometimes" ? sometimes_right : nullptr;
  if (rule == nullptr) return machine.draft(name);
  return std::make_unique<ScriptedDraft>(want.tokens, target().desc.vocab, rule);
}

class Speculation : public testing::TestWithParam<const char*> {};

TEST_P(Speculation, EveryDepthAndSamplingGivesThePlainAnswer) {
  Machine machine(target(), {});
  for (const SamplingCase& sampling : samplings()) {
    const Ask ask{.prompt = prompt(), .max_tokens = 24, .sampling = sampling.params};
    const Trace want = fresh_answer(target(), {}, ask);
    for (uint32_t depth = 1; depth <= kMaxDepth; ++depth) {
      const auto draft = make(machine, GetParam(), want);
      const Trace got = answer(machine, ask, {draft.get(), depth});
      EXPECT_EQ(difference(got, want), "") << sampling.name << " depth " << depth;
    }
  }
}

// Otherwise the test above would prove nothing: drafts are accepted as often as they should be.
TEST_P(Speculation, DraftsAreAcceptedAsTheyShould) {
  const std::string name = GetParam();
  Machine machine(target(), {});
  for (const SamplingCase& sampling : {samplings()[0], samplings()[1], samplings()[8]}) {
    const Ask ask{.prompt = prompt(), .max_tokens = 40, .sampling = sampling.params};
    const Trace want = fresh_answer(target(), {}, ask);
    const auto draft = make(machine, name, want);
    const Trace got = answer(machine, ask, {draft.get(), 4});
    EXPECT_TRUE(got.proposed > 0 || name == "ngram");
    if (name == "right" || name == "model:synth:tiny:q4_0") {
      EXPECT_EQ(got.accepted, got.proposed) << sampling.name;
    } else if (name == "lies") {
      EXPECT_EQ(got.accepted, 0u);
    } else if (name == "sometimes") {
      EXPECT_GT(got.accepted, 0u);
      EXPECT_LT(got.accepted, got.proposed);
    }
  }
}

TEST_P(Speculation, StopTokenEndsTheAnswerWhereverItStands) {
  Machine machine(target(), {});
  for (const SamplingCase& sampling : {samplings()[1], samplings()[6]}) {
    Ask ask{.prompt = prompt(), .max_tokens = 30, .sampling = sampling.params};
    const Trace all = fresh_answer(target(), {}, ask);
    for (uint32_t index = 0; index < 12; ++index) {
      ask.stops = {all.tokens[index], all.tokens[index + 9]};
      const Trace want = fresh_answer(target(), {}, ask);
      ASSERT_LE(want.tokens.size(), index + 1);
      const auto draft = make(machine, GetParam(), all);
      EXPECT_EQ(difference(answer(machine, ask, {draft.get(), 9}), want), "") << sampling.name << " stop at " << index;
    }
  }
}

TEST_P(Speculation, LimitAndEndOfTheContextMayCutACycle) {
  for (uint32_t context : {512u, 70u, 61u}) {
    Way way;
    way.decoder.context = context;
    Machine machine(target(), way);
    for (uint32_t limit = 1; limit <= 18; ++limit) {
      const Ask ask{.prompt = prompt(), .max_tokens = limit, .sampling = samplings()[1].params};
      const Trace want = fresh_answer(target(), way, ask);
      ASSERT_EQ(want.tokens.size(), std::min(limit, context - 60));
      const auto draft = make(machine, GetParam(), want);
      EXPECT_EQ(difference(answer(machine, ask, {draft.get(), 15}), want), "") << context << " limit " << limit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Drafts, Speculation, testing::ValuesIn(kDrafts));

// Verify passes of several threads, kernels and KV formats.
TEST(SpeculationGeometry, VerifyPassesOfAnyKindGiveThePlainAnswer) {
  const Ask ask{.prompt = prompt(), .max_tokens = 30, .sampling = samplings()[8].params};
  for (KvFormat kv : {KvFormat::f16, KvFormat::f32})
    for (Isa isa : available_isas())
      for (ReplayMode mode : {ReplayMode::eager, ReplayMode::replayed}) {
        Way way;
        way.decoder.kv = kv;
        const Trace want = fresh_answer(target(), way, ask);
        way.decoder.mode = mode;
        way.kernels = &kernels(isa);
        way.pool.threads = 2;
        Machine machine(target(), way);
        ScriptedDraft draft(want.tokens, target().desc.vocab, sometimes_right);
        EXPECT_EQ(difference(answer(machine, ask, {&draft, 6}), want), "") << isa_name(isa);
      }
}

struct FaultCase {
  mutants::Fault fault;
  const char* draft;
  uint32_t sampling;  // of samplings()
};

class SpeculationMutants : public testing::TestWithParam<FaultCase> {};

// The second loop is right without its fault, and caught with it.
TEST_P(SpeculationMutants, AreCaught) {
  const FaultCase c = GetParam();
  Ask ask{.prompt = prompt(), .max_tokens = 30, .sampling = samplings()[c.sampling].params};
  const Trace all = fresh_answer(target(), {}, ask);
  if (c.fault == mutants::Fault::past_stop) ask.stops = {all.tokens[5]};
  const Trace want = fresh_answer(target(), {}, ask);
  for (mutants::Fault fault : {mutants::Fault::none, c.fault}) {
    Machine machine(target(), {});
    const auto draft = make(machine, c.draft, all);
    const Trace got = mutants::speculate(machine, ask, {draft.get(), 7}, fault);
    EXPECT_EQ(difference(got, want).empty(), fault == mutants::Fault::none) << difference(got, want);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, SpeculationMutants,
                         testing::Values(FaultCase{mutants::Fault::stale_row, "sometimes", 1},
                                         FaultCase{mutants::Fault::draft_as_target, "model:synth:tiny:q4_0:2", 0},
                                         FaultCase{mutants::Fault::draft_as_target, "sometimes", 1},
                                         FaultCase{mutants::Fault::noise_by_row, "sometimes", 1},
                                         FaultCase{mutants::Fault::counts_without_draft, "right", 6},
                                         FaultCase{mutants::Fault::past_stop, "right", 1},
                                         FaultCase{mutants::Fault::past_limit, "right", 0}));

}  // namespace
}  // namespace stet::test
