// Python's string operations on texts that keep their sources.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"
#include "text/provenance.h"

namespace stet::jinja {

// Offset of every character, then the end.
std::vector<size_t> char_offsets(std::string_view text);
size_t count_chars(std::string_view text);

// Python's str.isspace for one character: Unicode white space and U+001C..U+001F.
bool is_python_space(uint32_t code_point);

// Without `chars` (nothing: white space) at the chosen ends.
Text strip(const Text& text, const std::optional<std::string_view>& chars, bool left, bool right);

// At every separator (nothing: runs of white space), at most `most` times (negative: always); from_right: counted from
// the end. The separator must not be empty.
std::vector<Value> split(const Text& text, const std::optional<std::string_view>& separator, int64_t most,
                         bool from_right);
std::vector<Value> split_lines(const Text& text, bool keep_ends);

// Without overlap. The empty part occurs between all characters.
size_t count_occurrences(std::string_view text, std::string_view part);

// Every occurrence of `from`, at most `most` times (negative: always). An empty `from` matches between all characters.
Text replace(const Text& text, const Text& from, const Text& to, int64_t most);

enum class CaseChange { kUpper, kLower, kTitle, kCapitalize };
// One character for one, except the German sharp s, whose capital is SS. Rarer capitals of several letters (ligatures)
// are not made.
Text change_case(const Text& text, CaseChange change);

Text join(const std::vector<Text>& parts, const Text& separator);

}  // namespace stet::jinja
