#include "lab/report/plots.h"

#include <fmt/format.h>

#include <iterator>

#include "lab/report/markup.h"

namespace stet {

SvgShape arm_shape(size_t arm) {
  constexpr SvgShape kShapes[] = {SvgShape::circle, SvgShape::diamond, SvgShape::square, SvgShape::ring};
  return kShapes[arm % std::size(kShapes)];
}

std::string arm_class(size_t arm) { return fmt::format("arm{}", arm % 4); }

std::string figure_html(const Svg& svg, std::string_view caption, std::string_view table_html) {
  return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n{}</figure>\n", svg.html(), html_text(caption),
                     html_folded("The same as a table", table_html));
}

double draw_legend_entry(Svg& svg, SvgPoint at, size_t arm, std::string_view name) {
  svg.mark(arm_shape(arm), {at.x + 6, at.y - 4}, 4.5, arm_class(arm));
  const std::string text = with_ellipsis(name, 40);
  svg.text({at.x + 18, at.y}, text);
  return at.x + 44 + 7.2 * static_cast<double>(text.size());
}

void draw_legend(Svg& svg, SvgPoint at, const std::vector<std::string>& arms) {
  for (size_t arm = 0; arm < arms.size(); ++arm) at.x = draw_legend_entry(svg, at, arm, arms[arm]);
}

}  // namespace stet
