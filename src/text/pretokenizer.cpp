#include "text/pretokenizer.h"

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "base/error.h"
#include "text/unicode.h"

namespace stet {
namespace {

// Names that files use for exactly these rules.
constexpr PreTokenizerSpec kSpecs[] = {
    {"gpt-2", PreTokenizer::kGpt2, false, false},
    {"phi-2", PreTokenizer::kGpt2, false, false},
    {"mpt", PreTokenizer::kGpt2, false, false},
    {"olmo", PreTokenizer::kGpt2, false, false},
    {"jais", PreTokenizer::kGpt2, false, false},
    {"trillion", PreTokenizer::kGpt2, false, false},
    {"smollm", PreTokenizer::kSmollm, false, false},
    {"starcoder", PreTokenizer::kSmollm, false, false},
    {"refact", PreTokenizer::kSmollm, false, false},
    {"command-r", PreTokenizer::kSmollm, false, false},
    {"codeshell", PreTokenizer::kSmollm, false, false},
    {"exaone", PreTokenizer::kSmollm, false, false},
    {"minerva-7b", PreTokenizer::kSmollm, false, false},
    {"llama-bpe", PreTokenizer::kLlamaBpe, true, true},
    {"llama3", PreTokenizer::kLlamaBpe, true, true},
    {"llama-v3", PreTokenizer::kLlamaBpe, true, true},
    {"falcon3", PreTokenizer::kLlamaBpe, true, true},
    {"pixtral", PreTokenizer::kLlamaBpe, true, true},
    {"lfm2", PreTokenizer::kLlamaBpe, true, true},
    {"dbrx", PreTokenizer::kLlamaBpe, false, false},
    {"smaug-bpe", PreTokenizer::kLlamaBpe, false, false},
    {"glm4", PreTokenizer::kLlamaBpe, false, false},
    {"qwen2", PreTokenizer::kQwen2, false, false},
    {"deepseek-r1-qwen", PreTokenizer::kQwen2, false, false},
    {"stablelm2", PreTokenizer::kQwen2, false, false},
    {"hunyuan", PreTokenizer::kQwen2, false, false},
    {"grok-2", PreTokenizer::kQwen2, false, false},
    {"deepseek-v3", PreTokenizer::kDeepseekV3, false, false},
    {"hunyuan-dense", PreTokenizer::kDeepseekV3, false, false},
    {"joyai-llm", PreTokenizer::kDeepseekV3, false, false},
};

using Ends = std::vector<size_t>;
using Matcher = std::function<size_t(const std::vector<PreChar>&, size_t at, size_t end)>;

// One pass: cuts every piece of `pieces` (ends, in characters) at the matches; gaps between matches stay pieces.
Ends cut(const std::vector<PreChar>& text, const Ends& pieces, const Matcher& match) {
  Ends out;
  size_t begin = 0;
  for (size_t end : pieces) {
    for (size_t at = begin; at < end;) {
      const size_t stop = match(text, at, end);
      if (stop == at) {
        ++at;
        continue;
      }
      if (at > begin) out.push_back(at);
      out.push_back(stop);
      begin = at = stop;
    }
    if (begin < end) out.push_back(end);
    begin = end;
  }
  return out;
}

size_t match_numbers(const std::vector<PreChar>& text, size_t at, size_t end, size_t most) {
  size_t stop = at;
  while (stop < end && stop - at < most && has_class(text[stop], kNumber)) ++stop;
  return stop;
}

// Chinese ideographs of the basic block, Hiragana and Katakana.
size_t match_cjk(const std::vector<PreChar>& text, size_t at, size_t end) {
  while (at < end) {
    const uint32_t c = text[at].value;
    if (!((c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF))) break;
    ++at;
  }
  return at;
}

Ends cut_all(PreTokenizer kind, const std::vector<PreChar>& text) {
  const Ends whole{text.size()};
  const auto numbers = [](size_t most) {
    return [most](const auto& t, size_t at, size_t end) { return match_numbers(t, at, end, most); };
  };
  const auto llama = [](size_t most) {
    return [most](const auto& t, size_t at, size_t end) { return match_llama(t, at, end, most); };
  };
  switch (kind) {
    case PreTokenizer::kGpt2:
      return cut(text, whole, match_gpt2);
    case PreTokenizer::kSmollm:
      return cut(text, cut(text, whole, numbers(1)), match_gpt2);
    case PreTokenizer::kLlamaBpe:
      return cut(text, whole, llama(3));
    case PreTokenizer::kQwen2:
      return cut(text, whole, llama(1));
    case PreTokenizer::kDeepseekV3:
      return cut(text, cut(text, cut(text, whole, numbers(3)), match_cjk), match_deepseek_words);
  }
  fail(Code::kInternal, "pre-tokenizer {} has no rules", static_cast<int>(kind));
}

}  // namespace

const PreTokenizerSpec& find_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizerSpec& spec : kSpecs) {
    if (spec.name == name) return spec;
    known += known.empty() ? "" : ", ";
    known += spec.name;
  }
  fail(Code::kUnsupported, "pre-tokenizer '{}' (tokenizer.ggml.pre) is not supported; supported are: {}", name, known);
}

std::vector<size_t> pre_tokenize(PreTokenizer kind, std::string_view text) {
  std::vector<size_t> pieces;
  if (text.empty()) return pieces;
  std::vector<PreChar> chars;
  std::vector<size_t> offsets;  // of each character, then the end
  chars.reserve(text.size());
  offsets.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    chars.push_back({c.value, char_classes(c.value)});
    offsets.push_back(at);
    at += c.bytes;
  }
  offsets.push_back(text.size());
  pieces = cut_all(kind, chars);
  for (size_t& end : pieces) end = offsets[end];
  return pieces;
}

size_t match_whitespace(const std::vector<PreChar>& text, size_t at, size_t end) {
  size_t stop = at;
  while (stop < end && has_class(text[stop], kWhitespace)) ++stop;
  return stop < end && stop - at > 1 ? stop - 1 : stop;
}

size_t match_line_breaks(const std::vector<PreChar>& text, size_t at, size_t end) {
  size_t stop = at;
  for (size_t i = at; i < end && has_class(text[i], kWhitespace); ++i) {
    if (is_line_break(text[i])) stop = i + 1;
  }
  return stop;
}

}  // namespace stet
