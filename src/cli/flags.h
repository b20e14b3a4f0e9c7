// The flags of a verb: declared once, for parsing and for --help.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

// Every function that declares a flag takes its names ("-m,--model"), where its value goes, and the line of --help.
// Targets outlive parse(); they keep their value when the flag is absent. A flag may be given once, unless it says so.
class Flags {
 public:
  // verb: empty for the program itself. summary: the first lines of the help.
  Flags(std::string_view verb, std::string_view summary);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // The flags that follow stand under this heading.
  void section(std::string_view title);
  // Stands below the flags.
  void footer(std::string_view text);

  void toggle(std::string_view names, bool* value, std::string_view help);
  // Sets *value to `preset` where it is given.
  void preset(std::string_view names, std::string* value, std::string preset, std::string_view help);
  void text(std::string_view names, std::string_view meta, std::string* value, std::string_view help);
  void text(std::string_view names, std::string_view meta, std::optional<std::string>* value, std::string_view help);
  // Repeatable; every value is taken as it is.
  void texts(std::string_view names, std::string_view meta, std::vector<std::string>* values, std::string_view help);
  void choice(std::string_view names, std::string* value, std::vector<std::string> allowed, std::string_view help);
  void count(std::string_view names, uint32_t* value, uint32_t low, uint32_t high, std::string_view help);
  void number(std::string_view names, float* value, std::string_view help);
  void number(std::string_view names, std::optional<float>* value, std::string_view help);
  void seed(std::string_view names, std::optional<uint64_t>* value, std::string_view help);
  void positional(std::string_view name, std::string* value, std::string_view help);

  // Throws Error(kUsage) that says what is allowed. False: --help was asked for and printed to standard output.
  bool parse(std::span<const std::string> arguments);
  // After parse(): whether the flag with this long name stood there, with whatever value.
  bool given(const std::string& name) const;
  std::string help() const;

 private:
  [[noreturn]] void fail_on_count(std::span<const std::string> arguments) const;

  struct App;
  std::unique_ptr<App> app_;
  std::string verb_;
};

// The values themselves. what: what is being read, for messages. Throw Error(kUsage) with the range.
uint64_t parse_whole(std::string_view what, std::string_view text, uint64_t low, uint64_t high);
float parse_number(std::string_view what, std::string_view text);

// The candidate closest to a mistyped word; empty when none is close (at most a third of the letters differ).
std::string closest(std::string_view word, std::span<const std::string> candidates);

}  // namespace stet
