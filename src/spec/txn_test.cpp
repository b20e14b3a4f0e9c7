// Faults at every place of a transaction: the session stays as it was, and the answer is the one without the fault.
#include "spec/txn.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "spec/step.h"
#include "state/test_model.h"

namespace stet {
namespace {

struct Fault {};

// Kernels that fail at a call: the fastest ones, with a count before each product.
std::atomic<int64_t> calls_left{INT64_MAX};

void failing_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  if (calls_left-- == 0) throw Fault();
  kernels(available_isas().back()).matvec(w, tile, x, out);
}

const Kernels& failing_kernels() {
  static const Kernels table = [] {
    Kernels k = kernels(available_isas().back());
    k.matvec = failing_matvec;
    return k;
  }();
  return table;
}

// Proposes the right tokens, and at every third place a wrong one.
class MostlyRight : public Draft {
 public:
  explicit MostlyRight(std::vector<int32_t> answer) : answer_(std::move(answer)) {}
  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    const size_t first = view.tokens.size() - view.prompt_tokens;
    for (size_t i = first; i < first + depth && i < answer_.size(); ++i) proposals.push_back(i % 3 == 2 ? 1 : answer_[i]);
  }

 private:
  const std::vector<int32_t> answer_;
};

class TxnTest : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr uint32_t kContext = 200, kAnswer = 16;

  TxnTest() {
    Session plain(decoder);
    plain.begin(prompt, false);
    Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
    while (plain.output().size() < kAnswer) step(plain, sampler, {});
    answer.assign(plain.output().begin(), plain.output().end());
  }

  StepOptions options(Draft* draft, Txn::Hook hook = nullptr) const {
    return {.draft = draft, .depth = 5, .is_stop = nullptr, .max_tokens = UINT32_MAX, .hook = std::move(hook)};
  }
  void expect_beginning(const Session& session) const {
    for (size_t i = 0; i < std::min<size_t>(session.output().size(), kAnswer); ++i) ASSERT_EQ(session.output()[i], answer[i]) << i;
  }

  const test::TestModel model{"synth:tiny-gqa:q4_0"};
  const std::vector<int32_t> prompt = test::test_tokens(model.desc, 40);
  const SamplingParams sampling{.temperature = 0.8f, .repetition_penalty = 1.2f, .seed = 9};
  WorkerPool pool{test::pool_options(GetParam())};
  Decoder decoder{model.desc, *model.pack, failing_kernels(), pool, {.context = kContext}, test::unqualified()};
  std::vector<int32_t> answer;
};

TEST_P(TxnTest, AThrowAtAnyPhaseLeavesNoTrace) {
  for (int at = 0; at < 100; ++at) {
    Session session(decoder);
    session.begin(prompt, false);
    Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
    MostlyRight draft(answer);
    int left = at;
    uint64_t state = 0;
    bool thrown = false;
    while (session.output().size() < kAnswer) {
      state = session.state_hash();
      try {
        step(session, sampler, options(&draft, [&](Txn::Phase) {
          if (left-- == 0) throw Fault();
        }));
      } catch (const Fault&) {
        thrown = true;
        ASSERT_EQ(session.state_hash(), state) << at;
      }
    }
    expect_beginning(session);
    if (!thrown) return;  // beyond the last phase
  }
  FAIL() << "there are fewer phases than that";
}

TEST_P(TxnTest, AThrowInAnyKernelLeavesNoTrace) {
  const uint32_t tiles = [&] {
    Session session(decoder);
    session.begin(prompt, false);
    Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
    calls_left = INT64_MAX;
    step(session, sampler, {});
    return static_cast<uint32_t>(INT64_MAX - calls_left);
  }();
  ASSERT_GT(tiles, 50u);
  for (uint32_t at = 0; at < 4 * tiles; at += 1 + at / 9) {
    Session session(decoder);
    session.begin(prompt, false);
    Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
    MostlyRight draft(answer);
    calls_left = at;
    bool thrown = false;
    while (session.output().size() < kAnswer) {
      const uint64_t state = session.state_hash();
      try {
        step(session, sampler, options(&draft));
      } catch (const Fault&) {
        thrown = true;
        ASSERT_EQ(session.state_hash(), state) << at;
      }
    }
    ASSERT_TRUE(thrown) << at;
    expect_beginning(session);
  }
  calls_left = INT64_MAX;
}

