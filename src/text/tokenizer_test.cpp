#include "text/tokenizer.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <random>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/golden_for_test.h"
#include "weights/gguf.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr const char* kPres[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "deepseek-v3"};
const EncodeOptions kSpecial{.parse_special = true, .missing = MissingByte::kDrop};

// Ids 0..255 are bytes, then: ab, abc, cd, <|end|> (CONTROL), <|end|>x (CONTROL), <t> (USER_DEFINED), \n\n
// (USER_DEFINED).
struct Small {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  std::vector<std::string> merges{"a b", "ab c", "c d"};
  std::string pre = "gpt-2";

  Small() {
    for (int b = 0; b < 256; ++b) tokens.push_back(bytes_to_alphabet(std::string(1, static_cast<char>(b))));
    for (const char* t : {"ab", "abc", "cd", "<|end|>", "<|end|>x", "<t>", "\n\n"}) tokens.emplace_back(t);
    types.assign(259, 1);
    types.insert(types.end(), {3, 3, 4, 4});
  }
  Metadata metadata() const { return test::make_metadata(pre, tokens, types, merges); }
};
constexpr TokenId kAb = 256, kAbc = 257, kEnd = 259, kEndX = 260, kTool = 261, kBlankLine = 262;

Code code_of(const Metadata& metadata) {
  try {
    Tokenizer tokenizer(metadata);
  } catch (const Error& e) {
    return e.code();
  }
  return Code::kInternal;
}

TEST(Tokenizer, EqualsHuggingFaceOnGeneratedStrings) {
  size_t compared = 0;
  for (const char* pre : kPres) {
    const nlohmann::json golden = test::read_golden(std::string("bpe_") + pre + ".json");
    const Tokenizer tokenizer(test::read_golden_metadata(golden));
    for (const auto& sample : golden.at("cases")) {
      const std::string text = sample.at(0);
      const auto expected = sample.at(1).get<std::vector<TokenId>>();
      const std::vector<TokenId> got = tokenizer.encode(text, kSpecial);
      ASSERT_THAT(got, ElementsAreArray(expected)) << pre << ": " << text;
      ASSERT_EQ(tokenizer.decode(got, true), text);
      ++compared;
    }
  }
  EXPECT_GE(compared, 1300u);
}

// The vectors that come with llama.cpp's vocabulary files.
TEST(Tokenizer, EqualsTheVectorsOfSharedVocabularies) {
  const std::filesystem::path folder = "../shared/data/vocab";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  for (const char* name : {"gpt-2", "starcoder"}) {
    const std::string path = folder / (std::string("ggml-vocab-") + name + ".gguf");
    const Tokenizer tokenizer(GgufFile::open(path)->metadata());
    std::ifstream inputs(path + ".inp", std::ios::binary), outputs(path + ".out");
    const std::string all((std::istreambuf_iterator<char>(inputs)), {});
    const std::string separator = "\n__ggml_vocab_test__\n";
    size_t compared = 0;
    for (size_t at = 0; at < all.size(); ++compared) {
      const size_t end = std::min(all.find(separator, at), all.size());
      std::string line;
      std::getline(outputs, line);
      std::istringstream numbers(line);
      const std::vector<TokenId> expected((std::istream_iterator<TokenId>(numbers)), {});
      const std::string text = all.substr(at, end - at);
      EXPECT_THAT(tokenizer.encode(text), ElementsAreArray(expected)) << name << ": " << text;
      at = end + separator.size();
    }
    EXPECT_GE(compared, 40u) << name;
  }
}

TEST(Tokenizer, ControlTokensAreRecognisedOnlyWhereTheTemplateWroteThem) {
  const Tokenizer tokenizer(Small().metadata());
  const std::vector<TokenId> plain = tokenizer.encode("<|end|>");
  EXPECT_EQ(plain.size(), 7u);
  EXPECT_EQ(tokenizer.decode(plain, false), "<|end|>");
  EXPECT_THAT(tokenizer.encode(std::vector<Span>{{"<|end|>", true}}), ElementsAre(kEnd));
  EXPECT_THAT(tokenizer.encode("<|end|>", {.parse_special = true}), ElementsAre(kEnd));
  // Neither half of a match may come from a message.
  EXPECT_EQ(tokenizer.encode(std::vector<Span>{{"<|en", true}, {"d|>", false}}), plain);
  EXPECT_EQ(tokenizer.encode(std::vector<Span>{{"<|en", false}, {"d|>", true}}), plain);
  EXPECT_EQ(tokenizer.encode(std::vector<Span>{{"<|", true}, {"en", false}, {"d|>", true}}), plain);
  // Template pieces that touch form a token; an empty message between them is nothing.
  EXPECT_THAT(tokenizer.encode(std::vector<Span>{{"<|en", true}, {"", false}, {"d|>", true}}), ElementsAre(kEnd));
  // The longest token whose bytes are all trusted wins.
  EXPECT_THAT(tokenizer.encode(std::vector<Span>{{"<|end|>x", true}}), ElementsAre(kEndX));
  EXPECT_THAT(tokenizer.encode(std::vector<Span>{{"<|end|>", true}, {"x", false}}), ElementsAre(kEnd, 'x'));
}

