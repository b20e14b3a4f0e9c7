#include "lab/packet/figures_json.h"

#include <map>

namespace stet {
namespace {

std::optional<double> rate_of(const std::optional<WindowRate>& rate, double WindowRate::*member) {
  if (!rate) return std::nullopt;
  return (*rate).*member;
}

std::vector<double> values_of(const FigureColumn& column, const std::vector<const RequestFigures*>& requests) {
  std::vector<double> values;
  for (const RequestFigures* figures : requests)
    if (const auto value = column.of(*figures)) values.push_back(*value);
  return values;
}

}  // namespace

Json number_or_null(const std::optional<double>& value, bool show) {
  return value && show ? Json(*value) : Json(nullptr);
}

Json window_json(const std::optional<WindowRate>& rate, bool show) {
  if (!rate || !show) return nullptr;
  return {{"tokens", rate->tokens},
          {"intervals", rate->intervals},
          {"seconds", rate->seconds},
          {"tokens_per_second", rate->interval_rate},
          {"historical_inclusive_tokens_per_second", rate->historical_inclusive_rate},
          {"quantum", rate->quantum}};
}

Json statistics_json(std::vector<double> values) {
  if (values.empty()) return nullptr;
  const Statistics s = statistics(std::move(values));
  return {{"count", s.count}, {"p10", s.p10}, {"median", s.median}, {"mean", s.mean},
          {"stdev", s.stdev}, {"min", s.min}, {"max", s.max}};
}

std::vector<FigureColumn> figure_columns() {
  using F = RequestFigures;
  return {
      {"first_100_tokens_per_second", true,
       [](const F& f) { return rate_of(f.first_100, &WindowRate::interval_rate); }},
      {"first_100_historical_inclusive_tokens_per_second", true,
       [](const F& f) { return rate_of(f.first_100, &WindowRate::historical_inclusive_rate); }},
      {"all_tokens_per_second", true, [](const F& f) { return rate_of(f.all, &WindowRate::interval_rate); }},
      {"all_historical_inclusive_tokens_per_second", true,
       [](const F& f) { return rate_of(f.all, &WindowRate::historical_inclusive_rate); }},
      {"wall_tokens_per_second", true,
       [](const F& f) { return f.wall_rate > 0 ? std::optional(f.wall_rate) : std::nullopt; }},
      {"prefill_tokens_per_second", true, [](const F& f) { return f.prefill_rate; }},
      {"ttft_seconds", true, [](const F& f) { return f.ttft_seconds; }},
      {"server_tokens_per_second", true, [](const F& f) { return f.server_rate; }},
      {"target_passes_per_second", true, [](const F& f) { return f.target_passes_per_second; }},
      {"tokens_per_cycle", false, [](const F& f) { return f.tokens_per_cycle; }},
      {"tokens_per_cycle_without_bonus", false, [](const F& f) { return f.tokens_per_cycle_without_bonus; }},
      {"tokens", false, [](const F& f) { return std::optional(static_cast<double>(f.tokens)); }},
  };
}

Json summary_json(const std::vector<const RequestFigures*>& requests, bool speed) {
  Json json = Json::object();
  for (const FigureColumn& column : figure_columns())
    json[column.name] = column.speed && !speed ? Json(nullptr) : statistics_json(values_of(column, requests));
  return json;
}

Json class_balanced_json(const std::vector<std::pair<std::string, const RequestFigures*>>& requests, bool speed) {
  std::map<std::string, std::vector<const RequestFigures*>> classes;
  for (const auto& [name, figures] : requests) classes[name].push_back(figures);
  Json json = {{"classes", classes.size()}};
  for (const FigureColumn& column : figure_columns()) {
    std::vector<double> medians;
    for (const auto& [name, members] : classes) {
      std::vector<double> values = values_of(column, members);
      if (!values.empty()) medians.push_back(median(std::move(values)));
    }
    json[column.name] = medians.empty() || (column.speed && !speed) ? Json(nullptr) : Json(median(std::move(medians)));
  }
  return json;
}

}  // namespace stet
