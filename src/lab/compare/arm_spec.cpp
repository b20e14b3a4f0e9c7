#include "lab/compare/arm_spec.h"

#include <array>
#include <map>
#include <set>

#include "base/error.h"

namespace stet {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"serve", "command", "endpoint", "measure"};

std::string last_part(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string shown_url(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t end = std::min(url.find_first_of(":/", host), url.size());
  const std::string name = url.substr(host, end - host);
  static const std::set<std::string> kHere = {"127.0.0.1", "localhost", "::1"};
  if (url.starts_with("unix:")) return "unix:" + last_part(url.substr(5));
  return url.substr(0, host) + (kHere.count(name) > 0 ? name : "elsewhere") + url.substr(end);
}

// A word without folders: "--model=/a/b.gguf" is "--model=b.gguf", "model:/a/b.gguf" is "model:b.gguf".
std::string shown_word(const std::string& word) {
  if (word.find("://") != std::string::npos) return shown_url(word);
  const size_t slash = word.find('/');
  if (slash == std::string::npos) return word;
  const size_t sign = word.find_last_of("=:,", slash);
  const size_t begin = sign == std::string::npos ? 0 : sign + 1;
  return word.substr(0, begin) + last_part(word.substr(begin));
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string long_name(const std::string& name) {
  static const std::map<std::string, std::string> kLong = {{"-m", "--model"}};
  const auto found = kLong.find(name);
  return found == kLong.end() ? name : found->second;
}

std::map<std::string, std::string> options_of(const ArmSpec& arm) {
  std::map<std::string, std::string> options;
  for (size_t i = 0; i < arm.words.size(); ++i) {
    const std::string& word = arm.words[i];
    const size_t sign = word.find('=');
    if (word.starts_with("--") && sign != std::string::npos) {
      options[long_name(word.substr(0, sign))] = word.substr(sign + 1);
    } else if (word.starts_with('-')) {
      const bool has_value = i + 1 < arm.words.size() && !arm.words[i + 1].starts_with('-');
      options[long_name(word)] = has_value ? arm.words[i + 1] : "on";
      i += has_value;
    } else {
      options[word] = "on";
    }
  }
  return options;
}

}  // namespace

std::string_view arm_kind_name(ArmKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      open = true;
    } else if (c == quote && quote != 0) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      open = true;
    } else {
      word += c;
      open = true;
    }
  }
  if (quote != 0) fail(Code::kUsage, "a quote {} is not closed in: {}", quote, text);
  if (open) words.push_back(std::move(word));
  return words;
}

ArmSpec parse_arm(std::string_view text) {
  const size_t colon = text.find(':');
  ArmSpec arm;
  size_t kind = 0;
  while (kind < kKinds.size() && (colon == std::string_view::npos || text.substr(0, colon) != kKinds[kind])) ++kind;
  if (kind == kKinds.size())
    fail(Code::kUsage,
         "'{}' is no arm: one begins with serve: (flags of stet serve), command: (with {{port}}), endpoint: (a URL) or "
         "measure: (a program that prints its figures)",
         text);
  arm.kind = static_cast<ArmKind>(kind);
  arm.words = split_words(text.substr(colon + 1));
  if (arm.words.empty()) fail(Code::kUsage, "the arm '{}' is empty", text);
  if (arm.kind == ArmKind::endpoint && arm.words.size() != 1)
    fail(Code::kUsage, "the arm '{}' has more than a URL", text);
  if (arm.kind == ArmKind::command && text.find("{port}") == std::string_view::npos)
    fail(Code::kUsage, "the arm '{}' does not say where its port goes: write {{port}} there", text);
  arm.shown = std::string(arm_kind_name(arm.kind)) + ":";
  for (size_t i = 0; i < arm.words.size(); ++i) arm.shown += (i > 0 ? " " : "") + quoted(shown_word(arm.words[i]));
  return arm;
}

std::vector<OptionDifference> option_differences(const ArmSpec& a, const ArmSpec& b) {
  if (a.kind != ArmKind::serve || b.kind != ArmKind::serve) return {};
  const auto of_a = options_of(a), of_b = options_of(b);
  std::set<std::string> names;
  for (const auto& [name, value] : of_a) names.insert(name);
  for (const auto& [name, value] : of_b) names.insert(name);
  std::vector<OptionDifference> differences;
  for (const std::string& name : names) {
    const auto in_a = of_a.find(name), in_b = of_b.find(name);
    const OptionDifference d{name, in_a == of_a.end() ? "" : in_a->second, in_b == of_b.end() ? "" : in_b->second};
    if (d.a != d.b) differences.push_back(d);
  }
  return differences;
}

}  // namespace stet
