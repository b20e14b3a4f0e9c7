// Reads JSON objects by tables. Every field of a table is one of three kinds:
//   honoured  read into the request;
//   unless    changes the answer in a way that stet does not offer: refused by name unless its value asks for what
//   happens anyway; hint      changes nothing about the answer: accepted, and named to who reads the log.
// What is in no table is refused by name: a field that nobody understood may have been meant to change the answer. null
// means absent.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

// A value and where it stands. Its readers throw ApiError(400) that names the place and what is allowed there.
class FieldValue {
 public:
  FieldValue(const nlohmann::json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }  // "messages[2].content"; empty: the body
  const nlohmann::json& json() const { return *json_; }

  bool is_text() const;
  bool is_list() const;
  bool is_whole(int64_t value) const;  // this integer
  bool boolean() const;
  const std::string& text() const;
  uint64_t whole(uint64_t low, uint64_t high) const;
  // A number from low to high, as float; above low where `above`.
  float number(double low, double high, bool above = false) const;
  std::vector<FieldValue> items() const;  // of a list
  std::vector<FieldValue> members()
      const;  // of an object, with their names as the ends of their paths; those that are null left out
  std::string_view name() const;  // of a member
  // A list of ids below vocab.
  std::vector<int32_t> token_ids(uint32_t vocab) const;

 private:
  FieldValue(const nlohmann::json& json, std::string path, size_t name_at)
      : json_(&json), path_(std::move(path)), name_at_(name_at) {}

  const nlohmann::json* json_;
  std::string path_;
  size_t name_at_ = 0;
};

enum class FieldKind : uint8_t { honoured, unless, hint };

// What a table says of a field, and no more than that.
struct FieldRule {
  std::string_view name;
  FieldKind kind = FieldKind::honoured;
  std::string_view neutral = {};  // unless: values that are accepted, a JSON array
  std::string_view advice = {};   // unless: what to do instead
};

template <typename T>
struct Field {
  FieldRule rule;
  void (*read)(const FieldValue& value, T& out) = nullptr;
};

template <typename T>
constexpr Field<T> honoured(std::string_view name, void (*read)(const FieldValue&, T&)) {
  return {{name, FieldKind::honoured}, read};
}
template <typename T>
constexpr Field<T> unless(std::string_view name, std::string_view neutral, std::string_view advice = {}) {
  return {{name, FieldKind::unless, neutral, advice}};
}
template <typename T>
constexpr Field<T> hint(std::string_view name) {
  return {{name, FieldKind::hint}};
}

// Throws unless the value is one of the neutral ones.
void refuse_unless_neutral(const FieldValue& value, const FieldRule& rule);
[[noreturn]] void refuse_unknown(const FieldValue& value);

using Hints = std::vector<std::string>;  // names of hints that a request had

template <typename T>
void read_fields(const FieldValue& object, const std::vector<Field<T>>& table, T& out, Hints& hints) {
  for (const FieldValue& value : object.members()) {
    const auto field = std::ranges::find_if(table, [&](const Field<T>& f) { return f.rule.name == value.name(); });
    if (field == table.end()) refuse_unknown(value);
    switch (field->rule.kind) {
      case FieldKind::honoured:
        field->read(value, out);
        break;
      case FieldKind::unless:
        refuse_unless_neutral(value, field->rule);
        break;
      case FieldKind::hint:
        hints.push_back(value.path());
        break;
    }
  }
}

}  // namespace stet
