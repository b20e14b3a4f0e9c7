#include "state/session.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "state/test_model.h"

namespace stet {
namespace {

class SessionTest : public testing::Test {
 protected:
  static constexpr uint32_t kContext = 64;

  // As a plain step does: runs what has no KV row, then commits one token.
  void step(int32_t token) {
    decoder.forward(session.tokens().subspan(session.cached_tokens()), session.cached_tokens(), 1);
    session.commit({&token, 1}, session.committed_tokens());
  }
  std::string error(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.code() == Code::kUsage ? e.what() : "not a usage error";
    }
    return "";
  }

  const test::TestModel model{"synth:tiny:q4_0"};
  WorkerPool pool{test::pool_options(1)};
  Decoder decoder{model.desc, *model.pack, kernels(available_isas().back()), pool, {.context = kContext}, test::unqualified()};
  Session session{decoder};
};

TEST_F(SessionTest, GrowsByCommits) {
  const auto prompt = test::test_tokens(model.desc, 10);
  EXPECT_EQ(session.begin(prompt, true), 0u);
  EXPECT_EQ(session.committed_tokens(), 10u);
  EXPECT_EQ(session.cached_tokens(), 0u);
  EXPECT_EQ(session.room(), kContext - 10);
  step(7);
  step(8);
  EXPECT_EQ(session.committed_tokens(), 12u);
  EXPECT_EQ(session.cached_tokens(), 11u);
  EXPECT_EQ(session.output().size(), 2u);
  EXPECT_EQ(session.output()[1], 8);
  EXPECT_EQ(session.prompt().size(), 10u);
  EXPECT_EQ(session.view().prompt_tokens, 10u);
  EXPECT_EQ(session.view().tokens.size(), 12u);
  EXPECT_EQ(session.restorable(5), 5u);
  EXPECT_EQ(session.restorable(12), 11u);
}

TEST_F(SessionTest, KeepsTheRowsOfACommonBeginning) {
  const auto prompt = test::test_tokens(model.desc, 10);
  session.begin(prompt, true);
  step(7);
  step(8);
  // The output before counts as well, except for its last token, which was not run.
  std::vector<int32_t> next(session.tokens().begin(), session.tokens().end());
  next.push_back(9);
  EXPECT_EQ(session.begin(next, true), 11u);
  EXPECT_EQ(session.cached_tokens(), 11u);
  // The last token of a prompt is always run.
  EXPECT_EQ(session.begin(std::span(next).first(6), true), 5u);
  // Of what was kept, no more is left than what the shorter prompt kept.
  EXPECT_EQ(session.begin(next, true), 5u);
  next[3] = (next[3] + 1) % 100;
  EXPECT_EQ(session.begin(next, true), 3u);
  EXPECT_EQ(session.begin(next, false), 0u);
  EXPECT_EQ(session.begin(next, true), 0u);
}

TEST_F(SessionTest, RefusesPromptsThatCannotRunAndStaysAsItWas) {
  session.begin(test::test_tokens(model.desc, 10), true);
  step(7);
  const uint64_t state = session.state_hash();
  EXPECT_NE(error([&] { session.begin({}, true); }), "");
  const std::string full = error([&] { session.begin(test::test_tokens(model.desc, kContext), true); });
  EXPECT_NE(full.find("has 64 tokens"), std::string::npos) << full;
  for (int32_t bad : {-1, static_cast<int32_t>(model.desc.vocab), INT32_MAX, INT32_MIN}) {
    std::vector<int32_t> tokens = test::test_tokens(model.desc, 5);
    tokens[4] = bad;
    const std::string text = error([&] { session.begin(tokens, true); });
    EXPECT_NE(text.find(fmt::format("token {} is outside", bad)), std::string::npos) << text;
  }
  EXPECT_EQ(session.state_hash(), state);
  EXPECT_NO_THROW(session.begin(test::test_tokens(model.desc, kContext - 1), true));
}

// The invariant that a lost rollback would break.
TEST_F(SessionTest, RefusesToCountRowsThatWereNotRun) {
  session.begin(test::test_tokens(model.desc, 10), true);
  const int32_t token = 3;
  EXPECT_THROW(session.commit({&token, 1}, 11), Error);
  EXPECT_THROW(session.commit({}, 10), Error);
  step(3);
  EXPECT_THROW(session.commit({&token, 1}, 9), Error) << "rows that were there cannot be lost by a commit";
}

TEST_F(SessionTest, StateHashSeesTokensCountersAndRows) {
  const auto prompt = test::test_tokens(model.desc, 10);
  session.begin(prompt, true);
  step(7);
  const uint64_t state = session.state_hash();
  Session other(decoder);
  other.begin(session.tokens(), false);
  EXPECT_NE(other.state_hash(), state) << "another prompt length, no rows";
  // A row beyond the cached ones is invisible; one of them is not.
  const int32_t token = 5;
  decoder.forward({&token, 1}, 10, 0);
  EXPECT_EQ(session.state_hash(), state);
  decoder.forward({&token, 1}, 9, 0);
  EXPECT_NE(session.state_hash(), state);
  decoder.forward(std::span(prompt).subspan(9), 9, 0);
  EXPECT_EQ(session.state_hash(), state);
}

}  // namespace
}  // namespace stet
