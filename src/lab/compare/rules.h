// What a comparison demands before it says "promoted", beyond an interval above 1 and an effect above the noise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stet {

struct CompareRules {
  bool every_pair = true;               // B is better in every pair of starts
  bool lower_start = false;             // the worst start of B is better than the worst of A; it is what may be claimed
  std::optional<double> minimum_ratio;  // of the median ratio
  std::optional<double> minimum_figure;  // of the worst start of B: an earlier record
  std::optional<uint32_t> minimum_wins;  // prompts in which B is better, in every pair; for programs: pairs
  std::optional<double> minimum_saving_ms_per_token;  // the median over prompts; for programs: over pairs
  std::optional<double> minimum_saving_ms_per_cycle;  // of target passes
  std::optional<double> maximum_acceptance_drift;     // |accepted / proposed| of B less that of A
};

// A rule file: a JSON object whose members are named as above; all are optional, none may be unknown. Throws
// Error(kInput).
CompareRules parse_rules(std::string_view json, const std::string& what);
std::string rules_json(const CompareRules& rules);

}  // namespace stet
