#include "lab/report/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "lab/report/markup.h"

namespace stet {
namespace {

// A tenth of a pixel is finer than anybody sees.
std::string pixels(double value) {
  STET_CHECK(std::isfinite(value));
  const double tenths = std::round(value * 10.0);
  std::string text = fmt::format("{:.1f}", tenths == 0.0 ? 0.0 : tenths / 10.0);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string tip_element(std::string_view tip) {
  return tip.empty() ? "" : fmt::format("<title>{}</title>", html_text(tip));
}

std::string pair_of(SvgPoint p) { return pixels(p.x) + "," + pixels(p.y); }

}  // namespace

Svg::Svg(std::string_view id, double width, double height, std::string_view title, std::string_view description)
    : title_(html_text(title)) {
  head_ = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" aria-labelledby=\"{2}-t\" "
      "aria-describedby=\"{2}-d\">"
      "<title id=\"{2}-t\">{3}</title><desc id=\"{2}-d\">{4}</desc>\n",
      pixels(width), pixels(height), html_text(id), title_, html_text(description));
}

void Svg::line(SvgPoint from, SvgPoint to, std::string_view css_class) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", pixels(from.x), pixels(from.y),
                       pixels(to.x), pixels(to.y), css_class);
}

void Svg::polyline(std::span<const SvgPoint> points, std::string_view css_class) {
  std::string list;
  for (const SvgPoint& p : points) list += (list.empty() ? "" : " ") + pair_of(p);
  body_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", list, css_class);
}

void Svg::rectangle(SvgPoint corner, double width, double height, std::string_view css_class, std::string_view tip) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\">{}</rect>\n", pixels(corner.x),
                       pixels(corner.y), pixels(width), pixels(height), css_class, tip_element(tip));
}

void Svg::mark(SvgShape shape, SvgPoint at, double radius, std::string_view css_class, std::string_view tip) {
  const double r = radius;
  if (shape == SvgShape::circle || shape == SvgShape::ring) {
    body_ +=
        fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}{}\">{}</circle>\n", pixels(at.x), pixels(at.y),
                    pixels(r), shape == SvgShape::ring ? "hollow " : "", css_class, tip_element(tip));
    return;
  }
  const double s = shape == SvgShape::square ? 0.9 * r : 1.25 * r;
  const SvgPoint square[] = {{at.x - s, at.y - s}, {at.x + s, at.y - s}, {at.x + s, at.y + s}, {at.x - s, at.y + s}};
  const SvgPoint diamond[] = {{at.x, at.y - s}, {at.x + s, at.y}, {at.x, at.y + s}, {at.x - s, at.y}};
  std::string list;
  for (const SvgPoint& p : shape == SvgShape::square ? square : diamond) list += (list.empty() ? "" : " ") + pair_of(p);
  body_ += fmt::format("<polygon points=\"{}\" class=\"{}\">{}</polygon>\n", list, css_class, tip_element(tip));
}

void Svg::text(SvgPoint at, std::string_view text, Anchor anchor, std::string_view css_class) {
  constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", pixels(at.x), pixels(at.y),
                       kAnchors[static_cast<size_t>(anchor)],
                       css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class), html_text(text));
}

std::string Svg::html() const {
  return fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}{}</svg></div>\n", title_,
                     head_, body_);
}

}  // namespace stet
