#include "text/vocabulary.h"

#include <fmt/format.h>

#include <limits>
#include <memory>

#include "base/error.h"
#include "text/byte_alphabet.h"

namespace stet {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

const MetaValue* find(const Metadata& metadata, std::string_view key) {
  const auto found = metadata.find(fmt::format("{}{}", kPrefix, key));
  return found == metadata.end() ? nullptr : &found->second;
}

std::optional<int64_t> as_int(const MetaValue& value) {
  if (const auto* u = std::get_if<uint64_t>(&value.value)) {
    if (*u > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(*u);
  }
  if (const auto* i = std::get_if<int64_t>(&value.value)) return *i;
  return std::nullopt;
}

std::string read_string(const Metadata& metadata, std::string_view key) {
  const MetaValue* value = find(metadata, key);
  if (value == nullptr) {
    fail(Code::kInput, "the model file has no {}{}: it holds no vocabulary, so text cannot be tokenised", kPrefix, key);
  }
  if (const auto* text = std::get_if<std::string>(&value->value)) return *text;
  fail(Code::kInput, "{}{} must be a string", kPrefix, key);
}

const std::vector<std::string>& read_strings(const Metadata& metadata, std::string_view key) {
  const MetaValue* value = find(metadata, key);
  if (value == nullptr) fail(Code::kInput, "the model file has no {}{}", kPrefix, key);
  const auto* list = std::get_if<std::shared_ptr<const std::vector<std::string>>>(&value->value);
  if (list == nullptr || *list == nullptr) fail(Code::kInput, "{}{} must be an array of strings", kPrefix, key);
  return **list;
}

bool read_bool(const Metadata& metadata, std::string_view key, bool missing) {
  const MetaValue* value = find(metadata, key);
  if (value == nullptr) return missing;
  if (const auto* flag = std::get_if<bool>(&value->value)) return *flag;
  fail(Code::kInput, "{}{} must be a boolean", kPrefix, key);
}

std::optional<TokenId> read_id(const Metadata& metadata, std::string_view key, size_t vocab_size) {
  const MetaValue* value = find(metadata, key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> id = as_int(*value);
  if (!id) fail(Code::kInput, "{}{} must be an integer", kPrefix, key);
  if (*id < 0 || static_cast<uint64_t>(*id) >= vocab_size) {
    fail(Code::kInput, "{}{} is {}, but the vocabulary has {} tokens", kPrefix, key, *id, vocab_size);
  }
  return static_cast<TokenId>(*id);
}

TokenType to_token_type(const MetaValue& value, size_t id) {
  const std::optional<int64_t> type = as_int(value);
  if (!type || *type < 1 || *type > 6) {
    fail(Code::kInput, "{}token_type[{}] is not a token type (1..6)", kPrefix, id);
  }
  if (*type == 6) fail(Code::kUnsupported, "token {} is of type BYTE, which byte-level BPE does not have", id);
  return static_cast<TokenType>(*type);
}

std::vector<TokenType> read_types(const Metadata& metadata, size_t count) {
  const MetaValue* value = find(metadata, "token_type");
  if (value == nullptr) return std::vector<TokenType>(count, TokenType::kNormal);
  const auto* list = std::get_if<std::shared_ptr<const MetaArray>>(&value->value);
  if (list == nullptr || *list == nullptr) fail(Code::kInput, "{}token_type must be an array of integers", kPrefix);
  if ((*list)->size() != count) {
    fail(Code::kInput, "{}token_type has {} entries, but there are {} tokens", kPrefix, (*list)->size(), count);
  }
  std::vector<TokenType> types;
  types.reserve(count);
  for (const MetaValue& v : **list) types.push_back(to_token_type(v, types.size()));
  return types;
}

void index_tokens(Vocabulary& vocab) {
  vocab.byte_token.fill(-1);
  vocab.normal.reserve(vocab.tokens.size());
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    const Token& token = vocab.tokens[id];
    if (token.type != TokenType::kNormal) continue;
    const auto [old, added] = vocab.normal.emplace(token.bytes, static_cast<TokenId>(id));
    if (!added) fail(Code::kInput, "tokens {} and {} have the same text", old->second, id);
    if (token.bytes.size() == 1) vocab.byte_token[static_cast<uint8_t>(token.bytes[0])] = static_cast<TokenId>(id);
  }
}

void read_tokens(const Metadata& metadata, Vocabulary& vocab) {
  const std::vector<std::string>& texts = read_strings(metadata, "tokens");
  if (texts.empty() || texts.size() > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    fail(Code::kInput, "{}tokens has {} entries", kPrefix, texts.size());
  }
  const std::vector<TokenType> types = read_types(metadata, texts.size());
  vocab.tokens.reserve(texts.size());
  for (size_t id = 0; id < texts.size(); ++id) {
    if (texts[id].empty()) fail(Code::kInput, "token {} is empty", id);
    if (types[id] != TokenType::kNormal) {
      vocab.tokens.push_back({texts[id], types[id]});
      continue;
    }
    std::optional<std::string> bytes = alphabet_to_bytes(texts[id]);
    if (!bytes) {
      fail(Code::kInput, "token {} is of type NORMAL, but its text is not written in the alphabet of byte-level BPE",
           id);
    }
    vocab.tokens.push_back({std::move(*bytes), types[id]});
  }
  index_tokens(vocab);
}

TokenId merge_part(const Vocabulary& vocab, std::string_view text, size_t rank) {
  const std::optional<std::string> bytes = alphabet_to_bytes(text);
  const auto found = bytes ? vocab.normal.find(*bytes) : vocab.normal.end();
  if (found == vocab.normal.end()) {
    fail(Code::kInput, "{}merges[{}] uses a text that is no NORMAL token of the vocabulary", kPrefix, rank);
  }
  return found->second;
}

void read_merges(const Metadata& metadata, Vocabulary& vocab) {
  const std::vector<std::string>& lines = read_strings(metadata, "merges");
  if (lines.size() > std::numeric_limits<uint32_t>::max()) fail(Code::kInput, "{}merges is too long", kPrefix);
  vocab.merges.reserve(lines.size());
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    const std::string_view line = lines[rank];
    const size_t gap = line.find(' ');
    if (gap == std::string_view::npos || gap == 0 || gap + 1 == line.size()) {
      fail(Code::kInput, "{}merges[{}] is not two texts with a space between them", kPrefix, rank);
    }
    const TokenId left = merge_part(vocab, line.substr(0, gap), rank);
    const TokenId right = merge_part(vocab, line.substr(gap + 1), rank);
    const auto result = vocab.normal.find(vocab.tokens[left].bytes + vocab.tokens[right].bytes);
    if (result == vocab.normal.end()) {
      fail(Code::kInput, "{}merges[{}] makes a text that is no NORMAL token of the vocabulary", kPrefix, rank);
    }
    const Merge merge{static_cast<uint32_t>(rank), result->second};
    if (!vocab.merges.emplace(Vocabulary::pair_key(left, right), merge).second) {
      fail(Code::kInput, "{}merges[{}] repeats an earlier merge", kPrefix, rank);
    }
  }
}

}  // namespace

