// Figures as they stand in results.json.
#pragma once

#include <string>
#include <vector>

#include "lab/metrics/metrics.h"
#include "base/strict_json.h"

namespace stet {

// The number, or null where there is none or it must not be shown.
Json number_or_null(const std::optional<double>& value, bool show = true);

// {tokens, intervals, seconds, tokens_per_second, historical_inclusive_tokens_per_second, quantum}, or null.
Json window_json(const std::optional<WindowRate>& rate, bool show);

// {count, p10, median, mean, stdev, min, max}; null without values.
Json statistics_json(std::vector<double> values);

// One figure of a request that is summarised over many.
struct FigureColumn {
  const char* name;
  bool speed;  // shown only where exactness is proved
  std::optional<double> (*of)(const RequestFigures& figures);
};
std::vector<FigureColumn> figure_columns();

// {column: statistics} over requests; speed: whether columns that are speeds are shown.
Json summary_json(const std::vector<const RequestFigures*>& requests, bool speed);

// {column: median of the medians of the classes} and {classes}: every class weighs the same, however many prompts it
// has.
Json class_balanced_json(const std::vector<std::pair<std::string, const RequestFigures*>>& requests, bool speed);

}  // namespace stet
