#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/report/axis.h"
#include "lab/report/look.h"
#include "lab/report/markup.h"
#include "lab/report/plots.h"

namespace stet {
namespace {

constexpr double kTimeWidth = 760, kTimeHeight = 380, kTimeLeft = 56, kTimeRight = 728, kTimeTop = 34,
                 kTimeBottom = 338;
constexpr size_t kMostLines = 200;

size_t tokens_of(const ChunkEvent& chunk) {
  if (chunk.channel == Channel::none) return 0;
  if (chunk.token_ids) return chunk.token_ids->size();
  return chunk.text.empty() ? 0 : 1;
}

struct Frame {
  Axis x, y;
};

Frame frame_of(double seconds, double tokens) {
  return {Axis(0, seconds, kTimeLeft, kTimeRight, 8), Axis(0, tokens, kTimeBottom, kTimeTop, 6)};
}

void draw_frame(Svg& svg, const Frame& frame) {
  for (const double tick : frame.y.ticks()) {
    svg.line({kTimeLeft, frame.y.at(tick)}, {kTimeRight, frame.y.at(tick)}, "grid");
    svg.text({kTimeLeft - 8, frame.y.at(tick) + 4}, frame.y.label(tick), Svg::Anchor::end, "soft");
  }
  for (const double tick : frame.x.ticks()) {
    svg.line({frame.x.at(tick), kTimeBottom}, {frame.x.at(tick), kTimeBottom + 5}, "axis");
    svg.text({frame.x.at(tick), kTimeBottom + 20}, frame.x.label(tick), Svg::Anchor::middle, "soft");
  }
  svg.line({kTimeLeft, kTimeBottom}, {kTimeRight, kTimeBottom}, "axis");
  svg.text({kTimeRight, kTimeBottom + 36}, "seconds since the request was sent", Svg::Anchor::end, "soft");
  svg.text({kTimeLeft - 8, 16}, "tokens", Svg::Anchor::end, "soft");
}

// What a pixel cannot show is left out; the last point stays.
std::vector<SvgPoint> drawn(const std::vector<SvgPoint>& points, const Frame& frame) {
  std::vector<SvgPoint> out;
  for (size_t i = 0; i < points.size(); ++i) {
    const SvgPoint p{frame.x.at(points[i].x), frame.y.at(points[i].y)};
    const bool near = !out.empty() && std::abs(p.x - out.back().x) < 1 && std::abs(p.y - out.back().y) < 1;
    if (!near || i + 1 == points.size()) out.push_back(p);
  }
  return out;
}

std::string table_of(const std::vector<std::string>& arms, const std::vector<TimelineLine>& lines) {
  HtmlTable table(
      "Tokens over time",
      {{"request"}, {"arm"}, {"first tokens", true}, {"half of them", true}, {"last tokens", true}, {"tokens", true}});
  for (const TimelineLine& line : lines) {
    const auto half = std::find_if(line.points.begin(), line.points.end(),
                                   [&](const SvgPoint& p) { return 2 * p.y >= line.points.back().y; });
    table.row({line.name, arms[line.arm], shown_seconds(line.points.front().x), shown_seconds(half->x),
               shown_seconds(line.points.back().x), fmt::format("{:.0f}", line.points.back().y)});
  }
  return table.html();
}

std::vector<TimelineLine> chosen(const std::vector<TimelineLine>& lines) {
  std::vector<TimelineLine> some;
  for (const TimelineLine& line : lines)
    if (!line.points.empty()) some.push_back(line);
  if (some.size() <= kMostLines) return some;
  std::vector<TimelineLine> out;
  for (size_t i = 0; i < kMostLines; ++i) out.push_back(some[i * some.size() / kMostLines]);
  return out;
}

std::string request_table(const RequestRecord& request) {
  HtmlTable table("Chunks of the request",
                  {{"chunk"}, {"seconds", true}, {"tokens", true}, {"proposed", true}, {"stood", true}});
  size_t i = 0;
  for (const ChunkEvent& chunk : request.chunks) {
    const auto of = [](const std::optional<uint32_t>& n) { return n ? fmt::format("{}", *n) : "–"; };
    table.row({fmt::format("{}", i++),
               fmt::format("{:.4f}", 1e-9 * static_cast<double>(chunk.client_ns - request.sent_ns)),
               fmt::format("{}", tokens_of(chunk)), of(chunk.depth), of(chunk.accepted)});
  }
  return table.html();
}

}  // namespace

std::vector<SvgPoint> timeline_points(const RequestRecord& request) {
  std::vector<SvgPoint> points;
  double tokens = 0;
  for (const ChunkEvent& chunk : request.chunks) {
    const size_t n = tokens_of(chunk);
    if (n == 0) continue;
    tokens += static_cast<double>(n);
    points.push_back({1e-9 * static_cast<double>(chunk.client_ns - request.sent_ns), tokens});
  }
  return points;
}

std::string plot_timeline(std::string_view id, const std::vector<std::string>& arms,
                          const std::vector<TimelineLine>& lines) {
  const std::vector<TimelineLine> some = chosen(lines);
  if (some.empty()) return "";
  double seconds = 0, tokens = 0;
  for (const TimelineLine& line : some) {
    seconds = std::max(seconds, line.points.back().x);
    tokens = std::max(tokens, line.points.back().y);
  }
  const Frame frame = frame_of(seconds, tokens);
  Svg svg(id, kTimeWidth, kTimeHeight, "Tokens over time",
          fmt::format("{} lines, one a request; the longest takes {:.2f} seconds, the most tokens are {:.0f}.",
                      some.size(), seconds, tokens));
  draw_frame(svg, frame);
  for (const TimelineLine& line : some) {
    const std::vector<SvgPoint> points = drawn(line.points, frame);
    svg.polyline(points, "line " + arm_class(line.arm));
    svg.mark(arm_shape(line.arm), points.back(), 2.5, arm_class(line.arm), line.name + ", " + arms[line.arm]);
  }
  draw_legend(svg, {kTimeLeft + 16, 16}, arms);
  const std::string left_out =
      some.size() < lines.size() ? fmt::format(" {} of {} requests are drawn.", some.size(), lines.size()) : "";
  return figure_html(svg, "Tokens over time, one line a request; tokens of one chunk share one time." + left_out,
                     table_of(arms, some));
}

std::string plot_request(std::string_view id, const RequestRecord& request) {
  const std::vector<SvgPoint> points = timeline_points(request);
  if (points.empty()) return "";
  const Frame frame = frame_of(points.back().x, points.back().y);
  Svg svg(
      id, kTimeWidth, kTimeHeight, "Request " + request.id,
      fmt::format("{} chunks with {:.0f} tokens in {:.2f} seconds.", points.size(), points.back().y, points.back().x));
  draw_frame(svg, frame);
  svg.polyline(drawn(points, frame), "line arm0");
  size_t i = 0;
  for (const ChunkEvent& chunk : request.chunks) {
    if (tokens_of(chunk) == 0) continue;
    const SvgPoint& p = points[i++];
    const std::string cycle =
        chunk.depth && chunk.accepted ? fmt::format(", {} of {} proposals stood", *chunk.accepted, *chunk.depth) : "";
    svg.mark(chunk.accepted.value_or(0) > 0 ? SvgShape::diamond : SvgShape::circle, {frame.x.at(p.x), frame.y.at(p.y)},
             2.5, chunk.accepted.value_or(0) > 0 ? "arm1" : "arm0",
             fmt::format("{} tokens at {:.3f} s{}", tokens_of(chunk), p.x, cycle));
  }
  draw_legend(svg, {kTimeLeft + 16, 16}, {"a chunk", "a chunk in which proposals stood"});
  return figure_html(svg, fmt::format("Request {}, chunk by chunk.", request.id), request_table(request));
}

}  // namespace stet
