// Pictures as inline SVG. Colours and fonts are the page's: shapes carry classes (report.css).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stet {

struct SvgPoint {
  double x = 0, y = 0;
};

enum class SvgShape : uint8_t { circle, square, diamond, ring };

// Coordinates are in CSS pixels of the picture, y downwards, and must be finite.
class Svg {
 public:
  // id: unique in the page. title and description are what a reader gets who cannot see the picture.
  Svg(std::string_view id, double width, double height, std::string_view title, std::string_view description);

  void line(SvgPoint from, SvgPoint to, std::string_view css_class);
  void polyline(std::span<const SvgPoint> points, std::string_view css_class);
  void rectangle(SvgPoint corner, double width, double height, std::string_view css_class, std::string_view tip = {});
  // tip: shown by browsers when a pointer rests on the shape.
  void mark(SvgShape shape, SvgPoint at, double radius, std::string_view css_class, std::string_view tip = {});
  enum class Anchor : uint8_t { start, middle, end };
  void text(SvgPoint at, std::string_view text, Anchor anchor = Anchor::start, std::string_view css_class = {});

  // In a box of its own that scrolls sideways where the page is narrow.
  std::string html() const;

 private:
  std::string title_, head_, body_;
};

}  // namespace stet