INSTANTIATE_TEST_SUITE_P(Threads, TxnTest, testing::Values(1u, 2u));

using TxnOneThread = TxnTest;

// A Txn that goes out of scope before commit, and one that commits fewer tokens than it verified.
TEST_P(TxnOneThread, CommitsWhatItIsToldTo) {
  const auto none = [](int32_t) { return false; };
  for (uint32_t n = 1; n <= 6; ++n) {
    Session session(decoder);
    session.begin(prompt, false);
    Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
    MostlyRight draft(answer);
    for (uint32_t i = 0; session.output().size() < kAnswer; ++i) {
      const uint64_t state = session.state_hash();
      {
        Txn dropped(session);
        dropped.propose(&draft, 5);
        dropped.verify(sampler, none);
        EXPECT_GE(dropped.verified().size(), 1u);
      }
      EXPECT_EQ(session.state_hash(), state);
      Txn txn(session);
      txn.propose(&draft, 5);
      txn.verify(sampler, none);
      const uint32_t before = session.committed_tokens(), take = std::min<uint32_t>(n, static_cast<uint32_t>(txn.verified().size()));
      txn.commit(take);
      EXPECT_EQ(session.committed_tokens(), before + take);
      EXPECT_EQ(session.cached_tokens(), before + take - 1);
    }
    expect_beginning(session);
  }
}

TEST_P(TxnOneThread, RefusesToCommitWhatWasNotVerified) {
  Session session(decoder);
  session.begin(prompt, false);
  Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
  Txn txn(session);
  EXPECT_THROW(txn.commit(1), Error);
  txn.propose(nullptr, 5);
  txn.verify(sampler, nullptr);
  EXPECT_THROW(txn.commit(0), Error);
  EXPECT_THROW(txn.commit(2), Error);
  EXPECT_NO_THROW(txn.commit(1));
}

TEST_P(TxnOneThread, FillsTheContextToItsLastTokenAndNoFurther) {
  Session session(decoder);
  session.begin(prompt, false);
  Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
  while (session.room() > 0) {
    MostlyRight draft(answer);
    step(session, sampler, options(&draft));
  }
  EXPECT_EQ(session.committed_tokens(), kContext);
  expect_beginning(session);
  const uint64_t state = session.state_hash();
  EXPECT_THROW(step(session, sampler, {}), Error);
  EXPECT_EQ(session.state_hash(), state);
}

// A draft that breaks its contract is a bug, not an answer.
TEST_P(TxnOneThread, RefusesProposalsThatCannotBe) {
  class Bad : public Draft {
   public:
    explicit Bad(std::vector<int32_t> tokens) : tokens_(std::move(tokens)) {}
    void propose(const SessionView&, uint32_t, std::vector<int32_t>& proposals) override { proposals = tokens_; }

   private:
    const std::vector<int32_t> tokens_;
  };
  Session session(decoder);
  session.begin(prompt, false);
  Sampler sampler(failing_kernels(), sampling, model.desc.vocab);
  const uint64_t state = session.state_hash();
  for (const std::vector<int32_t>& tokens : {std::vector<int32_t>{-1}, {static_cast<int32_t>(model.desc.vocab)}, {1, 2, 3, 4, 5, 6}}) {
    Bad draft(tokens);
    EXPECT_THROW(step(session, sampler, options(&draft)), Error);
    EXPECT_EQ(session.state_hash(), state);
  }
}

INSTANTIATE_TEST_SUITE_P(One, TxnOneThread, testing::Values(1u));

}  // namespace
}  // namespace stet