Vocabulary read_vocabulary(const Metadata& metadata) {
  const std::string model = read_string(metadata, "model");
  if (model != "gpt2") {
    fail(Code::kUnsupported, "tokenizer '{}' is not supported; supported is: gpt2 (byte-level BPE)", model);
  }
  Vocabulary vocab;
  vocab.pre = find_pre_tokenizer(read_string(metadata, "pre"));
  read_tokens(metadata, vocab);
  read_merges(metadata, vocab);
  const size_t size = vocab.tokens.size();
  vocab.bos = read_id(metadata, "bos_token_id", size);
  vocab.eos = read_id(metadata, "eos_token_id", size);
  vocab.eot = read_id(metadata, "eot_token_id", size);
  vocab.eom = read_id(metadata, "eom_token_id", size);
  vocab.unknown = read_id(metadata, "unknown_token_id", size);
  vocab.padding = read_id(metadata, "padding_token_id", size);
  vocab.add_bos = read_bool(metadata, "add_bos_token", vocab.pre.add_bos && vocab.bos.has_value());
  if (vocab.add_bos && !vocab.bos) {
    fail(Code::kInput, "{}add_bos_token is true, but there is no {}bos_token_id", kPrefix, kPrefix);
  }
  if (read_bool(metadata, "add_eos_token", false)) {
    fail(Code::kUnsupported, "{}add_eos_token is true: a prompt that ends its own text cannot be continued", kPrefix);
  }
  if (read_bool(metadata, "add_space_prefix", false)) {
    fail(Code::kUnsupported, "{}add_space_prefix is true, which stet does not support for byte-level BPE", kPrefix);
  }
  return vocab;
}

Vocabulary synthetic_vocabulary(uint64_t size) {
  if (size == 0 || size > static_cast<uint64_t>(std::numeric_limits<TokenId>::max())) {
    fail(Code::kUsage, "a vocabulary of {} tokens is not possible", size);
  }
  Vocabulary vocab;
  vocab.pre = find_pre_tokenizer("gpt-2");
  vocab.tokens.reserve(size);
  for (uint64_t id = 0; id < size; ++id) {
    const bool is_byte = id < 256;
    vocab.tokens.push_back(
        {is_byte ? std::string(1, static_cast<char>(id)) : fmt::format("<{}>", id), TokenType::kNormal});
  }
  index_tokens(vocab);
  return vocab;
}

}  // namespace stet
