#include "lab/bench/sse.h"

#include <gmock/gmock.h>

#include <vector>

#define STET_FUZZ_IN_TESTS
#include "../tests/fuzz/fuzz_sse.cpp"
#include "base/error.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> parse(std::string_view text, size_t step = std::string::npos) {
  std::vector<std::string> out;
  SseParser parser;
  for (size_t at = 0; at < text.size(); at += std::min(step, text.size()))
    parser.feed(text.substr(at, step), [&](const SseEvent& e) { out.push_back(e.name + "|" + e.data + "|" + e.id); });
  return out;
}

TEST(Sse, LineEndsOfEveryKind) {
  for (const char* text : {"data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r",
                           "data: a\n\r\ndata: b\r\n\n"})
    EXPECT_THAT(parse(text), ElementsAre("message|a|", "message|b|")) << text;
}

TEST(Sse, FieldsByTheStandard) {
  EXPECT_THAT(parse("data:a\ndata:  b\ndata\n\n"), ElementsAre("message|a\n b\n|"));
  EXPECT_THAT(parse("event: error\nid: 7\ndata: x\n\ndata: y\n\n"), ElementsAre("error|x|7", "message|y|7"));
  EXPECT_THAT(parse("\xEF\xBB\xBF"
                    "data: x\n\n\xEF\xBB\xBF"
                    "data: y\n\n"),
              ElementsAre("message|x|"));
  EXPECT_THAT(parse("retry: 10\ndatax: 1\nDATA: 2\n: data: 3\n\n"), IsEmpty());
  EXPECT_THAT(parse("event: ping\n\ndata: x\n\n"), ElementsAre("message|x|"));
  EXPECT_THAT(parse("data: a:b: c\n\n"), ElementsAre("message|a:b: c|"));
}

TEST(Sse, AnEventWithoutItsEmptyLineHasNotArrived) {
  const std::string text = "data: one\n\n: keep-alive\n\ndata: two\n\n";
  for (size_t n = 0; n <= text.size(); ++n) {
    SseParser parser;
    size_t events = 0;
    parser.feed(std::string_view(text).substr(0, n), [&](const SseEvent&) { ++events; });
    EXPECT_EQ(events, n >= text.size() ? 2u : n >= 11 ? 1u : 0u) << n;
    const bool boundary = n == 0 || n == 11 || n == text.size() || (n >= 24 && n <= 25);
    EXPECT_EQ(parser.at_boundary(), boundary) << n;
  }
}

TEST(Sse, CommentsAreCounted) {
  SseParser parser;
  parser.feed(": a\n:\n\n", [](const SseEvent&) { FAIL(); });
  EXPECT_EQ(parser.comments(), 2u);
}

TEST(Sse, EveryCutGivesTheSameEvents) {
  const std::string text =
      "\xEF\xBB\xBF: hello\r\ndata: {\"a\":1}\r\n\r\nevent: e\rdata: b\rdata: c\r\r\ndata: [DONE]\n\n";
  const auto whole = parse(text);
  EXPECT_THAT(whole, ElementsAre("message|{\"a\":1}|", "e|b\nc|", "message|[DONE]|"));
  for (size_t step = 1; step < text.size(); ++step) EXPECT_EQ(parse(text, step), whole) << step;
}

TEST(Sse, WhatIsTooLargeIsRefused) {
  SseParser parser(16);
  EXPECT_THROW(parser.feed("data: 0123456789abcdef", [](const SseEvent&) {}), Error);
  SseParser lines(16);
  EXPECT_THROW(lines.feed("data: 0123456789\ndata: 0123456789\n", [](const SseEvent&) {}), Error);
}

TEST(Sse, HoldsUnderMutation) {
  std::string text = "\xEF\xBB\xBF: c\r\ndata: {}\r\n\r\nevent: e\nid: 1\ndata: b\ndata\n\n";
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    std::string mutant = text;
    for (int k = 0; k < 3; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      mutant[(state >> 33) % mutant.size()] = "\r\n: dataeventid\xEF\xBB\xBF\0"[(state >> 20) % 20];
    }
    fuzz_sse(reinterpret_cast<const uint8_t*>(mutant.data()), mutant.size());
  }
}

}  // namespace
}  // namespace stet
