#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "cli/sampling_flags.h"
#include "cli/token_list.h"
#include "cli/verb.h"

namespace stet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Values {
  bool toggle = false;
  std::string text, choice = "a";
  std::vector<std::string> list;
  uint32_t count = 7;
  float number = 0.5f;
  std::optional<uint64_t> seed;
  std::string positional;
};

void parse(Values& v, const std::vector<std::string>& arguments) {
  Flags flags("test", "A test.");
  flags.positional("NAME", &v.positional, "a name");
  flags.toggle("-q,--quiet", &v.toggle, "help");
  flags.text("-p,--prompt", "TEXT", &v.text, "help");
  flags.choice("--choice", &v.choice, {"a", "b"}, "help");
  flags.texts("--stop", "TEXT", &v.list, "help");
  flags.count("--count", &v.count, 1, 9, "help");
  flags.number("--number", &v.number, "help");
  flags.seed("--seed", &v.seed, "help");
  ASSERT_TRUE(flags.parse(arguments));
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage) << e.what();
    EXPECT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << e.what();
    return e.what();
  }
  return "accepted";
}

std::string parse_refusal(const std::vector<std::string>& arguments) {
  return refusal([&] {
    Values v;
    parse(v, arguments);
  });
}

TEST(Flags, WhatWasGivenIsKnownAlsoWhereItIsTheDefault) {
  uint32_t count = 7;
  bool toggle = false;
  std::vector<std::string> list;
  Flags flags("test", "A test.");
  flags.count("-n,--count", &count, 1, 9, "help");
  flags.toggle("--toggle", &toggle, "help");
  flags.texts("--stop", "TEXT", &list, "help");
  ASSERT_TRUE(flags.parse(std::vector<std::string>{"-n", "7", "--stop", "x"}));
  EXPECT_TRUE(flags.given("--count"));
  EXPECT_TRUE(flags.given("--stop"));
  EXPECT_FALSE(flags.given("--toggle"));
}

TEST(Flags, KeepDefaults) {
  Values v;
  parse(v, {});
  EXPECT_FALSE(v.toggle);
  EXPECT_EQ(v.choice, "a");
  EXPECT_EQ(v.count, 7u);
  EXPECT_FALSE(v.seed.has_value());
}

TEST(Flags, TakeValuesAsTheyAre) {
  Values v;
  parse(v, {"-q", "--prompt", "-5 --x \n[1]", "--stop", "[a,b]", "--stop", "", "--stop", "--quiet", "--number", "-0.25",
            "--seed", "18446744073709551615", "name", "--count=9", "--choice", "b"});
  EXPECT_TRUE(v.toggle);
  EXPECT_EQ(v.text, "-5 --x \n[1]");
  EXPECT_THAT(v.list, ElementsAre("[a,b]", "", "--quiet"));
  EXPECT_EQ(v.number, -0.25f);
  EXPECT_EQ(v.seed, UINT64_MAX);
  EXPECT_EQ(v.positional, "name");
  EXPECT_EQ(v.count, 9u);
  EXPECT_EQ(v.choice, "b");
}

TEST(Flags, RefusalsSayWhatIsAllowed) {
  EXPECT_THAT(parse_refusal({"--prmopt", "x"}), HasSubstr("did you mean --prompt"));
  EXPECT_THAT(parse_refusal({"--zzz"}), HasSubstr("--prompt, --choice, --stop"));
  EXPECT_THAT(parse_refusal({"--choice", "c"}), HasSubstr("choose one of a, b"));
  EXPECT_THAT(parse_refusal({"--prompt"}), HasSubstr("--prompt needs a value"));
  EXPECT_THAT(parse_refusal({"--prompt", "a", "--prompt", "b"}), HasSubstr("--prompt was given 2 times"));
  EXPECT_THAT(parse_refusal({"--prompt=", "a"}), HasSubstr("--prompt= has no value"));
  EXPECT_THAT(parse_refusal({"name", "second"}), HasSubstr("'second' is one argument too many"));
  for (const char* bad : {"0", "10", "-1", "1.5", "x", "", " 1", "1 ", "0x1", "99999999999999999999"})
    EXPECT_THAT(parse_refusal({"--count", bad}), HasSubstr("choose a whole number from 1 to 9")) << bad;
  for (const char* bad : {"x", "", "nan", "inf", "1e99", "0.5x", "1,5"})
    EXPECT_THAT(parse_refusal({"--number", bad}), HasSubstr("give a decimal number")) << bad;
  EXPECT_THAT(parse_refusal({"--seed", "18446744073709551616"}), HasSubstr("from 0 to 18446744073709551615"));
}

