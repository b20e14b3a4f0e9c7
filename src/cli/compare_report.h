// A comparison for people.
#pragma once

#include <string>
#include <vector>

#include "lab/compare/verdict.h"

namespace stet {

// What identical arms differed by: printed before anything is compared.
std::string floor_text(const std::vector<JudgedSeries>& series);

// The pairs, a table of ratios, what preceded it, and the verdict with its reasons.
std::string verdict_text(const ComparePlan& plan, const CompareVerdict& verdict, const std::string& ledger_context);

}  // namespace stet