TEST(Tokenizer, MessagesMergeWithWhatSurroundsThem) {
  const Tokenizer tokenizer(Small().metadata());
  EXPECT_THAT(tokenizer.encode(std::vector<Span>{{"a", true}, {"b", false}, {"c", true}}), ElementsAre(kAbc));
}

TEST(Tokenizer, UserDefinedTokensMatchEverywhereExceptMarkers) {
  Tokenizer tokenizer(Small().metadata());
  EXPECT_THAT(tokenizer.encode("a<t>b\n\n"), ElementsAre('a', kTool, 'b', kBlankLine));
  const std::vector<std::string> literals{"x<t>", "\n\n"};
  tokenizer.set_markers(literals);
  EXPECT_THAT(tokenizer.encode("<t>\n\n"), ElementsAre('<', 't', '>', kBlankLine)) << "white space is no marker";
  EXPECT_THAT(tokenizer.encode(std::vector<Span>{{"<t>", true}, {"<t>", false}}), ElementsAre(kTool, '<', 't', '>'));
  EXPECT_THAT(tokenizer.encode("<t>", {.parse_special = true}), ElementsAre(kTool));
}

TEST(Tokenizer, IgnoreMergesTakesWholePieces) {
  Small small;
  small.merges = {"c d"};  // no way from a, b and c to abc
  EXPECT_THAT(Tokenizer(small.metadata()).encode("abc"), ElementsAre('a', 'b', 'c'));
  small.pre = "llama-bpe";
  EXPECT_THAT(Tokenizer(small.metadata()).encode("abc"), ElementsAre(kAbc));
}

TEST(Tokenizer, BosFollowsTheFileAndThePreTokenizer) {
  Small small;
  Metadata m = small.metadata();
  m["tokenizer.ggml.bos_token_id"] = {uint64_t{kEnd}};
  EXPECT_THAT(Tokenizer(m).encode("ab", {.add_bos = true}), ElementsAre(kAb)) << "gpt-2 adds none by itself";
  m["tokenizer.ggml.add_bos_token"] = {true};
  EXPECT_THAT(Tokenizer(m).encode("ab", {.add_bos = true}), ElementsAre(kEnd, kAb));
  EXPECT_THAT(Tokenizer(m).encode("ab"), ElementsAre(kAb));
  small.pre = "llama-bpe";
  m = small.metadata();
  m["tokenizer.ggml.bos_token_id"] = {uint64_t{kEnd}};
  EXPECT_TRUE(Tokenizer(m).adds_bos());
  m["tokenizer.ggml.add_bos_token"] = {false};
  EXPECT_FALSE(Tokenizer(m).adds_bos());
}

TEST(Tokenizer, StopTokensAreTheDeclaredOnesAndKnownEndMarkers) {
  Metadata m = Small().metadata();
  m["tokenizer.ggml.eos_token_id"] = {uint64_t{kEndX}};
  const Tokenizer tokenizer(m);
  EXPECT_THAT(tokenizer.stop_tokens(), ElementsAre(kEnd, kEndX));
  EXPECT_TRUE(tokenizer.is_stop(kEnd));
  EXPECT_FALSE(tokenizer.is_stop(kTool));
}

TEST(Tokenizer, DecodeGivesExactBytesAndHidesControlTokens) {
  const Tokenizer tokenizer(Small().metadata());
  const std::vector<TokenId> ids{0xFF, kAb, kEnd, 0xE2, kTool};
  EXPECT_EQ(tokenizer.decode(ids, false),
            "\xFF"
            "ab\xE2<t>");
  EXPECT_EQ(tokenizer.decode(ids, true),
            "\xFF"
            "ab<|end|>\xE2<t>");
  EXPECT_THROW(tokenizer.decode(std::vector<TokenId>{263}, false), Error);
  EXPECT_THROW(tokenizer.decode(std::vector<TokenId>{-1}, false), Error);
}

TEST(Tokenizer, AnyBytesSurviveARoundTrip) {
  const Tokenizer tokenizer(test::read_golden_metadata(test::read_golden("bpe_llama-bpe.json")));
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 60, ' ');
    for (char& c : text) c = static_cast<char>(random());
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text), true), text);
  }
}

TEST(Tokenizer, AByteWithoutATokenIsRefusedByName) {
  Small small;
  small.types['\x04'] = 5;  // UNUSED
  const Tokenizer tokenizer(small.metadata());
  try {
    tokenizer.encode("a\x04");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
    EXPECT_THAT(e.what(), HasSubstr("0x04"));
  }
  EXPECT_THAT(tokenizer.encode("a\x04"
                               "b",
                               {.missing = MissingByte::kDrop}),
              ElementsAre('a', 'b'));
  small.types[0xC3] = small.types[0xA9] = 5;  // the bytes of é, a letter: its neighbours meet within one piece
  EXPECT_THAT(Tokenizer(small.metadata()).encode("aéb", {.missing = MissingByte::kDrop}), ElementsAre(kAb));
}