TEST(Flags, ClosestIsCloseOrNothing) {
  const std::vector<std::string> words = {"run", "inspect", "tokenize"};
  EXPECT_EQ(closest("inpsect", words), "inspect");
  EXPECT_EQ(closest("tokenise", words), "tokenize");
  EXPECT_EQ(closest("rum", words), "run");
  EXPECT_EQ(closest("serve", words), "");
}

TEST(TokenList, ReadsThreeNotations) {
  for (const char* text : {"1,2,3", "[1, 2, 3]\n", " 1 2\n3 ", "1 ,2, 3"})
    EXPECT_THAT(parse_token_list("--tokens", text), ElementsAre(1, 2, 3)) << text;
  EXPECT_EQ(token_list_json(parse_token_list("x", "5")), "[5]\n");
  for (const char* bad : {"", "[]", "1,,2", "1,2,", "-1", "2147483648", "1.0", "[1", "[[1]]", "a"})
    EXPECT_NE(refusal([&] { parse_token_list("--tokens", bad); }), "accepted") << bad;
}

TEST(SamplingFlags, EscapesOfStopStrings) {
  EXPECT_EQ(unescape("--stop", "a\\nb\\t\\r\\\\\\x0a\\xC3\\xa9"), "a\nb\t\r\\\n\u00e9");
  for (const char* bad : {"\\", "\\q", "\\x", "\\x1", "\\xg0"})
    EXPECT_THAT(refusal([&] { unescape("--stop", bad); }), HasSubstr("after a backslash")) << bad;
}

TEST(SamplingFlags, ChecksWithoutAModel) {
  SamplingFlags flags;
  flags.biases = {"5=-1.5", "7=2"};
  EXPECT_EQ(flags.request().sampling.logit_bias, (std::map<int32_t, float>{{5, -1.5f}, {7, 2.0f}}));
  flags.biases = {"5=1", "5=2"};
  EXPECT_THAT(refusal([&] { (void)flags.request(); }), HasSubstr("token 5 twice"));
  for (const char* bad : {"5", "=1", "5=", "a=1", "-1=1", "5=x", "5=1e9"}) {
    flags.biases = {bad};
    EXPECT_NE(refusal([&] { (void)flags.request(); }), "accepted") << bad;
  }
  flags.biases.clear();
  flags.params.temperature = 1000.0f;
  EXPECT_THAT(refusal([&] { (void)flags.request(); }), HasSubstr("--temperature"));
}

TEST(SamplingFlags, SampledRequestsHaveASeed) {
  SamplingFlags flags;
  EXPECT_EQ(flags.request().sampling.seed, 0u);
  flags.params.temperature = 0.5f;
  EXPECT_NE(flags.request().sampling.seed, flags.request().sampling.seed);
  flags.seed = 3;
  EXPECT_EQ(flags.request().sampling.seed, 3u);
}

TEST(Verbs, HaveNamesAndSummaries) {
  ASSERT_GE(verbs().size(), 7u);
  EXPECT_EQ(verbs()[0].name, "run");
  for (const Verb& verb : verbs()) EXPECT_FALSE(verb.summary.empty()) << verb.name;
}

}  // namespace
}  // namespace stet
