// JSON that others wrote, read without guessing: every member is asked for by name and type, and none may be left over.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

// Members keep the order in which they were written.
using Json = nlohmann::ordered_json;
// Members by name: an object of 100,000 of them takes no longer to read than it must.
using LargeJson = nlohmann::json;

inline constexpr int kMaxJsonDepth = 64;

// Throws Error(kInput), beginning with `what`, for text that is no JSON, nested deeper than kMaxJsonDepth, or names a member of an
// object twice.
Json parse_json(std::string_view text, const std::string& what);
LargeJson parse_large_json(std::string_view text, const std::string& what);
// One line, members in order, U+FFFD for what is not UTF-8.
std::string dump_line(const Json& json);

// The members of one object. Every function throws Error(kInput) that begins with `what` and names the member.
class StrictObject {
 public:
  // Keeps a reference to json.
  StrictObject(const Json& json, std::string what);

  bool has(std::string_view key) const;
  const Json& any(std::string_view key);  // whatever it holds
  std::string text(std::string_view key);
  bool flag(std::string_view key);
  int64_t whole(std::string_view key, int64_t low, int64_t high);
  double number(std::string_view key, double low, double high);
  uint32_t u32(std::string_view key);
  int64_t nanoseconds(std::string_view key);
  std::vector<int32_t> ids(std::string_view key);
  std::string object(std::string_view key);  // as one line

  std::optional<uint32_t> optional_u32(std::string_view key);
  std::optional<uint64_t> optional_u64(std::string_view key);
  std::optional<int64_t> optional_nanoseconds(std::string_view key);
  std::optional<std::vector<int32_t>> optional_ids(std::string_view key);
  std::optional<std::vector<double>> optional_numbers(std::string_view key);  // finite ones

  // The first member that was not asked for; empty: none.
  std::string not_asked_for() const;
  // Throws when there is one.
  void finish() const;
  const std::string& what() const { return what_; }

 private:
  const Json& member(std::string_view key);

  const Json& json_;
  std::string what_;
  std::vector<std::string> asked_;
};

}  // namespace stet
