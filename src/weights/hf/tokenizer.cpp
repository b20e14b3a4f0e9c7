#include "weights/hf/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/visible_text.h"

namespace stet {
namespace {

using Strings = std::vector<std::string>;

// tokenizer.ggml.token_type
enum : uint64_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };
constexpr uint64_t kMaxTokens = 1u << 26;

bool is_null_or(const LargeJson& object, const char* key, const LargeJson& value) {
  return !object.contains(key) || object[key].is_null() || object[key] == value;
}

// No steps, as a list or without one.
bool normalizes(const LargeJson& tokenizer) {
  if (is_null_or(tokenizer, "normalizer", nullptr)) return false;
  const LargeJson& n = tokenizer["normalizer"];
  return !n.is_object() || !n.contains("type") || n["type"] != "Sequence" || !n.contains("normalizers") ||
         n["normalizers"] != LargeJson::array();
}

[[noreturn]] void refuse(const std::string& file, std::string_view what) {
  fail(Code::kUnsupported,
       "{}: {}, which stet does not do; it has byte-level BPE as GPT-2, SmolLM, Llama 3, Qwen 2 and DeepSeek V3 use it",
       file, what);
}

uint64_t id_of(const LargeJson& value, const std::string& file, std::string_view token) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= kMaxTokens)
    fail(Code::kInput, "{}: the id of token '{}' is no id", file, shown_name(token));
  return value.get<uint64_t>();
}

// Texts and types by id.
struct Vocabulary {
  Strings texts;
  std::vector<uint64_t> types;  // 0: no token has this id

  void set(uint64_t id, const std::string& text, uint64_t type, const std::string& file) {
    if (id >= texts.size()) texts.resize(id + 1), types.resize(id + 1);
    if (types[id] != 0 && texts[id] != text)
      fail(Code::kInput, "{}: tokens '{}' and '{}' have the id {}", file, shown_name(texts[id]), shown_name(text), id);
    texts[id] = text;
    types[id] = type;
  }
};

const LargeJson& checked_model(const LargeJson& tokenizer, const std::string& file) {
  if (!tokenizer.is_object() || !tokenizer.contains("model") || !tokenizer["model"].is_object())
    fail(Code::kInput, "{}: has no member model; get it again", file);
  const LargeJson& model = tokenizer["model"];
  if (!model.contains("type") || model["type"] != "BPE")
    refuse(file, "the tokenizer is not byte-pair encoding (model.type BPE)");
  if (!is_null_or(model, "byte_fallback", false))
    refuse(file, "the tokenizer falls back to byte tokens (model.byte_fallback)");
  if (!is_null_or(model, "dropout", 0)) refuse(file, "merges are dropped at random (model.dropout)");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!is_null_or(model, key, "")) refuse(file, fmt::format("words are marked (model.{})", key));
  if (!model.contains("vocab") || !model["vocab"].is_object() || !model.contains("merges") ||
      !model["merges"].is_array())
    fail(Code::kInput, "{}: its model has no vocab or no merges; get it again", file);
  return model;
}

void add_token(const LargeJson& token, const std::string& file, Vocabulary& vocabulary) {
  if (!token.is_object() || !token.contains("content") || !token["content"].is_string() || !token.contains("id"))
    fail(Code::kInput, "{}: an entry of added_tokens has no content or no id", file);
  const std::string text = token["content"].get<std::string>();
  for (const char* key : {"single_word", "lstrip", "rstrip"})
    if (!is_null_or(token, key, false))
      refuse(file, fmt::format("token '{}' takes more than its text (added_tokens.{})", shown_name(text), key));
  const bool special = token.contains("special") && token["special"] == true;
  const uint64_t id = id_of(token["id"], file, text);
  vocabulary.set(id, text, special ? kControl : kUserDefined, file);
}

Vocabulary read_vocabulary(const LargeJson& tokenizer, const LargeJson& model, const std::string& file) {
  Vocabulary vocabulary;
  for (const auto& [text, id] : model["vocab"].items()) vocabulary.set(id_of(id, file, text), text, kNormal, file);
  if (tokenizer.contains("added_tokens")) {
    if (!tokenizer["added_tokens"].is_array()) fail(Code::kInput, "{}: added_tokens is no list", file);
    for (const LargeJson& token : tokenizer["added_tokens"]) add_token(token, file, vocabulary);
  }
  return vocabulary;
}

// Merges are written as "a b" or, since version 0.20 of tokenizers, as ["a", "b"].
Strings read_merges(const LargeJson& model, const std::string& file) {
  Strings merges;
  for (const LargeJson& merge : model["merges"]) {
    if (merge.is_string()) {
      merges.push_back(merge.get<std::string>());
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    } else {
      fail(Code::kInput, "{}: entry {} of merges is not two texts", file, merges.size());
    }
  }
  return merges;
}

// What the post-processor puts around a single text: {before, behind}. The byte-level one only moves offsets.
struct Frame {
  Strings before, behind;
};

void read_template(const LargeJson& post, const std::string& file, Frame& frame) {
  if (!post.contains("single") || !post["single"].is_array())
    fail(Code::kInput, "{}: post_processor has no single", file);
  bool seen = false;
  for (const LargeJson& piece : post["single"]) {
    if (piece.contains("Sequence")) {
      seen = true;
    } else if (piece.contains("SpecialToken") && piece["SpecialToken"].contains("id") &&
               piece["SpecialToken"]["id"].is_string()) {
      (seen ? frame.behind : frame.before).push_back(piece["SpecialToken"]["id"].get<std::string>());
    } else {
      fail(Code::kInput, "{}: post_processor has a piece that is neither a sequence nor a token", file);
    }
  }
}

