#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/packet/packet_fixture_test.h"
#include "lab/record/event_lines.h"

namespace stet {
namespace {

const std::string kHash(64, 'a');

std::string whole_log() {
  FakeBench bench;
  bench.speculative = true;
  std::string text = plan_line(kHash);
  for (uint32_t s = 0; s < 2; ++s) {
    text += start_line(bench.start(s));
    for (uint32_t i = 0; i < 3; ++i) text += request_lines(bench.request(s, i));
  }
  const MeasureRecord measure{
      "A", 1, "context 100", R"({"rate":1.5})", 10, 20, FakeBench::sample(10, 1), FakeBench::sample(20, 2)};
  return text + measure_line(measure) + note_line("ledger", R"({"attempt":3})");
}

std::string error_of(const std::string& text) {
  try {
    (void)read_events(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
    return e.what();
  }
  return "";
}

// The log with the first occurrence of one text exchanged.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Events, WhatIsWrittenIsRead) {
  const std::string text = whole_log();
  const EventLog log = read_events(text);
  EXPECT_EQ(log.plan_sha256, kHash);
  ASSERT_EQ(log.starts.size(), 2u);
  ASSERT_EQ(log.requests.size(), 6u);
  ASSERT_EQ(log.measures.size(), 1u);
  ASSERT_EQ(log.notes.size(), 1u);
  EXPECT_EQ(log.notes[0].second, R"({"attempt":3})");
  FakeBench bench;
  bench.speculative = true;
  // Field by field, through the one form that a record has.
  EXPECT_EQ(request_lines(log.requests[4]), request_lines(bench.request(1, 1)));
  EXPECT_EQ(log.requests[4].chunks[7].depth, 2u);
  EXPECT_EQ(log.requests[4].sampling, R"({"temperature":0})");
  EXPECT_EQ(log.requests[4].before.throttle_events, 0u);
}

TEST(Events, DraftTimeAndLogProbabilitiesAreKept) {
  FakeBench bench;
  RequestRecord r = bench.request(0, 0);
  r.chunks[0].draft_ns = 1234;
  r.chunks[0].logprobs = std::vector<double>{-0.25, 0.0, -1.0000001192092896};
  const std::string text = plan_line(kHash) + start_line(bench.start(0)) + request_lines(r);
  const EventLog log = read_events(text);
  EXPECT_EQ(log.requests[0].chunks[0].draft_ns, 1234);
  EXPECT_EQ(log.requests[0].chunks[0].logprobs, r.chunks[0].logprobs);
  EXPECT_FALSE(log.requests[0].chunks[1].logprobs.has_value());
  EXPECT_NE(error_of(with(text, "[-0.25,", "[\"-0.25\",")), "");
  EXPECT_NE(error_of(with(text, "[-0.25,", "[-0.250,")), "") << "one spelling only";
}

TEST(Events, AbsentStaysAbsent) {
  RequestRecord r;
  r.id = "r";
  r.arm = "A";
  r.chunks.emplace_back();
  const std::string text = plan_line(kHash) + start_line({"A", 0, false, "{}", 0}) + request_lines(r);
  const EventLog log = read_events(text);
  const RequestRecord& back = log.requests.at(0);
  EXPECT_FALSE(back.prompt_token_ids || back.usage.cached_tokens || back.before.steal_ticks ||
               back.chunks[0].token_ids);
  EXPECT_EQ(back.sampling, "");
}

TEST(Events, BytesThatAreNoTextBecomeReplacementCharacters) {
  RequestRecord r;
  r.id = "r";
  r.arm = "A";
  r.error = "broken \xff byte";
  const EventLog log = read_events(plan_line(kHash) + start_line({"A", 0, false, "{}", 0}) + request_lines(r));
  EXPECT_EQ(log.requests[0].error, "broken \uFFFD byte");
}

TEST(Events, EveryFaultNamesItsLine) {
  const std::string text = whole_log();
  const std::vector<std::tuple<std::string, std::string, std::string>> changes = {
      {R"("type":"start")", R"("type":"begin")", "line 2: there is no line of type 'begin'"},
      {R"("fresh":true)", R"("fresh":1)", "line 2: 'fresh' is neither true nor false"},
      {R"("fresh":true,)", "", "line 2: 'fresh' is missing"},
      {R"("fresh":true,)", R"("fresh":true,"extra":1,)", "line 2: 'extra' is not known"},
      {R"("index":0)", R"("index":-1)", "line 3: 'index' is not a whole number"},
      {R"("index":0)", R"("index":0.5)", "line 3: 'index' is not a whole number"},
      {R"("index":0)", R"("index":00)", "line 3: not JSON"},
      {R"("index":0)", R"("index":4294967296)", "line 3: 'index' is not a whole number"},
      {R"("index":0)", R"("index": 0)", "line 3: not as stet writes it"},
      {R"("index":0)", R"("index":0,"index":0)", "line 3: two members of one object are called"},
      {R"("channel":"content")", R"("channel":"voice")", "line 4: there is no channel 'voice'"},
      {R"("token_ids":[0])", R"("token_ids":[-1])", "line 4: 'token_ids' holds something that is no token id"},
      {R"("token_ids":[0])", R"("token_ids":"0")", "line 4: 'token_ids' is not a list"},
      {R"({"type":"plan")", R"({"type":"note")", "line 1: the first line names the plan"},
      {kHash, "abc", "line 1: 'sha256' is no SHA-256"},
      {R"("client_ns":1050000000)", R"("client_ns":900000000)", "line 4: 100000000 ns before"},
      {R"({"type":"end")", R"({"type":"note")", "line 124: a line of type 'note' within request 'A.0.0'"},
      {R"("id":"A.0.1")", R"("id":"A.0.0")", "a second request with the id 'A.0.0'"},
      {R"("id":"A.0.1","arm":"A","start":0)", R"("id":"A.0.1","arm":"B","start":0)",
       "start 0 of arm 'B' has not begun"},
      {R"("index":1,)", R"("index":0,)", "request 0 of start 0 of arm 'A' comes after request 0"},
  };
  for (const auto& [from, to, expected] : changes)
    EXPECT_THAT(error_of(with(text, from, to)), testing::HasSubstr(expected)) << from << " -> " << to;
}

TEST(Events, LinesOutOfOrderAreRefused) {
  const FakeBench bench;
  const std::string plan = plan_line(kHash), start = start_line(bench.start(0));
  const std::string begin = request_begin_line(bench.request(0, 0)), end = request_end_line(bench.request(0, 0));
  const std::string chunk = chunk_line(bench.request(0, 0).chunks[0]);
  EXPECT_EQ(error_of(plan + start + begin + chunk + end), "");
  EXPECT_THAT(error_of(plan + start + chunk), testing::HasSubstr("line 3: a line of type 'chunk' outside a request"));
  EXPECT_THAT(error_of(plan + start + end), testing::HasSubstr("line 3: a line of type 'end' outside a request"));
  EXPECT_THAT(error_of(plan + begin + end), testing::HasSubstr("line 2: start 0 of arm 'A' has not begun"));
  EXPECT_THAT(error_of(plan + start + start), testing::HasSubstr("line 3: start 0 of arm 'A' began already"));
  EXPECT_THAT(error_of(plan + start + begin + begin), testing::HasSubstr("line 4: a line of type 'request' within"));
  EXPECT_THAT(error_of(start), testing::HasSubstr("line 1: the first line names the plan"));
  EXPECT_THAT(error_of(plan + plan), testing::HasSubstr("line 2: the first line names the plan"));
}

TEST(Events, ALogCutAnywhereIsCutOffOrShorter) {
  const FakeBench bench;
  RequestRecord request = bench.request(0, 0);
  request.chunks.resize(3);
  const std::string text = plan_line(kHash) + start_line(bench.start(0)) + request_lines(request);
  for (size_t n = 0; n < text.size(); ++n) {
    const std::string cut = text.substr(0, n);
    if (cut == plan_line(kHash) || cut == plan_line(kHash) + start_line(bench.start(0)))
      continue;  // sound, and shorter
    EXPECT_NE(error_of(cut), "") << n;
  }
  EXPECT_THAT(error_of(text.substr(0, text.size() - 1)), testing::HasSubstr("line 7: cut off before its end"));
}

TEST(Events, DeepJsonIsRefused) {
  const std::string deep = std::string(100000, '[');
  EXPECT_THAT(error_of(plan_line(kHash) + deep + "\n"), testing::HasSubstr("line 2: JSON nested deeper than"));
}

TEST(Events, ARecordThatCouldNotBeReadIsNotWritten) {
  RequestRecord r = FakeBench().request(0, 0);
  std::swap(r.chunks[3].client_ns, r.chunks[4].client_ns);
  EXPECT_THROW((void)request_lines(r), Error);
  EXPECT_THROW((void)start_line({"A", 0, true, "no JSON", 0}), Error);
  EXPECT_THROW((void)note_line("n", "[1]"), Error);
}

}  // namespace
}  // namespace stet
