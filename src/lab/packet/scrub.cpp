#include "lab/packet/scrub.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/xdg.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr size_t kShortestName = 4;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool is_key_character(char c) { return is_word(c) || c == '-'; }

// What keys begin with, and how many characters of a key follow at least.
struct KeyForm {
  std::string_view prefix;
  size_t follows;
};
constexpr KeyForm kKeyForms[] = {
    {"sk-", 20},     {"ghp_", 20},  {"gho_", 20},  {"ghs_", 20},           {"github_pat_", 20},    {"glpat-", 20},
    {"hf_", 20},     {"xoxb-", 10}, {"xoxp-", 10}, {"AKIA", 16},           {"AIza", 30},           {"Bearer ", 12},
    {"bearer ", 12}, {"eyJ", 30},   {"npm_", 20},  {"SECRET KEY-----", 0}, {"PRIVATE KEY-----", 0}};

std::optional<std::string> looks_like_key(std::string_view text) {
  for (const KeyForm& form : kKeyForms) {
    for (size_t at = text.find(form.prefix); at != std::string_view::npos; at = text.find(form.prefix, at + 1)) {
      if (form.follows > 0 && at > 0 && is_key_character(text[at - 1])) continue;
      size_t length = 0;
      const std::string_view rest = text.substr(at + form.prefix.size());
      while (length < rest.size() && is_key_character(rest[length])) ++length;
      if (length >= form.follows) return fmt::format("something that looks like a key ({}...)", form.prefix);
    }
  }
  return std::nullopt;
}

bool boundary_before(std::string_view text, size_t at) { return at == 0 || !is_word(text[at - 1]); }
bool boundary_after(std::string_view text, size_t end) { return end >= text.size() || !is_word(text[end]); }

bool stands_for_account(std::string_view text, size_t at, size_t end) {
  const char before = at > 0 ? text[at - 1] : ' ', after = end < text.size() ? text[end] : ' ';
  return before == '/' || before == '@' || after == '@' || (at == 0 && end == text.size());
}

bool names(std::string_view text, const std::string& name, ScrubScope scope) {
  if (name.empty()) return false;
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (!boundary_before(text, at) || !boundary_after(text, end)) continue;
    if (scope == ScrubScope::metadata || stands_for_account(text, at, end)) return true;
  }
  return false;
}

bool holds_path(std::string_view text, const std::string& path) {
  if (path.empty()) return false;
  for (size_t at = text.find(path); at != std::string_view::npos; at = text.find(path, at + 1))
    if (boundary_before(text, at) && boundary_after(text, at + path.size())) return true;
  return false;
}

bool says_nothing(std::string_view name) {
  constexpr std::array<std::string_view, 14> kCommon = {"root",    "user",   "admin",  "ubuntu", "debian",
                                                        "fedora",  "test",   "runner", "docker", "localhost",
                                                        "builder", "nobody", "guest",  "default"};
  return name.size() < kShortestName || std::find(kCommon.begin(), kCommon.end(), name) != kCommon.end();
}

std::optional<std::string> search(const Json& json, const PrivateNames& names, ScrubScope scope) {
  if (json.is_string()) return private_content(json.get_ref<const std::string&>(), names, scope);
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (auto found = private_content(key, names, scope)) return found;
      if (auto found = search(value, names, scope)) return fmt::format("{} (at '{}')", *found, key);
    }
  }
  if (json.is_array())
    for (const Json& value : json)
      if (auto found = search(value, names, scope)) return found;
  return std::nullopt;
}

}  // namespace

PrivateNames private_names() {
  PrivateNames names;
  if (const passwd* entry = ::getpwuid(::getuid()); entry != nullptr) names.user = entry->pw_name;
  std::array<char, HOST_NAME_MAX + 1> host = {};
  if (::gethostname(host.data(), host.size() - 1) == 0) names.host = host.data();
  names.home = user_paths().home;
  if (says_nothing(names.user)) names.user.clear();
  if (says_nothing(names.host)) names.host.clear();
  while (names.home.ends_with('/')) names.home.pop_back();
  return names;
}

std::optional<std::string> private_content(std::string_view text, const PrivateNames& names_of, ScrubScope scope) {
  if (holds_path(text, names_of.home)) return "the home directory";
  if (names(text, names_of.user, scope)) return "the user's name";
  if (names(text, names_of.host, scope)) return "this machine's name";
  return looks_like_key(text);
}

std::optional<std::string> private_json_content(std::string_view json, const PrivateNames& names, ScrubScope scope) {
  return search(parse_json(json, "what is checked for private content"), names, scope);
}

}  // namespace stet