void read_frame(const LargeJson& post, const std::string& file, Frame& frame) {
  if (post.is_null()) return;
  const std::string type =
      post.is_object() && post.contains("type") && post["type"].is_string() ? post["type"].get<std::string>() : "?";
  if (type == "TemplateProcessing") return read_template(post, file, frame);
  if (type == "Sequence" && post.contains("processors") && post["processors"].is_array()) {
    for (const LargeJson& inner : post["processors"]) read_frame(inner, file, frame);
    return;
  }
  if (type != "ByteLevel")
    refuse(file, fmt::format("prompts are processed by '{}' (post_processor)", shown_name(type)));
}

bool adds_bos(const LargeJson& tokenizer, const std::string& file, const Vocabulary& vocabulary,
              const HfTokenIds& ids) {
  Frame frame;
  if (tokenizer.contains("post_processor")) read_frame(tokenizer["post_processor"], file, frame);
  if (!frame.behind.empty()) refuse(file, "prompts end with a token (post_processor)");
  if (frame.before.empty()) return false;
  const bool is_bos = frame.before.size() == 1 && ids.bos && *ids.bos < vocabulary.texts.size() &&
                      vocabulary.texts[*ids.bos] == frame.before[0];
  if (!is_bos) refuse(file, "prompts begin with something other than bos_token_id of config.json (post_processor)");
  return true;
}

void put_ids(const HfTokenIds& ids, const std::string& file, Metadata& metadata) {
  if (ids.bos) metadata["tokenizer.ggml.bos_token_id"] = {*ids.bos};
  if (ids.pad) metadata["tokenizer.ggml.padding_token_id"] = {*ids.pad};
  constexpr const char* kEnds[] = {"eos", "eot", "eom"};
  if (ids.eos.size() > std::size(kEnds))
    refuse(file, fmt::format("{} tokens end an answer (eos_token_id)", ids.eos.size()));
  for (size_t i = 0; i < ids.eos.size(); ++i)
    metadata[fmt::format("tokenizer.ggml.{}_token_id", kEnds[i])] = {ids.eos[i]};
}

void put_unknown(const LargeJson& model, const std::string& file, Metadata& metadata) {
  if (is_null_or(model, "unk_token", "")) return;
  const LargeJson& unknown = model["unk_token"];
  if (!unknown.is_string() || !model["vocab"].contains(unknown.get<std::string>()))
    fail(Code::kInput, "{}: unk_token is no token of the vocabulary", file);
  metadata["tokenizer.ggml.unknown_token_id"] = {id_of(model["vocab"][unknown.get<std::string>()], file, "unk_token")};
}

void put_tokens(Vocabulary vocabulary, uint64_t vocab_size, const std::string& file, Metadata& metadata) {
  if (vocabulary.texts.size() > vocab_size)
    fail(Code::kInput, "{}: has token {} and config.json a vocab_size of {}", file, vocabulary.texts.size() - 1,
         vocab_size);
  if (vocab_size > kMaxTokens) fail(Code::kInput, "{}: a vocabulary of {} tokens is too large", file, vocab_size);
  vocabulary.texts.resize(vocab_size);
  vocabulary.types.resize(vocab_size);
  auto types = std::make_shared<MetaArray>();
  for (uint64_t id = 0; id < vocab_size; ++id) {
    if (vocabulary.types[id] == 0) vocabulary.texts[id] = fmt::format("[PAD{}]", id), vocabulary.types[id] = kUnused;
    types->emplace_back().value = vocabulary.types[id];
  }
  metadata["tokenizer.ggml.tokens"] = {std::make_shared<const Strings>(std::move(vocabulary.texts))};
  metadata["tokenizer.ggml.token_type"] = {std::shared_ptr<const MetaArray>(std::move(types))};
}

}  // namespace

void add_hf_tokenizer(const LargeJson& tokenizer, const std::string& file, uint64_t vocab_size, const HfTokenIds& ids,
                      Metadata& metadata) {
  const LargeJson& model = checked_model(tokenizer, file);
  if (normalizes(tokenizer)) refuse(file, "text is normalised (normalizer)");
  const bool ignore_merges = model.contains("ignore_merges") && model["ignore_merges"] == true;
  const std::string pre =
      tokenizer.contains("pre_tokenizer") ? hf_pre_tokenizer_name(tokenizer["pre_tokenizer"], ignore_merges) : "";
  if (pre.empty()) refuse(file, "text is cut by other rules (pre_tokenizer)");
  Vocabulary vocabulary = read_vocabulary(tokenizer, model, file);
  const bool bos = adds_bos(tokenizer, file, vocabulary, ids);
  metadata["tokenizer.ggml.model"] = {std::string("gpt2")};
  metadata["tokenizer.ggml.pre"] = {pre};
  metadata["tokenizer.ggml.add_bos_token"] = {bos};
  metadata["tokenizer.ggml.merges"] = {std::make_shared<const Strings>(read_merges(model, file))};
  put_ids(ids, file, metadata);
  put_unknown(model, file, metadata);
  put_tokens(std::move(vocabulary), vocab_size, file, metadata);
}

}  // namespace stet
