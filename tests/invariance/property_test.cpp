// Random questions, drafts, depths, cancels and contexts, against a plain decoder in a fresh machine. A failure prints its seed.
#include <gtest/gtest.h>

#include "harness.h"

namespace stet::test {
namespace {

constexpr uint64_t kBaseSeed = 20250117;

struct Cancelled {};

const TestModel& model(uint32_t i) {
  static const TestModel models[] = {TestModel("synth:tiny:q4_0"), TestModel("synth:tiny-gqa:q8_0"), TestModel("synth:tiny-wide:q4_1"),
                                     TestModel("synth:tiny:f16")};
  return models[i % std::size(models)];
}

// Often close to where a chunk of the KV cache begins.
uint32_t random_length(Random& r, uint32_t limit) {
  const uint32_t n = r.below(2) == 0 ? r.between(1, 60) : 128 * r.between(1, 2) + r.between(0, 6) - 3;
  return std::min(n, limit);
}

SamplingParams random_sampling(Random& r, uint32_t vocab) {
  SamplingParams p;
  if (r.below(3) != 0) p.temperature = static_cast<float>(r.between(1, 20)) / 10.0f;
  if (r.below(3) == 0) p.top_k = r.between(1, 50);
  if (r.below(3) == 0) p.top_p = static_cast<float>(r.between(1, 99)) / 100.0f;
  if (r.below(3) == 0) p.min_p = static_cast<float>(r.between(1, 50)) / 100.0f;
  if (r.below(3) == 0) p.repetition_penalty = 1.0f + static_cast<float>(r.below(10)) / 10.0f;
  if (r.below(3) == 0) p.frequency_penalty = static_cast<float>(r.below(10)) / 10.0f - 0.3f;
  if (r.below(3) == 0) p.presence_penalty = static_cast<float>(r.below(10)) / 10.0f - 0.3f;
  if (r.below(3) == 0) p.logit_bias[static_cast<int32_t>(r.below(vocab))] = static_cast<float>(r.below(9)) - 4.0f;
  p.seed = r.next();
  return p;
}

Ask random_ask(Random& r, const TestModel& m, uint32_t context, std::span<const int32_t> before) {
  Ask ask;
  ask.prompt = test_tokens(m.desc, random_length(r, context - 1), static_cast<uint32_t>(r.next()));
  // Mostly the continuation of what came before, up to some place.
  if (r.below(3) != 0) {
    const size_t shared = std::min<size_t>(r.below(static_cast<uint32_t>(before.size()) + 1), ask.prompt.size());
    std::copy_n(before.begin(), shared, ask.prompt.begin());
  }
  ask.max_tokens = r.between(1, 30);
  ask.sampling = random_sampling(r, m.desc.vocab);
  if (r.below(3) == 0) ask.stops = {static_cast<int32_t>(r.below(m.desc.vocab)), static_cast<int32_t>(r.below(m.desc.vocab))};
  return ask;
}

std::unique_ptr<Draft> random_draft(Random& r, Machine& machine, const Trace& want) {
  const ScriptedDraft::Rule rules[] = {always_right, always_lies, sometimes_right};
  const uint32_t kind = r.below(6);
  if (kind < 3) return std::make_unique<ScriptedDraft>(want.tokens, machine.decoder().desc().vocab, rules[kind]);
  return kind == 3 ? machine.draft("ngram") : nullptr;
}

// Begins the request and gives it up somewhere: between two passes of the prompt, or at a phase of some transaction.
void cancel_somewhere(Random& r, Machine& machine, Session& session, const Ask& ask, const Help& help) {
  Sampler sampler(machine.kernels(), ask.sampling, machine.decoder().desc().vocab);
  session.begin(ask.prompt, r.below(2) == 0);
  uint32_t left = r.between(0, 40);
  const auto maybe = [&left] {
    if (left-- == 0) throw Cancelled();
  };
  machine.decoder().set_between_passes([&](uint32_t, uint32_t) { maybe(); });
  uint64_t state = session.state_hash();
  try {
    for (uint32_t i = 0; i < ask.max_tokens && session.room() > 0; ++i) {
      state = session.state_hash();
      step(session, sampler, {.draft = help.draft, .depth = help.depth, .is_stop = nullptr, .hook = [&](Txn::Phase) { maybe(); }});
      state = session.state_hash();
    }
  } catch (const Cancelled&) {
  }
  EXPECT_EQ(session.state_hash(), state);
  machine.decoder().set_between_passes(nullptr);
}

void run_one(uint64_t seed) {
  Random r(seed);
  const TestModel& m = model(r.below(4));
  Way plain;
  plain.decoder.context = r.below(2) == 0 ? r.between(2, 300) : 512;
  plain.decoder.kv = r.below(3) == 0 ? KvFormat::f32 : KvFormat::f16;
  Way way = plain;
  way.decoder.prompt_rows = r.between(1, 128);
  way.decoder.mode = static_cast<ReplayMode>(r.below(3));
  way.pool.threads = r.between(1, 3);
  way.pool.first_count = 0u - r.below(400);
  Machine machine(m, way);
  Session session(machine.decoder());
  for (int request = 0; request < 4; ++request) {
    SCOPED_TRACE(fmt::format("request {}", request));
    const Ask ask = random_ask(r, m, plain.decoder.context, session.tokens());
    const Trace want = fresh_answer(m, plain, ask);
    const auto draft = random_draft(r, machine, want);
    const Help help = {draft.get(), draft ? r.between(1, kMaxDepth) : 0};
    if (r.below(3) == 0) cancel_somewhere(r, machine, session, ask, help);
    EXPECT_EQ(difference(answer(machine, session, ask, help, r.below(4) != 0), want), "");
  }
}

TEST(Property, RandomLivesOfASessionGiveThePlainAnswers) {
  for (uint64_t i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}", kBaseSeed + i));
    run_one(kBaseSeed + i);
  }
}

// Random splits of random prompts.
TEST(Property, RandomSplitsGiveTheBitsOfSingleRows) {
  for (uint64_t i = 0; i < 30 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}", kBaseSeed + i));
    Random r(kBaseSeed + i);
    const TestModel& m = model(r.below(4));
    const auto tokens = test_tokens(m.desc, random_length(r, 260), static_cast<uint32_t>(r.next()));
    std::vector<uint32_t> pieces(r.between(1, 5));
    for (uint32_t& p : pieces) p = r.between(1, r.below(2) == 0 ? 16 : 150);
    Way way;
    way.decoder.prompt_rows = r.between(1, 128);
    way.kernels = &kernels(available_isas()[r.below(static_cast<uint32_t>(available_isas().size()))]);
    if (way.kernels->isa == Isa::scalar) way.kernels = &kernels(available_isas().back());
    EXPECT_EQ(difference(Machine(m, way).feed(tokens, pieces), Machine(m, {}).feed(tokens, {1})), "") << testing::PrintToString(pieces);
  }
}

}  // namespace
}  // namespace stet::test
