#include "server/api/answer.h"

#include <gmock/gmock.h>

#include "server/api/api_test_util.h"
#include "server/loop/loop_test_util.h"

namespace stet {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

// A job by hand: what the loop would call, in any order of events that it may.
class AnswerTest : public testing::Test {
 protected:
  std::shared_ptr<Answer> make(bool stream, std::chrono::milliseconds keep_alive = std::chrono::hours(1),
                               double deadline = 0) {
    ApiOptions options;
    options.model_id = "m";
    options.request_deadline = deadline;
    options.keep_alive = keep_alive;
    options.log = [this](std::string_view line) { log.emplace_back(line); };
    shared = std::make_shared<SharedState>(options);
    exchange = std::make_shared<test::FakeExchange>("POST", "/v1/chat/completions");
    ApiRequest request;
    request.stream = stream;
    request.request.prompt = {1, 2, 3};
    FaceContext context;
    context.id = "x";
    context.model = "m";
    return std::make_shared<Answer>(exchange, "/v1/chat/completions", request, make_chat_face(context), shared);
  }
  static Generation generation(Finish finish = Finish::length) {
    Generation g;
    g.tokens = {70, 71};
    g.text = "Hi";
    g.finish = finish;
    g.prompt_tokens = 3;
    g.cycles = {kFirst, kSecond};
    return g;
  }
  static void two_cycles(Answer& answer) {
    const int32_t ids[] = {70, 71};
    answer.cycle({kFirst, {ids, 1}, "H", {}});
    answer.cycle({kSecond, {ids + 1, 1}, "i", {}});
  }
  std::string metrics() { return shared->metrics.text({}, 1); }

