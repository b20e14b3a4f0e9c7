#include "cli/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/exit_code.h"
#include "cli/model_flags.h"
#include "cli/transcript.h"

namespace stet {
namespace {

using testing::HasSubstr;
using testing::Not;

Generation answer() {
  Generation g;
  g.tokens = {1, 2, 3, 4, 5};
  g.text = "a\xff\x1b[31mb";
  g.finish = Finish::stop;
  g.prompt_tokens = 30;
  g.cached_tokens = 10;
  g.first_token_seconds = 0.1;
  g.total_seconds = 0.3;
  g.cycles = {{0, 0, 1, 0.1}, {4, 2, 3, 0.2}, {4, 0, 1, 0.3}};
  return g;
}

EngineInfo info() {
  EngineInfo i;
  i.model_name = "M";
  i.profile = "portable";
  i.activations = "a8";
  i.isa = "scalar";
  i.kv = "f16";
  i.draft = "none";
  i.threads = 2;
  i.context = 512;
  return i;
}

TEST(RunReport, LineShowsWhatMatters) {
  EngineInfo i = info();
  Request r;
  EXPECT_EQ(figures_line(answer(), i, r),
            "prompt 30 tokens (10 cached) at 200 tokens/s; answer 5 tokens at 20.0 tokens/s; digest 4f6addc9659d6fb9; "
            "finish stop");
  r.sampling.temperature = 1.0f;
  r.sampling.seed = 77;
  i.draft = "ngram";
  i.history_accelerated = true;
  i.synthetic = true;
  const std::string line = figures_line(answer(), i, r);
  EXPECT_THAT(line, HasSubstr("synthetic model"));
  EXPECT_THAT(line, HasSubstr("20.0 tokens/s (history-accelerated)"));
  EXPECT_THAT(line, HasSubstr("draft ngram: 1.67 tokens a cycle, accepted by position 50 50 0 0 %"));
  EXPECT_THAT(line, HasSubstr(", seed 77;"));
}

TEST(RunReport, LineOfAnAnswerWithoutTokens) {
  Generation g = answer();
  g.tokens.clear();
  g.cycles.clear();
  g.finish = Finish::cancelled;
  const std::string line = figures_line(g, info(), {});
  EXPECT_THAT(line, HasSubstr("answer 0 tokens"));
  EXPECT_THAT(line, HasSubstr("finish cancelled"));
  EXPECT_THAT(line, Not(HasSubstr("nan")));
}

TEST(RunReport, JsonIsOneObjectOfTheContract) {
  Request r;
  const std::string text = run_json(answer(), info(), r);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const auto j = nlohmann::json::parse(text);
  EXPECT_EQ(j["text"], "a\ufffd\x1b[31mb");
  EXPECT_EQ(j["token_ids"], nlohmann::json({1, 2, 3, 4, 5}));
  EXPECT_EQ(j["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(j["acceptance"], nlohmann::json({0.5, 0.5, 0.0, 0.0}));
  EXPECT_TRUE(j["seed"].is_null());
  EXPECT_EQ(j["finish"], "stop");
  r.sampling.temperature = 0.5f;
  r.sampling.seed = 12;
  EXPECT_EQ(nlohmann::json::parse(run_json(answer(), info(), r))["seed"], 12);
}

TEST(RunReport, LoadLineSaysSynthetic) {
  EngineInfo i = info();
  EXPECT_THAT(load_line(i), Not(HasSubstr("synthetic")));
  i.synthetic = true;
  EXPECT_THAT(load_line(i), HasSubstr("(synthetic)"));
}

TEST(Transcript, JsonAndMarkdown) {
  const std::vector<ChatMessage> messages = {{"system", "s"}, {"user", "q\n"}, {"assistant", "a\xff"}};
  const auto j = nlohmann::json::parse(transcript_json(info(), messages));
  EXPECT_EQ(j["model"], "M");
  ASSERT_EQ(j["messages"].size(), 3u);
  EXPECT_EQ(j["messages"][1], (nlohmann::json{{"role", "user"}, {"content", "q\n"}}));
  EXPECT_EQ(j["messages"][2]["content"], "a\ufffd");
  EXPECT_EQ(transcript_markdown(info(), messages),
            "# Conversation with M\n\n## system\n\ns\n\n## user\n\nq\n\n## assistant\n\na\xff\n");
}

TEST(ExitCode, IsTheContract) {
  EXPECT_EQ(exit_code(Code::kInternal), 1);
  EXPECT_EQ(exit_code(Code::kUsage), 2);
  EXPECT_EQ(exit_code(Code::kInput), 3);
  EXPECT_EQ(exit_code(Code::kUnsupported), 4);
  EXPECT_EQ(exit_code(Code::kResource), 5);
  EXPECT_EQ(exit_code(Code::kDiverged), 6);
  EXPECT_EQ(exit_code(Code::kCancelled), 130);
}

}  // namespace
}  // namespace stet
