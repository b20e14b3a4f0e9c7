// Speculation on a model whose memory is more than a KV cache: drafts, prefixes and other requests before change no bit
// of an answer.
#include <gtest/gtest.h>

#include "spec/step.h"
#include "state/test_model.h"
#include "weights/hf/checkpoint.h"

namespace stet {
namespace {

// Right and wrong by turns, with runs of both longer than an entry.
class ByTurns : public Draft {
 public:
  explicit ByTurns(std::vector<int32_t> answer) : answer_(std::move(answer)) {}
  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    const size_t first = view.tokens.size() - view.prompt_tokens;
    for (size_t i = first; i < first + depth && i < answer_.size(); ++i)
      proposals.push_back(i % 11 > 6 ? (answer_[i] + 1) % 7 : answer_[i]);
  }

 private:
  const std::vector<int32_t> answer_;
};

struct Answer {
  std::vector<int32_t> tokens;
  uint64_t state = 0;
  uint32_t accepted = 0;
};

class StatesTest : public testing::TestWithParam<std::tuple<const char*, float>> {
 protected:
  static constexpr uint32_t kAnswer = 60;

  Answer answer(Decoder& on, Session& session, Draft* draft, uint32_t depth, bool reuse) const {
    session.begin(prompt, reuse);
    Sampler sampler(kernels(Isa::scalar), sampling, model.desc.vocab);
    Answer a;
    while (session.output().size() < kAnswer) {
      const auto left = static_cast<uint32_t>(kAnswer - session.output().size());
      a.accepted += step(session, sampler,
                         {.draft = draft, .depth = depth, .is_stop = nullptr, .max_tokens = left, .hook = nullptr})
                        .accepted;
    }
    a.tokens.assign(session.output().begin(), session.output().end());
    a.state = on.kv_hash(static_cast<uint32_t>(prompt.size()) + kAnswer - 1);
    return a;
  }

  const test::TestModel model{HfCheckpoint::open(std::string("tests/golden/deepseek_v4/") + std::get<0>(GetParam())),
                              true};
  const std::vector<int32_t> prompt = test::test_tokens(model.desc, 21);
  const SamplingParams sampling{.temperature = std::get<1>(GetParam()), .seed = 5};
  WorkerPool pool{test::pool_options(2)};
  Decoder decoder{
      model.desc,         *model.pack, kernels(available_isas().back()), pool, {.context = 160, .kv = KvFormat::f32},
      test::unqualified()};
};

INSTANTIATE_TEST_SUITE_P(Models, StatesTest,
                         testing::Combine(testing::Values("mixed", "fine", "coarse", "mtp"),
                                          testing::Values(0.0f, 0.9f)));

TEST_P(StatesTest, DraftsChangeNothing) {
  Session session(decoder);
  const Answer plain = answer(decoder, session, nullptr, 0, false);
  for (const uint32_t depth : {1u, 3u, 7u, 15u}) {
    ByTurns draft(plain.tokens);
    const Answer got = answer(decoder, session, &draft, depth, false);
    EXPECT_EQ(got.tokens, plain.tokens) << depth;
    EXPECT_EQ(got.state, plain.state) << depth;
    EXPECT_GT(got.accepted, 20u) << depth;
    EXPECT_LT(got.accepted, kAnswer) << depth;
  }
}

TEST_P(StatesTest, KeptPrefixesChangeNothing) {
  Session session(decoder);
  const Answer plain = answer(decoder, session, nullptr, 0, false);
  // Another request that begins as this one, then this one again.
  for (const size_t common : {20u, 17u, 9u, 3u}) {
    std::vector<int32_t> other(prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(common));
    const std::vector<int32_t> rest = test::test_tokens(model.desc, 70, 3);
    other.insert(other.end(), rest.begin(), rest.end());
    session.begin(other, true);
    decoder.forward(other, 0, 1);
    session.commit(std::vector<int32_t>{1}, static_cast<uint32_t>(other.size()));
    const Answer again = answer(decoder, session, nullptr, 0, true);
    EXPECT_EQ(again.tokens, plain.tokens) << common;
    EXPECT_EQ(again.state, plain.state) << common;
  }
}

// A long prompt behind a kept prefix that is given up on its way has overwritten rows that the prefix had in rings: the
// next step, and the next request, begin where rows are.
TEST_P(StatesTest, APromptGivenUpOnItsWayChangesNothing) {
  Decoder longer(model.desc, *model.pack, kernels(available_isas().back()), pool, {.context = 600, .kv = KvFormat::f32},
                 test::unqualified());
  Session session(longer);
  const Answer plain = answer(longer, session, nullptr, 0, false);
  std::vector<int32_t> prompt_of_all(session.tokens().begin(), session.tokens().end());
  const std::vector<int32_t> rest = test::test_tokens(model.desc, 420, 3);
  prompt_of_all.insert(prompt_of_all.end(), rest.begin(), rest.end());
  const auto next = [&](Session& s) {
    Sampler sampler(kernels(Isa::scalar), sampling, model.desc.vocab);
    return step(s, sampler, {}).tokens;
  };
  struct GivenUp {};
  const uint32_t kept = static_cast<uint32_t>(prompt.size()) + kAnswer - 1;
  for (const bool another_request : {false, true}) {
    EXPECT_EQ(session.begin(prompt_of_all, true), kept);
    longer.set_between_passes([](uint32_t done, uint32_t) {
      if (done >= 384) throw GivenUp{};
    });
    EXPECT_THROW(next(session), GivenUp);
    // Twice, and the second time before there are as many rows as there were.
    longer.set_between_passes([](uint32_t, uint32_t) { throw GivenUp{}; });
    EXPECT_THROW(next(session), GivenUp);
    longer.set_between_passes(nullptr);
    if (another_request) {
      EXPECT_EQ(session.begin(prompt_of_all, true), 0u);
    }
    const std::vector<int32_t> got = next(session);
    Session cold(longer);
    cold.begin(prompt_of_all, false);
    EXPECT_EQ(got, next(cold));
    answer(longer, session, nullptr, 0, false);
  }
}

}  // namespace
}  // namespace stet
