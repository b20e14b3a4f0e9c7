#include <fmt/format.h>

#include <algorithm>

#include "lab/report/axis.h"
#include "lab/report/look.h"
#include "lab/report/markup.h"
#include "lab/report/plots.h"

namespace stet {
namespace {

constexpr double kHeight = 280, kLeft = 56, kTop = 40, kBottom = 232, kSlotGap = 18;
constexpr size_t kMostPositions = 24;

size_t positions_of(const std::vector<AcceptanceArm>& arms) {
  size_t positions = 0;
  for (const AcceptanceArm& arm : arms) positions = std::max(positions, arm.by_position.size());
  return positions;
}

std::string table_of(const std::vector<AcceptanceArm>& arms) {
  std::vector<HtmlColumn> columns = {{"position"}};
  for (const AcceptanceArm& arm : arms) columns.push_back({arm.name, true});
  HtmlTable table("Acceptance by position", columns);
  for (size_t i = 0; i < positions_of(arms); ++i) {
    std::vector<std::string> cells = {fmt::format("{}", i + 1)};
    for (const AcceptanceArm& arm : arms)
      cells.push_back(shown_share(i < arm.by_position.size() ? std::optional(arm.by_position[i]) : std::nullopt));
    table.row(cells);
  }
  return table.html();
}

void draw_bars(Svg& svg, const Axis& y, const std::vector<AcceptanceArm>& arms, double slot, double bar) {
  for (size_t i = 0; i < std::min(positions_of(arms), kMostPositions); ++i) {
    const double left = kLeft + kSlotGap / 2 + slot * static_cast<double>(i);
    for (size_t arm = 0; arm < arms.size(); ++arm) {
      if (i >= arms[arm].by_position.size()) continue;
      const double share = std::clamp(arms[arm].by_position[i], 0.0, 1.0), x = left + bar * static_cast<double>(arm);
      svg.rectangle({x, y.at(100 * share)}, bar - 2, kBottom - y.at(100 * share), "bar " + arm_class(arms[arm].arm),
                    fmt::format("{}, position {}: {:.1f} %", arms[arm].name, i + 1, 100 * share));
      svg.text({x + bar / 2 - 1, y.at(100 * share) - 6}, fmt::format("{:.0f}", 100 * share), Svg::Anchor::middle,
               "small");
    }
    svg.text({left + (slot - kSlotGap) / 2, kBottom + 18}, fmt::format("{}", i + 1), Svg::Anchor::middle, "soft");
  }
}

}  // namespace

std::string plot_acceptance(std::string_view id, const std::vector<AcceptanceArm>& arms) {
  const size_t positions = positions_of(arms), drawn = std::min(positions, kMostPositions);
  if (positions == 0) return "";
  const double bar = std::clamp(420.0 / static_cast<double>(drawn * arms.size()), 18.0, 44.0);
  const double slot = bar * static_cast<double>(arms.size()) + kSlotGap;
  const double right = std::max(420.0, kLeft + slot * static_cast<double>(drawn) + 8);
  std::string counts;
  for (const AcceptanceArm& arm : arms)
    if (!arm.counts.empty()) counts += fmt::format("{}{}: {}", counts.empty() ? "" : "; ", arm.name, arm.counts);
  Svg svg(id, right + 16, kHeight, "Acceptance by position", fmt::format("Bars of {} positions. {}", drawn, counts));
  const Axis y(0, 100, kBottom, kTop, 4);
  for (const double tick : y.ticks()) {
    svg.line({kLeft, y.at(tick)}, {right, y.at(tick)}, "grid");
    svg.text({kLeft - 8, y.at(tick) + 4}, y.label(tick) + " %", Svg::Anchor::end, "soft");
  }
  draw_bars(svg, y, arms, slot, bar);
  svg.line({kLeft, kBottom}, {right, kBottom}, "axis");
  svg.text({right, kBottom + 36}, "position in the proposal", Svg::Anchor::end, "soft");
  double x = kLeft;
  for (const AcceptanceArm& arm : arms) x = draw_legend_entry(svg, {x, 16}, arm.arm, arm.name);
  std::string caption = "Of the cycles with a proposal at a position, the share that accepted it. " + counts;
  if (drawn < positions) caption += fmt::format(" The first {} of {} positions are drawn.", drawn, positions);
  return figure_html(svg, caption, table_of(arms));
}

}  // namespace stet
