#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/metrics/metrics.h"
#include "lab/report/axis.h"
#include "lab/report/look.h"
#include "lab/report/markup.h"
#include "lab/report/plots.h"

namespace stet {
namespace {

constexpr double kPairsTop = 56, kPairsBottom = 400, kA = 110, kB = 470, kPairsWidth = 760;
constexpr double kRatioWidth = 760, kRatioLeft = 216, kRatioRight = 724, kRatioRow = 22;
constexpr size_t kMostNames = 24;
constexpr double kNameHeight = 15;

// Where names stand beside their ends, moved apart where they would cover each other.
std::vector<double> spread(std::vector<double> heights, double top, double bottom) {
  for (size_t i = 0; i < heights.size(); ++i)
    heights[i] = std::max(heights[i], i == 0 ? top : heights[i - 1] + kNameHeight);
  for (size_t i = heights.size(); i-- > 0;)
    heights[i] = std::min(heights[i], i + 1 == heights.size() ? bottom : heights[i + 1] - kNameHeight);
  return heights;
}

void draw_names(Svg& svg, const Axis& y, std::vector<PairLine> lines) {
  if (lines.size() > kMostNames) return;
  std::stable_sort(lines.begin(), lines.end(), [&](const auto& p, const auto& q) { return y.at(p.b) < y.at(q.b); });
  std::vector<double> heights;
  for (const PairLine& line : lines) heights.push_back(y.at(line.b));
  heights = spread(heights, kPairsTop, kPairsBottom + 12);
  for (size_t i = 0; i < lines.size(); ++i) {
    svg.line({kB + 7, y.at(lines[i].b)}, {kB + 22, heights[i]}, "lead");
    svg.text({kB + 26, heights[i] + 4}, with_ellipsis(lines[i].name, 28), Svg::Anchor::start, "small");
  }
}

std::string pairs_table(const PairPlot& plot) {
  HtmlTable table(plot.title + ", " + plot.unit,
                  {{plot.line_is}, {"class"}, {"A", true}, {"B", true}, {"ratio (above 1: B is better)", true}});
  for (const PairLine& p : plot.lines)
    table.row({p.name, p.step_class, fmt::format("{:.4g}", p.a), fmt::format("{:.4g}", p.b),
               fmt::format("{:.4f}", plot.higher_is_better ? p.b / p.a : p.a / p.b)});
  return table.html();
}

void draw_pairs(Svg& svg, const Axis& y, const PairPlot& plot) {
  for (const double tick : y.ticks()) {
    svg.line({kA, y.at(tick)}, {kB, y.at(tick)}, "grid");
    svg.text({kA - 16, y.at(tick) + 4}, y.label(tick), Svg::Anchor::end, "soft");
  }
  svg.text({4, 16}, plot.unit, Svg::Anchor::start, "soft");
  svg.text({kA, 38}, "A", Svg::Anchor::middle, "class");
  svg.text({kB, 38}, "B", Svg::Anchor::middle, "class");
  for (const PairLine& p : plot.lines) {
    const std::string tip = fmt::format("{}: {:.4g}, {:.4g} {}", p.name, p.a, p.b, plot.unit);
    const bool better = plot.higher_is_better ? p.b > p.a : p.b < p.a;
    svg.line({kA, y.at(p.a)}, {kB, y.at(p.b)}, better ? "pair" : "pair worse");
    svg.mark(arm_shape(0), {kA, y.at(p.a)}, 4, arm_class(0), tip);
    svg.mark(arm_shape(1), {kB, y.at(p.b)}, 4, arm_class(1), tip);
  }
}

struct RatioPlace {
  double top = 20, bottom = 0;
};

void draw_ratio_frame(Svg& svg, const Axis& x, const RatioPlot& plot, const RatioPlace& place) {
  if (plot.noise) {
    const double left = x.at(std::max(x.low(), 1 - *plot.noise)), right = x.at(std::min(x.high(), 1 + *plot.noise));
    svg.rectangle({left, place.top - 8}, std::max(0.0, right - left), place.bottom - place.top + 8, "noise",
                  fmt::format("within what the A/A run can tell: {:.4f}", *plot.noise));
  }
  if (plot.low && plot.high)
    svg.rectangle({x.at(*plot.low), place.top - 8}, std::max(1.0, x.at(*plot.high) - x.at(*plot.low)),
                  place.bottom - place.top + 8, "interval",
                  fmt::format("interval {:.4f} .. {:.4f}", *plot.low, *plot.high));
  for (const double tick : x.ticks()) {
    svg.line({x.at(tick), place.top - 8}, {x.at(tick), place.bottom}, "grid");
    svg.text({x.at(tick), place.bottom + 18}, x.label(tick), Svg::Anchor::middle, "soft");
  }
  svg.line({x.at(1), place.top - 8}, {x.at(1), place.bottom}, "axis");
  if (plot.median) svg.line({x.at(*plot.median), place.top - 8}, {x.at(*plot.median), place.bottom}, "median");
  svg.text({kRatioLeft - 14, place.bottom + 18}, "ratio", Svg::Anchor::end, "soft");
}

std::string ratio_caption(const RatioPlot& plot) {
  std::string text = plot.title + ", above 1 where B is better.";
  if (plot.median) text += fmt::format(" Line: the median, {:.4f}.", *plot.median);
  if (plot.low && plot.high)
    text += plot.confidence.empty()
                ? fmt::format(" Band: the whole range, {:.4f} to {:.4f}; too few values for an interval.", *plot.low,
                              *plot.high)
                : fmt::format(" Band: its interval at {}, {:.4f} to {:.4f}.", plot.confidence, *plot.low, *plot.high);
  if (plot.noise) text += fmt::format(" Grey: what identical arms showed, 1 ± {:.4f}.", *plot.noise);
  return text;
}

Axis ratio_axis(const RatioPlot& plot) {
  double low = 1, high = 1;
  const auto reach = [&](double value) { low = std::min(low, value), high = std::max(high, value); };
  for (const RatioDot& dot : plot.dots) reach(dot.ratio);
  for (const auto& value : {plot.median, plot.low, plot.high})
    if (value) reach(*value);
  return Axis(low, high, kRatioLeft + 8, kRatioRight - 8);
}

}  // namespace

std::string plot_pairs(std::string_view id, const PairPlot& plot) {
  if (plot.lines.empty()) return "";
  std::vector<double> a, b;
  for (const PairLine& p : plot.lines) {
    a.push_back(p.a);
    b.push_back(p.b);
  }
  const auto [a_low, a_high] = std::minmax_element(a.begin(), a.end());
  const auto [b_low, b_high] = std::minmax_element(b.begin(), b.end());
  const Axis y(std::min(*a_low, *b_low), std::max(*a_high, *b_high), kPairsBottom, kPairsTop);
  Svg svg(id, kPairsWidth, kPairsBottom + 40, plot.title,
          fmt::format("{} lines from A to B, each a {}. Median of A {:.4g}, of B {:.4g} {}.", plot.lines.size(),
                      plot.line_is, median(a), median(b), plot.unit));
  draw_pairs(svg, y, plot);
  draw_names(svg, y, plot.lines);
  const std::string ends = plot.line_is == "prompt" ? ", its ends the medians of the starts of A and B" : "";
  return figure_html(svg, fmt::format("{}: a line is a {}{}. Dashed: B is no better.", plot.title, plot.line_is, ends),
                     pairs_table(plot));
}

std::string plot_ratios(std::string_view id, const RatioPlot& plot) {
  if (plot.dots.empty()) return "";
  const Axis x = ratio_axis(plot);
  RatioPlace place;
  place.bottom = place.top + kRatioRow * static_cast<double>(plot.dots.size());
  Svg svg(id, kRatioWidth, place.bottom + 40, plot.title, ratio_caption(plot));
  draw_ratio_frame(svg, x, plot, place);
  HtmlTable table(plot.title, {{"prompt"}, {"class"}, {"ratio", true}});
  double y = place.top + kRatioRow / 2;
  for (const RatioDot& dot : plot.dots) {
    svg.text({kRatioLeft - 14, y + 4}, with_ellipsis(dot.name, 30), Svg::Anchor::end);
    svg.line({kRatioLeft, y}, {kRatioRight, y}, "row");
    svg.mark(SvgShape::circle, {x.at(dot.ratio), y}, 4.5, "arm1", fmt::format("{}: {:.4f}", dot.name, dot.ratio));
    table.row({dot.name, dot.step_class, fmt::format("{:.6f}", dot.ratio)});
    y += kRatioRow;
  }
  return figure_html(svg, ratio_caption(plot), table.html());
}

}  // namespace stet
