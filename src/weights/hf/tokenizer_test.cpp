#include "weights/hf/tokenizer.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

const char* const kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// DeepSeek V3 and V4, whose files hold line breaks themselves where other files spell them.
const char* const kDeepSeek[] = {
    R"(\p{N}{1,3})", "[一-龥\u3040-ゟ゠-ヿ]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

LargeJson byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}
LargeJson split(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}
LargeJson sequence(const std::vector<LargeJson>& steps) { return {{"type", "Sequence"}, {"pretokenizers", steps}}; }

// Four tokens, an added one between them and one behind, with GPT-2's rules.
LargeJson some_tokenizer() {
  return LargeJson::parse(R"({
    "version": "1.0", "normalizer": null, "post_processor": null,
    "added_tokens": [{"id": 2, "content": "<s>", "special": true, "lstrip": false, "rstrip": false, "single_word": false},
                     {"id": 4, "content": "<tool>", "special": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false, "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "ab": 3}, "merges": ["a b"]}})");
}

Metadata read(const LargeJson& tokenizer, const HfTokenIds& ids = {}, uint64_t vocab = 6) {
  Metadata m;
  add_hf_tokenizer(tokenizer, "t.json", vocab, ids, m);
  return m;
}

void expect_refused(const LargeJson& tokenizer, Code code, const std::string& part, const HfTokenIds& ids = {}) {
  try {
    read(tokenizer, ids);
    ADD_FAILURE() << "accepted: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

const Strings& strings(const Metadata& m, const char* key) {
  return *std::get<std::shared_ptr<const Strings>>(m.at(key).value);
}

TEST(HfTokenizer, IsTheVocabularyOfAGgufFile) {
  const Metadata m = read(some_tokenizer(), {.bos = 2, .pad = 4, .eos = {4, 2}});
  EXPECT_THAT(strings(m, "tokenizer.ggml.tokens"), ElementsAre("a", "b", "<s>", "ab", "<tool>", "[PAD5]"));
  EXPECT_THAT(strings(m, "tokenizer.ggml.merges"), ElementsAre("a b"));
  std::vector<uint64_t> types;
  for (const MetaValue& v : *std::get<std::shared_ptr<const MetaArray>>(m.at("tokenizer.ggml.token_type").value))
    types.push_back(std::get<uint64_t>(v.value));
  EXPECT_THAT(types, ElementsAre(1, 1, 3, 1, 4, 5));
  EXPECT_EQ(std::get<std::string>(m.at("tokenizer.ggml.pre").value), "gpt-2");
  EXPECT_EQ(std::get<uint64_t>(m.at("tokenizer.ggml.bos_token_id").value), 2u);
  EXPECT_EQ(std::get<uint64_t>(m.at("tokenizer.ggml.eos_token_id").value), 4u);
  EXPECT_EQ(std::get<uint64_t>(m.at("tokenizer.ggml.eot_token_id").value), 2u);
  EXPECT_FALSE(m.contains("tokenizer.ggml.eom_token_id"));
  EXPECT_FALSE(std::get<bool>(m.at("tokenizer.ggml.add_bos_token").value));
}

TEST(HfTokenizer, MergesOfBothSpellings) {
  LargeJson t = some_tokenizer();
  t["model"]["merges"] = LargeJson::parse(R"([["a", "b"]])");
  EXPECT_THAT(strings(read(t), "tokenizer.ggml.merges"), ElementsAre("a b"));
  t["model"]["merges"] = LargeJson::parse(R"([["a", "b", "c"]])");
  expect_refused(t, Code::kInput, "entry 0 of merges");
}

TEST(HfTokenizer, BeginsWithBosWhenThePostProcessorSaysSo) {
  LargeJson t = some_tokenizer();
  const LargeJson bos =
      LargeJson::parse(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                   {"Sequence": {"id": "A", "type_id": 0}}]})");
  for (const LargeJson& post :
       {bos, LargeJson{{"type", "Sequence"}, {"processors", {LargeJson{{"type", "ByteLevel"}}, bos}}}}) {
    t["post_processor"] = post;
    EXPECT_TRUE(std::get<bool>(read(t, {.bos = 2, .pad = {}, .eos = {}}).at("tokenizer.ggml.add_bos_token").value));
    expect_refused(t, Code::kUnsupported, "begin with something other than bos_token_id");
  }
  t["post_processor"] = bos;
  t["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "<s>"}}}});
  expect_refused(t, Code::kUnsupported, "prompts end with a token", {.bos = 2, .pad = {}, .eos = {}});
  t["post_processor"] = {{"type", "BertProcessing"}};
  expect_refused(t, Code::kUnsupported, "'BertProcessing'");
}

TEST(HfTokenizer, PreTokenizersByWhatTheyDo) {
  EXPECT_EQ(hf_pre_tokenizer_name(byte_level(true), false), "gpt-2");
  EXPECT_EQ(
      hf_pre_tokenizer_name(sequence({{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true)}), false),
      "smollm");
  EXPECT_EQ(hf_pre_tokenizer_name(sequence({split(kLlama3), byte_level(false)}), true), "llama-bpe");
  EXPECT_EQ(hf_pre_tokenizer_name(sequence({split(kLlama3), byte_level(false)}), false), "dbrx");
  std::string words = kDeepSeek[2];
  for (const auto& [spelled, itself] : {std::pair("\\r", "\r"), std::pair("\\n", "\n")})
    for (size_t at = 0; (at = words.find(spelled)) != std::string::npos;) words.replace(at, 2, itself);
  ASSERT_NE(words, kDeepSeek[2]);
  for (const std::string& last : {std::string(kDeepSeek[2]), words})
    EXPECT_EQ(hf_pre_tokenizer_name(
                  sequence({split(kDeepSeek[0]), split(kDeepSeek[1]), split(last), byte_level(false)}), false),
              "deepseek-v3");
  const auto none = [](const LargeJson& pre) { EXPECT_EQ(hf_pre_tokenizer_name(pre, false), "") << pre; };
  none(sequence({split("\\s+"), byte_level(false)}));
  none(split(kLlama3));  // without bytes
  none({{"type", "Metaspace"}});
  none(nullptr);
  LargeJson spaced = byte_level(true);
  spaced["add_prefix_space"] = true;
  none(spaced);
  none(sequence({{{"type", "Digits"}, {"individual_digits", false}}, byte_level(true)}));
  LargeJson removed = split(kLlama3);
  removed["behavior"] = "Removed";
  none(sequence({removed, byte_level(false)}));
  EXPECT_EQ(hf_pre_tokenizer_name(byte_level(true), true), "") << "no name says that merges are ignored there";
}

TEST(HfTokenizer, ANormalizerWithoutStepsIsNone) {
  LargeJson t = some_tokenizer();
  t["normalizer"] = {{"type", "Sequence"}, {"normalizers", LargeJson::array()}};
  EXPECT_EQ(strings(read(t), "tokenizer.ggml.tokens").size(), 6u);
  t["normalizer"]["normalizers"].push_back({{"type", "NFC"}});
  expect_refused(t, Code::kUnsupported, "normalised");
  t["normalizer"] = LargeJson::array();
  expect_refused(t, Code::kUnsupported, "normalised");
}

TEST(HfTokenizer, RefusesByName) {
  const auto with = [](const char* pointer, const LargeJson& value, Code code, const std::string& part) {
    LargeJson t = some_tokenizer();
    t[LargeJson::json_pointer(pointer)] = value;
    expect_refused(t, code, part);
  };
  with("/model/type", "Unigram", Code::kUnsupported, "not byte-pair encoding");
  with("/model/byte_fallback", true, Code::kUnsupported, "byte_fallback");
  with("/model/dropout", 0.1, Code::kUnsupported, "dropout");
  with("/model/end_of_word_suffix", "</w>", Code::kUnsupported, "end_of_word_suffix");
  with("/model/vocab", 5, Code::kInput, "no vocab");
  with("/model/vocab/b", "x", Code::kInput, "the id of token 'b'");
  with("/model/vocab/b", 0u, Code::kInput, "have the id 0");
  with("/model/vocab/b", 100u, Code::kInput, "token 100 and config.json a vocab_size of 6");
  with("/model/unk_token", "?", Code::kInput, "unk_token");
  with("/normalizer", {{"type", "NFC"}}, Code::kUnsupported, "normalised");
  with("/pre_tokenizer", {{"type", "Whitespace"}}, Code::kUnsupported, "cut by other rules");
  with("/added_tokens/0/lstrip", true, Code::kUnsupported, "added_tokens.lstrip");
  with("/added_tokens/0/content", 5, Code::kInput, "no content");
  with("/added_tokens", 5, Code::kInput, "no list");
  with("/model", nullptr, Code::kInput, "no member model");
  expect_refused(some_tokenizer(), Code::kUnsupported, "4 tokens end an answer",
                 {.bos = {}, .pad = {}, .eos = {1, 2, 3, 4}});
}

}  // namespace
}  // namespace stet
