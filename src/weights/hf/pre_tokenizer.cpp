// Which of the pre-tokenizers of src/text a tokenizer.json describes.
//
// Checkpoints write the same rules in a few spellings; each line below is a normal form: the steps, without what only
// moves offsets. The expressions are those of the original tokenizers, which src/text/pretokenizer_*.cpp match by hand.
#include <optional>

#include "weights/hf/tokenizer.h"

namespace stet {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekNumbers = R"(\p{N}{1,3})";
constexpr std::string_view kDeepSeekCjk = "[一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kDeepSeekWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Line breaks in an expression stand for themselves there, or are spelled as above (DeepSeek V4's file has both).
std::string spelled(const std::string& regex) {
  std::string out;
  for (const char c : regex) out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  return out;
}

// Steps as text, or nothing when one is of another kind.
std::optional<std::string> split_step(const LargeJson& step) {
  const bool isolated = step.contains("behavior") && step["behavior"] == "Isolated";
  const bool inverted = step.contains("invert") && step["invert"] == true;
  if (!isolated || inverted || !step.contains("pattern") || !step["pattern"].contains("Regex")) return std::nullopt;
  const LargeJson& regex = step["pattern"]["Regex"];
  return regex.is_string() ? std::optional("split " + spelled(regex.get<std::string>()) + "\n") : std::nullopt;
}

std::optional<std::string> byte_level_step(const LargeJson& step) {
  if (step.contains("add_prefix_space") && step["add_prefix_space"] != false) return std::nullopt;
  // Its own expression is GPT-2's, and on by default.
  const bool splits = !step.contains("use_regex") || step["use_regex"] == true;
  return splits ? "split " + std::string(kGpt2) + "\nbytes\n" : "bytes\n";
}

std::optional<std::string> steps_of(const LargeJson& pre) {
  if (!pre.is_object() || !pre.contains("type")) return std::nullopt;
  const LargeJson& type = pre["type"];
  if (type == "Split") return split_step(pre);
  if (type == "ByteLevel") return byte_level_step(pre);
  if (type == "Digits") {
    const bool each = pre.contains("individual_digits") && pre["individual_digits"] == true;
    return each ? std::optional<std::string>("digits\n") : std::nullopt;
  }
  if (type != "Sequence" || !pre.contains("pretokenizers") || !pre["pretokenizers"].is_array()) return std::nullopt;
  std::string all;
  for (const LargeJson& inner : pre["pretokenizers"]) {
    const std::optional<std::string> steps = steps_of(inner);
    if (!steps) return std::nullopt;
    all += *steps;
  }
  return all;
}

}  // namespace

std::string hf_pre_tokenizer_name(const LargeJson& pre_tokenizer, bool ignore_merges) {
  const std::optional<std::string> steps = steps_of(pre_tokenizer);
  if (!steps) return "";
  const auto is = [&](std::initializer_list<std::string_view> patterns, std::string_view before = "") {
    std::string wanted(before);
    for (const std::string_view pattern : patterns) wanted += "split " + std::string(pattern) + "\n";
    return *steps == wanted + "bytes\n";
  };
  if (is({kLlama3})) return ignore_merges ? "llama-bpe" : "dbrx";  // the same rules; names say what merges are worth
  if (ignore_merges) return "";
  if (is({kGpt2})) return "gpt-2";
  if (is({kGpt2}, "digits\n")) return "smollm";
  if (is({kQwen2})) return "qwen2";
  if (is({kDeepSeekNumbers, kDeepSeekCjk, kDeepSeekWords})) return "deepseek-v3";
  return "";
}

}  // namespace stet