  static constexpr Cycle kFirst = {.proposed = 2, .accepted = 0, .emitted = 1, .seconds = 0.5};
  static constexpr Cycle kSecond = {.proposed = 1, .accepted = 0, .emitted = 1, .seconds = 0.75};
  std::shared_ptr<SharedState> shared;
  std::shared_ptr<test::FakeExchange> exchange;
  std::vector<std::string> log;
};

TEST_F(AnswerTest, AStreamBeginsWithItsFirstToken) {
  const auto answer = make(true);
  answer->progress(JobStage::queued, 1, 2);
  answer->progress(JobStage::prefill, 1, 3);
  EXPECT_FALSE(exchange->begun());
  two_cycles(*answer);
  EXPECT_TRUE(exchange->begun());
  EXPECT_THAT(exchange->events(), SizeIs(3)) << "role, H, i";
  answer->done(generation());
  EXPECT_TRUE(exchange->complete());
  EXPECT_EQ(exchange->events().back(), "[DONE]");
  EXPECT_THAT(log, SizeIs(1));
  EXPECT_THAT(log[0], HasSubstr("200 from unix"));
  EXPECT_THAT(log[0], HasSubstr("prompt 3 (0 cached), answer 2, length"));
  EXPECT_THAT(log[0], HasSubstr("4.0 tokens/s"));
}

TEST_F(AnswerTest, ASilentStreamIsKeptAlive) {
  const auto answer = make(true, std::chrono::milliseconds(0));
  answer->progress(JobStage::queued, 1, 2);
  answer->progress(JobStage::prefill, 128, 300);
  const auto chunks = exchange->chunks();
  ASSERT_THAT(chunks, SizeIs(3));
  EXPECT_EQ(chunks[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(chunks[1]["stet"], Json::parse(R"({"stage": "queued", "done": 1, "total": 2})"));
  EXPECT_EQ(chunks[2]["stet"], Json::parse(R"({"stage": "prefill", "done": 128, "total": 300})"));
  answer->cycle({kFirst, {}, "", {}});
  EXPECT_EQ(exchange->chunks().back()["stet"]["stage"], "decode") << "tokens without text are silence, too";
}

TEST_F(AnswerTest, AWholeAnswerIsSentOnce) {
  const auto answer = make(false, std::chrono::milliseconds(0));
  answer->progress(JobStage::queued, 1, 2);
  two_cycles(*answer);
  EXPECT_FALSE(exchange->ended());
  answer->done(generation(Finish::stop));
  EXPECT_EQ(exchange->answer().status, 200);
  EXPECT_EQ(exchange->json()["choices"][0]["message"]["content"], "Hi");
  EXPECT_EQ(exchange->json()["stet"]["digest"], generation().digest());
}

TEST_F(AnswerTest, AnErrorBeforeTheFirstByteHasAStatus) {
  for (const bool stream : {true, false}) {
    const auto answer = make(stream);
    answer->progress(JobStage::prefill, 1, 3);
    answer->failed(Error(Code::kInput, "logit 7 is NaN"));
    EXPECT_FALSE(exchange->begun());
    EXPECT_EQ(exchange->answer().status, 500);
    EXPECT_EQ(exchange->json()["error"]["type"], "server_error");
    EXPECT_EQ(exchange->json()["error"]["message"], "logit 7 is NaN");
    EXPECT_THAT(log.back(), HasSubstr(" 500 from unix"));
    EXPECT_THAT(log.back(), HasSubstr("failed: logit 7 is NaN"));
    EXPECT_THAT(metrics(), HasSubstr("stet_generations_total{finish=\"failed\"} 1"));
  }
}

TEST_F(AnswerTest, AnErrorAfterTheFirstByteIsAnEventAndACut) {
  const auto answer = make(true);
  two_cycles(*answer);
  answer->failed(Error(Code::kInternal, "internal error"));
  EXPECT_TRUE(exchange->ended());
  EXPECT_FALSE(exchange->complete());
  EXPECT_EQ(exchange->chunks().back()["error"]["message"], "internal error");
  for (const std::string& event : exchange->events()) EXPECT_NE(event, "[DONE]");
}

TEST_F(AnswerTest, DeadlinesAndStops) {
  for (const bool begun : {false, true}) {
    auto answer = make(true, std::chrono::hours(1), 2.5);
    ASSERT_TRUE(answer->deadline());
    EXPECT_EQ(*answer->deadline() - exchange->request().arrived, std::chrono::milliseconds(2500));
    if (begun) two_cycles(*answer);
    answer->cancelled("deadline", generation(Finish::cancelled));
    if (begun) {
      EXPECT_FALSE(exchange->complete());
      EXPECT_EQ(exchange->chunks().back()["error"]["code"], "deadline_exceeded");
    } else {
      EXPECT_EQ(exchange->answer().status, 504);
      EXPECT_EQ(exchange->answer().headers.at("x-should-retry"), "false");
    }
  }
  const auto answer = make(false);
  EXPECT_FALSE(answer->deadline());
  answer->cancelled("stopping", generation(Finish::cancelled));
  EXPECT_EQ(exchange->answer().status, 503);
  EXPECT_EQ(exchange->json()["error"]["code"], "stopping");
}

TEST_F(AnswerTest, WhoHasLeftIsNotWaitedForAndNotAnswered) {
  const auto answer = make(false);
  EXPECT_TRUE(answer->wanted());
  exchange->leave();
  EXPECT_FALSE(answer->wanted());
  answer->cancelled("disconnected", generation(Finish::cancelled));
  EXPECT_FALSE(exchange->ended());
  EXPECT_THAT(log.at(0), HasSubstr(" 499 "));
  EXPECT_THAT(metrics(), HasSubstr("stet_requests_total{endpoint=\"/v1/chat/completions\",status=\"499\"} 1"));
}

TEST_F(AnswerTest, IsCounted) {
  const auto answer = make(true);
  two_cycles(*answer);
  answer->done(generation());
  const std::string text = metrics();
  for (const char* line :
       {"stet_requests_total{endpoint=\"/v1/chat/completions\",status=\"200\"} 1",
        "stet_generations_total{finish=\"length\"} 1", "stet_prompt_tokens_total 3",
        "stet_cached_prompt_tokens_total 0", "stet_generated_tokens_total 2", "stet_cycles_total 2",
        "stet_proposed_tokens_total 3", "stet_accepted_tokens_total 0",
        "stet_position_proposed_total{position=\"1\"} 2", "stet_position_proposed_total{position=\"2\"} 1",
        "stet_position_accepted_total{position=\"1\"} 0", "stet_time_to_first_token_seconds_count 1",
        "stet_inter_token_seconds_count 1", "stet_request_seconds_count 1", "stet_tokens_per_cycle_count 2",
        "stet_tokens_per_cycle_sum 2"})
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
}

// Lines of a log are for terminals.
TEST_F(AnswerTest, LogLinesHoldNoControlCharacters) {
  make(false);
  test::FakeExchange hostile("GET", "/\x1b]52;c;x\x07\n#99 forged");
  shared->log_request(hostile.request(), 404);
  EXPECT_THAT(log.at(0), HasSubstr("/\\x1b]52;c;x\\x07\\n#99 forged"));
}

TEST_F(AnswerTest, AHintIsNamedOnce) {
  make(false);
  shared->name_hints({"user", "messages[0].content[1].cache_control"});
  shared->name_hints({"messages[3].content[0].cache_control", "metadata", "user"});
  ASSERT_THAT(log, SizeIs(3));
  EXPECT_THAT(log[1], HasSubstr("messages[].content[].cache_control"));
  EXPECT_THAT(log[2], HasSubstr("metadata"));
}

}  // namespace
}  // namespace stet
