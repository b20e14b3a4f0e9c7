// What an arm of a comparison is: how a user names it, what the plan shows of it, and where two of them differ.
//
//   serve:FLAGS       this binary's `stet serve FLAGS`, a fresh process for every leg
//   command:CMD       any server with OpenAI's API; {port} in CMD is a port that was free; fresh for every leg
//   endpoint:URL      a server that runs already: not fresh, so it proves less
//   measure:CMD       a program that measures by itself and prints one JSON object of numbers as its last line
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

enum class ArmKind : uint8_t { serve, command, endpoint, measure };
std::string_view arm_kind_name(ArmKind kind);

struct ArmSpec {
  ArmKind kind = ArmKind::serve;
  std::vector<std::string> words;  // of the command line behind the colon; of an endpoint: the URL alone
  // What the plan and the packet hold: paths reduced to file names, a host that is not this machine to "elsewhere".
  std::string shown;
};

// Throws Error(kUsage).
ArmSpec parse_arm(std::string_view text);

// Words as a POSIX shell splits them: quotes and backslashes, no expansion of any kind. Throws Error(kUsage) for an
// open quote.
std::vector<std::string> split_words(std::string_view text);

struct OptionDifference {
  std::string option;  // "--draft", by the longest of its names
  std::string a, b;    // values; "" where the arm does not give it, "on" for a toggle
};
// The options in which two serve arms differ, by name. Empty for other kinds.
std::vector<OptionDifference> option_differences(const ArmSpec& a, const ArmSpec& b);

}  // namespace stet
