// History: whatever ran before in the process, rollbacks, and a prefix cache that hits or misses.
#include <gtest/gtest.h>

#include "mutants.h"

namespace stet::test {
namespace {

struct HistoryCase {
  const char* model;
  KvFormat kv;
};

class History : public testing::TestWithParam<HistoryCase> {
 protected:
  History() : model(GetParam().model) { way.decoder.kv = GetParam().kv; }

  Ask ask(uint32_t prompt, uint32_t seed, float temperature = 0.0f) const {
    return {.prompt = test_tokens(model.desc, prompt, seed), .max_tokens = 20, .sampling = {.temperature = temperature, .seed = seed}};
  }

  const TestModel model;
  Way way;
};

TEST_P(History, OtherRequestsLeaveNoTrace) {
  Machine machine(model, way);
  Session session(machine.decoder());
  Random random(3);
  for (uint32_t i = 1; i <= 6; ++i) {
    const Ask question = ask(random.between(1, 200), i, i % 2 == 0 ? 0.0f : 1.0f);
    EXPECT_EQ(difference(answer(machine, session, question, {}, i % 3 == 0), fresh_answer(model, way, question)), "") << i;
  }
}

// A prompt that shares a beginning of every interesting length with the timeline before it.
TEST_P(History, PrefixCacheHitAndMissAnswerAlike) {
  const Ask first = ask(150, 1);
  for (uint32_t shared : {0u, 1u, 15u, 16u, 17u, 100u, 127u, 128u, 129u, 149u, 150u, 160u}) {
    Machine machine(model, way);
    Session session(machine.decoder());
    answer(machine, session, first);
    Ask second = ask(165, 2);
    std::copy_n(session.tokens().begin(), shared, second.prompt.begin());
    if (shared < 160) second.prompt[shared] = (session.tokens()[shared] + 1) % static_cast<int32_t>(model.desc.vocab);
    Session hit = session;
    EXPECT_EQ(hit.begin(second.prompt, true), shared);
    EXPECT_EQ(difference(answer(machine, session, second, {}, true), fresh_answer(model, way, second)), "") << shared;
  }
}

TEST_P(History, TheSamePromptAgainRunsItsLastTokenAgain) {
  Machine machine(model, way);
  Session session(machine.decoder());
  const Ask question = ask(140, 4, 0.9f);
  const Trace want = answer(machine, session, question);
  for (int i = 0; i < 3; ++i) {
    Session view = session;
    EXPECT_EQ(view.begin(question.prompt, true), 139u);
    EXPECT_EQ(difference(answer(machine, session, question, {}, true), want), "");
  }
}

TEST_P(History, RollbacksLeaveNoTrace) {
  const Ask question = ask(120, 5), next = ask(40, 6, 1.0f);
  const Trace want = fresh_answer(model, way, question);
  for (uint32_t depth : {1u, 7u, 15u}) {
    Machine machine(model, way);
    Session session(machine.decoder());
    ScriptedDraft liar(want.tokens, model.desc.vocab, always_lies);
    const Trace got = answer(machine, session, question, {&liar, depth});
    EXPECT_EQ(got.accepted, 0u);
    EXPECT_GT(got.proposed, 0u);
    EXPECT_EQ(difference(got, want), "") << depth;
    EXPECT_EQ(difference(answer(machine, session, next), fresh_answer(model, way, next)), "") << depth;
  }
}

// Slots that no row may see hold NaN: whoever reads one, even to multiply it by zero, shows it.
TEST_P(History, UnseenSlotsMayHoldAnything) {
  const Ask question = ask(100, 7);
  const Trace want = fresh_answer(model, way, question);
  Machine machine(model, way);
  machine.feed(test_tokens(model.desc, 256, 8), {128});
  poison(machine.decoder(), 0, 256);
  EXPECT_EQ(difference(answer(machine, question), want), "");
}

INSTANTIATE_TEST_SUITE_P(Models, History,
                         testing::Values(HistoryCase{"synth:tiny-gqa:q4_0", KvFormat::f16}, HistoryCase{"synth:tiny-wide:q8_0", KvFormat::q8},
                                         HistoryCase{"synth:tiny:f32", KvFormat::f32}));

class HistoryMutants : public testing::Test {
 protected:
  const TestModel model{"synth:tiny-gqa:q4_0"};
  const Ask question{.prompt = test_tokens(model.desc, 100, 7), .max_tokens = 12};
};

TEST_F(HistoryMutants, StaleSlotBeyondThePositionIsCaught) {
  const Kernels wrong = mutants::reads_one_slot_beyond();
  Way way;
  way.kernels = &wrong;
  Machine machine(model, way);
  machine.feed(test_tokens(model.desc, 200, 8), {128});
  EXPECT_NE(difference(answer(machine, question), fresh_answer(model, way, question)), "");
}

// Finite rows of other requests do not show it; NaN does.
TEST_F(HistoryMutants, MaskedSlotTimesZeroIsCaught) {
  const Kernels wrong = mutants::masked_times_zero();
  Way way;
  way.kernels = &wrong;
  Machine machine(model, way);
  machine.feed(test_tokens(model.desc, 200, 8), {128});
  const Trace clean = answer(machine, question);
  EXPECT_EQ(difference(clean, fresh_answer(model, {}, question)), "") << "right as long as slots are finite";
  poison(machine.decoder(), 0, 200);
  const Trace poisoned = machine.feed(question.prompt, {16});
  EXPECT_NE(difference(poisoned, Machine(model, {}).feed(question.prompt, {16})), "");
}

TEST_F(HistoryMutants, PrefixTakenForCachedWithoutComparingItIsCaught) {
  Machine machine(model, {});
  machine.feed(test_tokens(model.desc, 100, 8), {128});
  const Trace got = mutants::speculate(machine, question, {}, mutants::Fault::none, 99);
  EXPECT_NE(difference(got, fresh_answer(model, {}, question)), "");
}

TEST_F(HistoryMutants, LostRollbackOfARowIsCaught) {
  const Trace want = fresh_answer(model, {}, question);
  ScriptedDraft draft(want.tokens, model.desc.vocab, sometimes_right);
  for (mutants::Fault fault : {mutants::Fault::none, mutants::Fault::stale_row}) {
    Machine machine(model, {});
    const Trace got = mutants::speculate(machine, question, {&draft, 4}, fault);
    EXPECT_EQ(difference(got, want).empty(), fault == mutants::Fault::none) << difference(got, want);
  }
}

// The session itself refuses to count the row of a token that was not run.
TEST_F(HistoryMutants, CountOfCachedRowsOneTooHighIsRefused) {
  Machine machine(model, {});
  Session session(machine.decoder());
  session.begin(question.prompt, false);
  const int32_t token = 1;
  EXPECT_THROW(session.commit({&token, 1}, session.committed_tokens() + 1), Error);
  EXPECT_NO_THROW(session.commit({&token, 1}, session.committed_tokens()));
}

}  // namespace
}  // namespace stet::test
