#include "server/api/json_body.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "server/api/api_error.h"

namespace stet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(std::string_view body, const JsonLimits& limits = {}) {
  try {
    parse_json_body(body, limits);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.type, "invalid_request_error");
    return error.what();
  }
  return "";
}

TEST(JsonBody, IsWhatAnotherParserReads) {
  for (const char* text : {"{}", "[]", "null", "true", "-0", "1e-3", "18446744073709551615", "-9223372036854775808",
                           "\"\\u0000\\ud83d\\ude00\"", "[1,[2,[3,{}]],{\"a\":{\"b\":[]},\"c\":null}]",
                           " {\"a\" : [ 1 , 2 ] , \"b\" : \"\\n\" } "})
    EXPECT_EQ(parse_json_body(text), nlohmann::json::parse(text)) << text;
}

TEST(JsonBody, SaysWhereItIsBroken) {
  for (const char* text : {"", " ", "{", "[1,", "{\"a\":}", "{\"a\" 1}", "[1] 2", "nul", "'a'", "[01]", "[1e999]",
                           "\"\\x\"", "\"\\ud800\"", "[NaN]", "{a:1}", "[1,]", "\"\n\""})
    EXPECT_THAT(refusal(text), HasSubstr("not valid JSON")) << text;
  EXPECT_THAT(refusal("{\"a\": 1, \"b\": @}"), HasSubstr("byte 15 of 16"));
}

TEST(JsonBody, RefusesWhatIsNoUtf8) {
  for (const char* text :
       {"\"\xff\"", "{\"\xc3\": 1}", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\xf4\x90\x80\x80\"", "\xff"})
    EXPECT_THAT(refusal(text), HasSubstr("UTF-8")) << text;
}

// What a message quotes of a broken body stays short: the body may have 64 MiB.
TEST(JsonBody, MessagesDoNotGrowWithTheBody) {
  const std::string text(100'000, 'x');
  EXPECT_LT(refusal("\"" + text + "\xff\"").size(), 300u);
  EXPECT_LT(refusal("{\"" + text + "\":1,\"" + text + "\":2}").size(), 300u);
}

TEST(JsonBody, DepthIsLimited) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_THAT(refusal(nested(65)), HasSubstr("deeper than 64"));
  EXPECT_THAT(refusal(std::string(1'000'000, '[')), HasSubstr("deeper than 64"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal(objects), HasSubstr("deeper than 64"));
  EXPECT_EQ(refusal("[[1],[1]]", {.depth = 2}), "");
}

TEST(JsonBody, TheNumberOfValuesIsLimited) {
  EXPECT_EQ(refusal("[1,2]", {.values = 3}), "");
  EXPECT_THAT(refusal("[1,2,3]", {.values = 3}), HasSubstr("more than 3"));
  EXPECT_THAT(refusal("{\"a\":{\"b\":[[]]}}", {.values = 3}), HasSubstr("more than 3"));
}

TEST(JsonBody, AKeyMayNotComeTwice) {
  EXPECT_THAT(refusal(R"({"seed":1,"seed":2})"), HasSubstr("'seed' twice"));
  EXPECT_THAT(refusal(R"({"a":{"b":1,"\u0062":1}})"), HasSubstr("'b' twice"));
  EXPECT_EQ(refusal(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})"), "");
}

}  // namespace
}  // namespace stet
