// The pictures of a report: each a <figure> with a caption and, folded away, the same as a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/record/events.h"
#include "lab/report/svg.h"

namespace stet {

// Arms are told apart by shape and by colour.
SvgShape arm_shape(size_t arm);
std::string arm_class(size_t arm);

// A rate of one request of one start.
struct RateDot {
  std::string step, step_class;
  size_t arm = 0;  // index into RatePlot::arms
  uint32_t start = 0;
  double value = 0;
};
struct RatePlot {
  std::string title, unit;
  std::vector<std::string> arms;
  std::vector<RateDot> dots;  // steps in the order of the suite
};
// One row a prompt, grouped by class; one row a class where there are more prompts than a page has room for. Empty for
// no dots.
std::string plot_rates(std::string_view id, const RatePlot& plot);

struct TimelineLine {
  size_t arm = 0;
  std::string name;
  std::vector<SvgPoint> points;  // seconds since the request was sent, tokens so far
};
// Tokens over time, one line a request; at most 200 lines, evenly chosen, which the caption says. Empty for no lines.
std::string plot_timeline(std::string_view id, const std::vector<std::string>& arms,
                          const std::vector<TimelineLine>& lines);
std::vector<SvgPoint> timeline_points(const RequestRecord& request);

// One request, chunk by chunk: when tokens came, and how many of a cycle's proposals stood. Empty where no chunk has
// tokens.
std::string plot_request(std::string_view id, const RequestRecord& request);

struct AcceptanceArm {
  size_t arm = 0;  // for its colour
  std::string name;
  std::vector<double> by_position;  // shares
  std::string counts;               // "352 of 1,024 proposals in 256 cycles"
};
// Empty where no arm proposed anything.
std::string plot_acceptance(std::string_view id, const std::vector<AcceptanceArm>& arms);

struct PairLine {
  std::string name, step_class;
  double a = 0, b = 0;
};
struct PairPlot {
  std::string title, unit;
  std::string line_is = "prompt";  // or "pair of starts"
  bool higher_is_better = true;
  std::vector<PairLine> lines;
};
// Lines from A to B. Empty for no lines.
std::string plot_pairs(std::string_view id, const PairPlot& plot);

struct RatioDot {
  std::string name, step_class;
  double ratio = 0;  // above 1: B is better
};
struct RatioPlot {
  std::string title;
  std::vector<RatioDot> dots;               // prompts, or pairs of starts
  std::optional<double> median, low, high;  // the median ratio and its interval
  std::string confidence;                   // "95 %"; empty: too few values for an interval
  std::optional<double> noise;              // the smallest effect that the A/A run can tell
};
// Empty for no dots.
std::string plot_ratios(std::string_view id, const RatioPlot& plot);

// Around a picture.
std::string figure_html(const Svg& svg, std::string_view caption, std::string_view table_html);
// The names of the arms with their marks, from x on at height y. An entry returns where the next one begins.
double draw_legend_entry(Svg& svg, SvgPoint at, size_t arm, std::string_view name);
void draw_legend(Svg& svg, SvgPoint at, const std::vector<std::string>& arms);

}  // namespace stet
