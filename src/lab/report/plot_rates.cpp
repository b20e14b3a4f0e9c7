#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/metrics/metrics.h"
#include "lab/report/axis.h"
#include "lab/report/look.h"
#include "lab/report/markup.h"
#include "lab/report/plots.h"

namespace stet {
namespace {

constexpr double kRatesWidth = 760, kRatesLeft = 216, kRatesRight = 724, kRatesTop = 44, kRatesRow = 22, kRatesGroup = 28;
constexpr double kHalfTick = 30;  // the first value's name reaches so far to the left of its line
constexpr size_t kMostRows = 48, kLabel = 30;

struct Row {
  std::string label;
  std::vector<const RateDot*> dots;
};
struct Group {
  std::string name;
  std::vector<Row> rows;
};

Row& row_of(Group& group, const std::string& label) {
  for (Row& row : group.rows)
    if (row.label == label) return row;
  return group.rows.emplace_back(Row{label, {}});
}

// Classes and prompts in the order in which they first appear.
std::vector<Group> grouped(const std::vector<RateDot>& dots, bool by_class) {
  std::vector<Group> groups;
  for (const RateDot& dot : dots) {
    const std::string name = by_class ? "" : dot.step_class;
    auto it = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.name == name; });
    Group& group = it != groups.end() ? *it : groups.emplace_back(Group{name, {}});
    row_of(group, by_class ? dot.step_class : dot.step).dots.push_back(&dot);
  }
  return groups;
}

size_t row_count(const std::vector<Group>& groups) {
  size_t rows = 0;
  for (const Group& group : groups) rows += group.rows.size();
  return rows;
}

double height_of(const std::vector<Group>& groups) {
  double height = kRatesTop + 34 + kRatesRow * static_cast<double>(row_count(groups));
  for (const Group& group : groups) height += group.name.empty() ? 0 : kRatesGroup;
  return height;
}

void draw_axis(Svg& svg, const Axis& axis, double bottom, const std::string& unit) {
  for (const double tick : axis.ticks()) {
    svg.line({axis.at(tick), kRatesTop - 6}, {axis.at(tick), bottom}, "grid");
    svg.text({axis.at(tick), bottom + 18}, axis.label(tick), Svg::Anchor::middle, "soft");
  }
  svg.text({kRatesLeft - 14 - kHalfTick, bottom + 18}, unit, Svg::Anchor::end, "soft");
}

void draw_rows(Svg& svg, const Axis& axis, const std::vector<Group>& groups, const RatePlot& plot) {
  double y = kRatesTop;
  for (const Group& group : groups) {
    if (!group.name.empty()) {
      svg.text({kRatesLeft - 14, y + 17}, group.name, Svg::Anchor::end, "class");
      y += kRatesGroup;
    }
    for (const Row& row : group.rows) {
      const double middle = y + kRatesRow / 2;
      svg.text({kRatesLeft - 14, middle + 4}, with_ellipsis(row.label, kLabel), Svg::Anchor::end);
      svg.line({kRatesLeft, middle}, {kRatesRight, middle}, "row");
      for (const RateDot* dot : row.dots) {
        const std::string tip = fmt::format("{}, {}, start {}: {:.2f} {}", plot.arms[dot->arm], dot->step, dot->start,
                                            dot->value, plot.unit);
        svg.mark(arm_shape(dot->arm), {axis.at(dot->value), middle}, 4.5, arm_class(dot->arm), tip);
      }
      y += kRatesRow;
    }
  }
}

std::vector<double> values_of(const Row& row, size_t arm) {
  std::vector<double> values;
  for (const RateDot* dot : row.dots)
    if (dot->arm == arm) values.push_back(dot->value);
  return values;
}

std::string table_of(const std::vector<Group>& groups, const RatePlot& plot) {
  std::vector<HtmlColumn> columns = {{"prompt"}, {"class"}};
  for (const std::string& arm : plot.arms)
    for (const char* what : {"lowest", "median", "highest"})
      columns.push_back({fmt::format("{}, {}", arm, what), true});
  HtmlTable table(plot.title + ", " + plot.unit, columns);
  for (const Group& group : groups)
    for (const Row& row : group.rows) {
      std::vector<std::string> cells = {row.label, group.name.empty() ? row.label : group.name};
      for (size_t arm = 0; arm < plot.arms.size(); ++arm) {
        const std::vector<double> values = values_of(row, arm);
        const bool some = !values.empty();
        cells.push_back(
            shown_number(some ? std::optional(*std::min_element(values.begin(), values.end())) : std::nullopt, 2));
        cells.push_back(shown_number(some ? std::optional(median(values)) : std::nullopt, 2));
        cells.push_back(
            shown_number(some ? std::optional(*std::max_element(values.begin(), values.end())) : std::nullopt, 2));
      }
      table.row(cells);
    }
  return table.html();
}

std::string description(const RatePlot& plot, const std::vector<Group>& groups, double low, double high) {
  return fmt::format("{} dots in {} rows, from {:.2f} to {:.2f} {}. The table below has every row.", plot.dots.size(),
                     row_count(groups), low, high, plot.unit);
}

}  // namespace

std::string plot_rates(std::string_view id, const RatePlot& plot) {
  if (plot.dots.empty()) return "";
  std::vector<Group> groups = grouped(plot.dots, false);
  const bool crowded = row_count(groups) > kMostRows;
  if (crowded) groups = grouped(plot.dots, true);
  const auto less = [](const RateDot& x, const RateDot& y) { return x.value < y.value; };
  const auto [low, high] = std::minmax_element(plot.dots.begin(), plot.dots.end(), less);
  const Axis axis(low->value, high->value, kRatesLeft + 8, kRatesRight - 8);
  const double height = height_of(groups);
  Svg svg(id, kRatesWidth, height, plot.title, description(plot, groups, low->value, high->value));
  draw_legend(svg, {kRatesLeft, 16}, plot.arms);
  draw_axis(svg, axis, height - 34, plot.unit);
  draw_rows(svg, axis, groups, plot);
  const std::string caption = fmt::format("{}. A mark is a request; the scale does not begin at 0.{}", plot.title,
                                          crowded ? " There are more prompts than rows, so a row is a class." : "");
  return figure_html(svg, caption, table_of(groups, plot));
}

}  // namespace stet