TEST(Tokenizer, AMegabyteWithoutABreakIsEncodedQuickly) {
  Small small;
  std::string run = "a";
  for (int i = 0; i < 8; ++i) {  // aa, aaaa, ...
    small.merges.push_back(run + " " + run);
    run += run;
    small.tokens.push_back(run);
    small.types.push_back(1);
  }
  const Tokenizer tokenizer(small.metadata());
  const std::vector<TokenId> ids = tokenizer.encode(std::string(1 << 20, 'a'));
  EXPECT_EQ(ids.size(), size_t{1} << 12);
}

TEST(Tokenizer, HashComparesTokensAndTypes) {
  Small small;
  const std::string hash = Tokenizer(small.metadata()).vocab_hash();
  EXPECT_EQ(Tokenizer(small.metadata()).vocab_hash(), hash);
  small.merges.pop_back();
  EXPECT_EQ(Tokenizer(small.metadata()).vocab_hash(), hash) << "ids mean the same text";
  small.types[kTool] = 3;
  EXPECT_NE(Tokenizer(small.metadata()).vocab_hash(), hash);
}

TEST(Tokenizer, SyntheticVocabulariesCoverBytes) {
  const Tokenizer tokenizer = Tokenizer::synthetic(1000);
  EXPECT_EQ(tokenizer.size(), 1000u);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("h\xFFi"), false), "h\xFFi");
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{999}, false), "<999>");
  EXPECT_TRUE(tokenizer.stop_tokens().empty());
  EXPECT_THROW(Tokenizer::synthetic(0), Error);
  EXPECT_EQ(Tokenizer::synthetic(64).size(), 64u);
}

TEST(Vocabulary, ContradictionsAreRefused) {
  const auto changed = [](auto&& change) {
    Small small;
    change(small);
    return code_of(small.metadata());
  };
  EXPECT_EQ(changed([](Small& s) { s.types.pop_back(); }), Code::kInput);
  EXPECT_EQ(changed([](Small& s) { s.types[3] = 0; }), Code::kInput);
  EXPECT_EQ(changed([](Small& s) { s.types[3] = 6; }), Code::kUnsupported);
  EXPECT_EQ(changed([](Small& s) { s.tokens[kAb] = "abc"; }), Code::kInput) << "duplicate";
  EXPECT_EQ(changed([](Small& s) { s.tokens[kAb] = "a b"; }), Code::kInput) << "outside the alphabet";
  EXPECT_EQ(changed([](Small& s) { s.tokens[kEnd] = ""; }), Code::kInput);
  EXPECT_EQ(changed([](Small& s) { s.merges.push_back("a b"); }), Code::kInput) << "repeated";
  EXPECT_EQ(changed([](Small& s) { s.merges.push_back("a a"); }), Code::kInput) << "no such result";
  EXPECT_EQ(changed([](Small& s) { s.merges.push_back("zz a"); }), Code::kInput) << "no such token";
  EXPECT_EQ(changed([](Small& s) { s.merges.push_back("ab"); }), Code::kInput);
  EXPECT_EQ(changed([](Small& s) { s.merges.push_back(" a"); }), Code::kInput);
  EXPECT_EQ(changed([](Small& s) { s.types[kAbc] = 3; }), Code::kInput) << "a merge makes a CONTROL token";
  EXPECT_EQ(changed([](Small& s) { s.pre = "default"; }), Code::kUnsupported);
}

TEST(Vocabulary, BadKeysAreRefused) {
  const auto with = [](const char* key, MetaValue value) {
    Metadata m = Small().metadata();
    m[std::string("tokenizer.ggml.") + key] = std::move(value);
    return code_of(m);
  };
  EXPECT_EQ(with("eos_token_id", {uint64_t{263}}), Code::kInput);
  EXPECT_EQ(with("eos_token_id", {int64_t{-1}}), Code::kInput);
  EXPECT_EQ(with("eos_token_id", {std::string("2")}), Code::kInput);
  EXPECT_EQ(with("model", {std::string("llama")}), Code::kUnsupported);
  EXPECT_EQ(with("tokens", {uint64_t{1}}), Code::kInput);
  EXPECT_EQ(with("token_type", {uint64_t{1}}), Code::kInput);
  EXPECT_EQ(with("add_bos_token", {uint64_t{1}}), Code::kInput);
  EXPECT_EQ(with("add_bos_token", {true}), Code::kInput) << "without a BOS token";
  EXPECT_EQ(with("add_eos_token", {true}), Code::kUnsupported);
  EXPECT_EQ(with("add_space_prefix", {true}), Code::kUnsupported);
  EXPECT_EQ(code_of({}), Code::kInput);
}

}  // namespace
}  // namespace stet
