#include "lab/bench/suite.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "base/error.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

// Of the runs of eight words, the share that occurs once.
double unique_share(const std::string& text) {
  const std::vector<std::string> all = words(text);
  std::map<std::vector<std::string>, int> runs;
  for (size_t i = 0; i + 8 <= all.size(); ++i) ++runs[{all.begin() + i, all.begin() + i + 8}];
  double once = 0, total = 0;
  for (const auto& [run, count] : runs) once += count == 1, total += count;
  return once / total;
}

// A small sound suite with one thing replaced.
std::string suite_text(const std::string& from = "", const std::string& to = "") {
  std::string text =
      R"({"suite_id":"s","version":1,"description":"d","cold":true,"repeats_allowed":true,"ordered":true,"nonce":false,)"
      R"("max_tokens":8,"steps":[{"id":"a","class":"c","messages":[{"role":"user","content":"hi"}],"max_tokens":4},)"
      R"({"rounds":2,"steps":[{"id":"b","class":"c","messages":[{"role":"user","content":"ho"}],"expect":{"exact":"x"}}]}]})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

std::string refusal(const std::string& text) {
  try {
    parse_suite(text, "test");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
    return e.what();
  }
  return "accepted";
}

TEST(Suite, EveryEmbeddedSuiteIsSound) {
  for (const std::string_view name : suite_names()) {
    const Suite suite = load_suite(std::string(name));
    EXPECT_EQ(suite.id, name);
    EXPECT_EQ(suite.sha256.size(), 64u);
    EXPECT_TRUE(suite.cold);
    for (const SuiteStep& step : suite.steps) EXPECT_GT(step.max_tokens, 0u) << step.id;
  }
}

TEST(Suite, RealisticPromptsAreUniqueProfessionalWork) {
  const Suite suite = load_suite("realistic-v1");
  std::set<std::string> classes, prompts;
  for (const SuiteStep& step : suite.steps) {
    const size_t n = words(step.messages.at(0).content).size();
    EXPECT_GE(n, 40u) << step.id;
    EXPECT_LE(n, 70u) << step.id;
    EXPECT_FALSE(step.ideal.has_value()) << step.id;
    classes.insert(step.step_class);
    prompts.insert(step.messages[0].content);
  }
  EXPECT_GE(suite.steps.size(), 12u);
  EXPECT_EQ(prompts.size(), suite.steps.size());
  EXPECT_GE(classes.size(), 5u);
  EXPECT_TRUE(suite.nonce);
  EXPECT_FALSE(suite.repeats_allowed);
}

TEST(Suite, CanariesAskTheFirstQuestionAgain) {
  const Suite suite = load_suite("canary-v1");
  ASSERT_EQ(suite.steps.size(), 6u);
  EXPECT_TRUE(suite.ordered && suite.repeats_allowed && !suite.nonce);
  EXPECT_EQ(messages_json(suite.steps[0].messages), messages_json(suite.steps[2].messages));
  EXPECT_NE(messages_json(suite.steps[0].messages), messages_json(suite.steps[1].messages));
  for (const SuiteStep& step : suite.steps) EXPECT_TRUE(step.ideal.has_value()) << step.id;
}

TEST(Suite, LongPromptsDoNotRepeatThemselves) {
  const Suite suite = load_suite("long-v1");
  std::set<std::string> classes;
  for (const SuiteStep& step : suite.steps) {
    EXPECT_GE(unique_share(step.messages.at(0).content), 0.9) << step.id;
    classes.insert(step.step_class);
  }
  EXPECT_GE(classes.size(), 5u);
  EXPECT_EQ(suite.steps.size(), 10u);
}

TEST(Suite, BoundaryCrossesTheRoundsThatRolledOver) {
  const Suite suite = load_suite("boundary-v1");
  std::map<uint32_t, int> rounds;
  int cancelled = 0;
  for (const SuiteStep& step : suite.steps) {
    if (step.round > 0) ++rounds[step.round];
    cancelled += step.cancel_after_tokens.has_value();
  }
  EXPECT_EQ(rounds.size(), 70u);
  for (const auto& [round, count] : rounds) EXPECT_EQ(count, 6) << round;
  EXPECT_EQ(cancelled, 3);
  EXPECT_EQ(suite.steps.front().id, "next-fresh");
  for (const SuiteStep& step : suite.steps) {
    if (step.step_class == "next") {
      EXPECT_EQ(messages_json(step.messages), messages_json(suite.steps[0].messages));
    }
  }
}

TEST(Suite, UnrollsBlocksAndInheritsMaxTokens) {
  const Suite suite = parse_suite(suite_text(), "test");
  ASSERT_EQ(suite.steps.size(), 3u);
  EXPECT_EQ(suite.steps[0].id, "a");
  EXPECT_EQ(suite.steps[0].max_tokens, 4u);
  EXPECT_EQ(suite.steps[0].round, 0u);
  EXPECT_EQ(suite.steps[1].id, "b@1");
  EXPECT_EQ(suite.steps[2].id, "b@2");
  EXPECT_EQ(suite.steps[2].round, 2u);
  EXPECT_EQ(suite.steps[2].max_tokens, 8u);
  EXPECT_EQ(suite.steps[2].ideal, "x");
  EXPECT_EQ(suite.most_tokens(), 8u);
}

TEST(Suite, AnotherByteIsAnotherSuite) {
  EXPECT_NE(parse_suite(suite_text(), "test").sha256, parse_suite(suite_text("\"hi\"", "\"hi \""), "test").sha256);
}

TEST(Suite, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(refusal(suite_text("\"hi\"", "7")), HasSubstr("'content' is not a string"));
  EXPECT_THAT(refusal(suite_text("\"user\"", "\"tool\"")), HasSubstr("the role of a message is 'tool'"));
  EXPECT_THAT(refusal(suite_text("\"user\"", "\"system\"")), HasSubstr("the last message is not the user's"));
  EXPECT_THAT(refusal(suite_text("\"hi\"", "\"\"")), HasSubstr("a message is empty"));
  EXPECT_THAT(refusal(suite_text("\"id\":\"a\"", "\"id\":\"A@1\"")), HasSubstr("not made of a-z"));
  EXPECT_THAT(refusal(suite_text("\"max_tokens\":4", "\"max_token\":4")), HasSubstr("'max_token' is not known"));
  EXPECT_THAT(refusal(suite_text("\"max_tokens\":4", "\"max_tokens\":0")),
              HasSubstr("'max_tokens' is not a whole number from 1"));
  EXPECT_THAT(refusal(suite_text("\"rounds\":2", "\"rounds\":1001")),
              HasSubstr("'rounds' is not a whole number from 1 to 1000"));
  EXPECT_THAT(refusal(suite_text("\"nonce\":false", "\"nonce\":true")), HasSubstr("contradict each other"));
  EXPECT_THAT(refusal(suite_text("\"repeats_allowed\":true", "\"repeats_allowed\":false")),
              HasSubstr("step b@2 repeats a prompt"));
  EXPECT_THAT(refusal(suite_text("\"id\":\"b\"", "\"id\":\"a\"")), HasSubstr("accepted"));
  EXPECT_THAT(refusal(suite_text("\"cold\":true,", "")), HasSubstr("'cold' is missing"));
  EXPECT_THAT(refusal(suite_text().substr(0, 300)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(suite_text("{\"exact\":\"x\"}", "{\"exact\":\"x\",\"near\":1}")),
              HasSubstr("'near' is not known"));
}

TEST(Suite, NamesThatAreNoneAreAnsweredWithTheList) {
  try {
    load_suite("realistic");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("canary-v1, realistic-v1, boundary-v1, long-v1"));
  }
  EXPECT_THROW(load_suite("no/such/file.json"), Error);
}

TEST(Suite, ANonceMakesEveryPromptAnotherOne) {
  const Suite suite = load_suite("realistic-v1");
  std::set<std::string> first_words;
  for (uint32_t repeat = 0; repeat < 3; ++repeat)
    for (const SuiteStep& step : suite.steps) {
      const std::string text = step_messages(suite, step, 5, repeat).at(0).content;
      EXPECT_TRUE(text.ends_with(step.messages[0].content));
      EXPECT_TRUE(first_words.insert(text.substr(0, 14)).second) << text;
    }
  const SuiteStep& step = suite.steps[0];
  EXPECT_EQ(step_messages(suite, step, 5, 1).at(0).content, step_messages(suite, step, 5, 1).at(0).content);
  EXPECT_NE(step_messages(suite, step, 5, 1).at(0).content, step_messages(suite, step, 6, 1).at(0).content);
  const Suite canary = load_suite("canary-v1");
  EXPECT_EQ(step_messages(canary, canary.steps[0], 5, 1).at(0).content, canary.steps[0].messages[0].content);
}

TEST(Suite, StepsAreChosenByName) {
  const Suite suite = parse_suite(suite_text(), "test");
  EXPECT_EQ(with_steps(suite, {"b"}).steps.size(), 2u);
  EXPECT_THROW(with_steps(suite, {"b", "z"}), Error);
}

TEST(Suite, MessagesSurviveTheirJson) {
  const std::vector<SuiteMessage> messages = {{"system", "Be \"brief\".\n"}, {"user", "h\u00e9 \\"}};
  const std::string json = messages_json(messages);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_EQ(messages_json(parse_messages(json, "test")), json);
}

}  // namespace
}  // namespace stet
