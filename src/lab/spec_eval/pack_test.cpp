#include "lab/spec_eval/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "lab/spec_eval/text_source.h"

namespace stet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// About as a subword tokenizer counts: four bytes a token, and one for every line break.
uint32_t four_bytes(std::string_view text) { return static_cast<uint32_t>((text.size() + 3) / 4); }
uint32_t bytes(std::string_view text) { return static_cast<uint32_t>(text.size()); }

TEST(Contract, IsTheLabsInNumbers) {
  const SpecEvalContract& c = spec_eval_contract();
  EXPECT_EQ(c.requests(), 64u);
  EXPECT_EQ(c.repetitions, 2u);
  EXPECT_EQ(c.ordered_requests, 128u);
  EXPECT_EQ(c.sha256.size(), 64u);
  EXPECT_DOUBLE_EQ(c.pack_wall, 0.05);
  EXPECT_NO_THROW(c.check_policy_inputs({"draft confidence", "context length"}));
  EXPECT_THROW(c.check_policy_inputs({"prompt hash"}), Error);
  EXPECT_THROW(c.check_policy_inputs({"the weather"}), Error);
}

TEST(TextSource, NeverRepeatsItself) {
  for (const TextSource s :
       {TextSource::prose, TextSource::code, TextSource::math, TextSource::extraction, TextSource::adversarial}) {
    Draws d(1, "test");
    std::string text;
    while (text.size() < 24000) text += next_piece(s, d);  // about what 4,096 tokens hold, and half as much again
    EXPECT_GE(unique_8gram_share(text), 0.97) << static_cast<int>(s);
    EXPECT_FALSE(repeats_a_long_line(text)) << static_cast<int>(s);
  }
}

TEST(TextSource, SharesAreMeasured) {
  EXPECT_EQ(unique_8gram_share("one two three"), 1.0);
  EXPECT_EQ(unique_8gram_share("a b c d e f g h"), 1.0);
  // Nine copies of eight words: 65 sequences, of which every one occurs again.
  std::string loop;
  for (int i = 0; i < 9; ++i) loop += "a b c d e f g h ";
  EXPECT_EQ(unique_8gram_share(loop), 0.0);
  // The eight sequences that begin with the second to ninth word of two copies occur once, the first of both twice.
  EXPECT_DOUBLE_EQ(unique_8gram_share("a b c d e f g h a b c d e f g h"), 7.0 / 9.0);
  EXPECT_TRUE(repeats_a_long_line(
      "this line is longer than forty bytes, is it not\nx\nthis line is longer than forty bytes, is it not\n"));
  EXPECT_FALSE(repeats_a_long_line("short\nshort\n"));
}

TEST(Draws, DependOnSeedAndUse) {
  Draws a(1, "pack A"), again(1, "pack A"), b(1, "pack B"), other(2, "pack A");
  std::string of_a, of_again, of_b, of_other;
  for (int i = 0; i < 20; ++i) {
    of_a += fmt::format("{} ", a.below(1000));
    of_again += fmt::format("{} ", again.below(1000));
    of_b += fmt::format("{} ", b.below(1000));
    of_other += fmt::format("{} ", other.below(1000));
  }
  EXPECT_EQ(of_a, of_again);
  EXPECT_NE(of_a, of_b);
  EXPECT_NE(of_a, of_other);
}

TEST(Pack, HoldsTheContract) {
  const SpecEvalContract& c = spec_eval_contract();
  const auto a = generate_pack(c, 42, "A", 1.0, four_bytes), b = generate_pack(c, 42, "B", 1.0, four_bytes);
  EXPECT_THAT(pack_faults(c, a, 1.0), IsEmpty());
  EXPECT_THAT(pack_faults(c, b, 1.0), IsEmpty());
  std::set<std::string> prompts;
  uint32_t longest = 0, long_requests = 0;
  for (const auto* pack : {&a, &b})
    for (const PackRequest& r : *pack) {
      EXPECT_TRUE(prompts.insert(r.prompt).second) << "the packs share a prompt";
      longest = std::max(longest, r.prompt_tokens);
      long_requests += r.is_long;
    }
  EXPECT_EQ(long_requests, 32u);
  EXPECT_GE(longest, 4015u);
  EXPECT_LE(longest, 4096u);
}

TEST(Pack, IsAFunctionOfItsSeed) {
  const SpecEvalContract& c = spec_eval_contract();
  const std::string one = pack_sha256(generate_pack(c, 7, "A", 0.1, four_bytes));
  EXPECT_EQ(one, pack_sha256(generate_pack(c, 7, "A", 0.1, four_bytes)));
  EXPECT_NE(one, pack_sha256(generate_pack(c, 8, "A", 0.1, four_bytes)));
  EXPECT_NE(one, pack_sha256(generate_pack(c, 7, "B", 0.1, four_bytes)));
}

// Of this seed, by whatever compiler: another hash means that texts are drawn in another order.
TEST(Pack, IsTheCommittedOne) {
  EXPECT_EQ(pack_sha256(generate_pack(spec_eval_contract(), 7, "A", 0.1, four_bytes)),
            "7c9b707e6ec5d0a206db6b62105ecccb29548ed9a44bd1b18be59df7d7fae714");
  EXPECT_EQ(pack_sha256(generate_pack(spec_eval_contract(), 7, "B", 1.0, four_bytes)),
            "889a4830c4f9711ba9caa71136cc645c3427e3ded2ac324b57b02c562dc298df");
}

TEST(Pack, TheOrderIsMixed) {
  const auto pack = generate_pack(spec_eval_contract(), 3, "A", 0.1, four_bytes);
  uint32_t changes = 0;
  for (size_t i = 1; i < pack.size(); ++i) changes += pack[i].is_long != pack[i - 1].is_long;
  EXPECT_GT(changes, 8u) << "long and short ones alternate";
}

TEST(Pack, SmallScalesWorkForByteTokens) {
  const SpecEvalContract& c = spec_eval_contract();
  for (const double scale : {0.5, 0.1, 0.05})
    EXPECT_THAT(pack_faults(c, generate_pack(c, 5, "A", scale, bytes), scale), IsEmpty()) << scale;
}

TEST(Pack, FaultsAreNamed) {
  const SpecEvalContract& c = spec_eval_contract();
  auto pack = generate_pack(c, 5, "A", 0.2, four_bytes);
  pack[3].prompt = pack[4].prompt;
  pack[5].max_tokens = 100000;
  pack.pop_back();
  const std::string all = ::testing::PrintToString(pack_faults(c, pack, 0.2));
  EXPECT_THAT(all, HasSubstr("a prompt occurs twice"));
  EXPECT_THAT(all, HasSubstr("answers of 100000 tokens"));
  EXPECT_THAT(all, HasSubstr("63 requests instead of 64"));
}

}  // namespace
}  // namespace stet
