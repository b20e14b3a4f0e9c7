#include "lab/report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "lab/report/axis.h"
#include "lab/report/report_fixture_test.h"

namespace stet {
namespace {

using testing::HasSubstr;

TEST(Svg, SaysWhatItShows) {
  const Svg svg("x", 100, 50.25, "A <title>", "A \"description\"");
  const std::string html = svg.html();
  EXPECT_THAT(html, HasSubstr("viewBox=\"0 0 100 50.3\""));
  EXPECT_THAT(html, HasSubstr("role=\"img\" aria-labelledby=\"x-t\" aria-describedby=\"x-d\""));
  EXPECT_THAT(html,
              HasSubstr("<title id=\"x-t\">A &lt;title&gt;</title><desc id=\"x-d\">A &quot;description&quot;</desc>"));
  EXPECT_EQ(unbalanced(html), "");
}

TEST(Svg, RoundsToTenths) {
  Svg svg("x", 10, 10, "t", "d");
  svg.line({1.0 / 3.0, -0.04}, {2, 1e3}, "grid");
  EXPECT_THAT(svg.html(), HasSubstr("<line x1=\"0.3\" y1=\"0\" x2=\"2\" y2=\"1000\" class=\"grid\"/>"));
}

TEST(Svg, DrawsEveryShape) {
  Svg svg("x", 10, 10, "t", "d");
  svg.mark(SvgShape::circle, {5, 5}, 2, "a", "<tip>");
  svg.mark(SvgShape::ring, {5, 5}, 2, "a");
  svg.mark(SvgShape::square, {5, 5}, 10, "a");
  svg.mark(SvgShape::diamond, {5, 5}, 4, "a");
  const SvgPoint points[] = {{0, 0}, {1.5, 2}};
  svg.polyline(points, "line");
  svg.rectangle({1, 2}, 3, 4, "bar");
  svg.text({1, 2}, "a<b", Svg::Anchor::end, "soft");
  const std::string html = svg.html();
  EXPECT_THAT(html, HasSubstr("<circle cx=\"5\" cy=\"5\" r=\"2\" class=\"a\"><title>&lt;tip&gt;</title></circle>"));
  EXPECT_THAT(html, HasSubstr("class=\"hollow a\""));
  EXPECT_THAT(html, HasSubstr("<polygon points=\"-4,-4 14,-4 14,14 -4,14\""));
  EXPECT_THAT(html, HasSubstr("<polygon points=\"5,0 10,5 5,10 0,5\""));
  EXPECT_THAT(html, HasSubstr("<polyline points=\"0,0 1.5,2\""));
  EXPECT_THAT(html, HasSubstr("<text x=\"1\" y=\"2\" text-anchor=\"end\" class=\"soft\">a&lt;b</text>"));
  EXPECT_EQ(unbalanced(html), "");
}

TEST(Svg, RefusesWhatIsNoPlace) {
  Svg svg("x", 10, 10, "t", "d");
  EXPECT_THROW(svg.line({std::numeric_limits<double>::quiet_NaN(), 0}, {0, 0}, "grid"), Error);
  EXPECT_THROW(svg.line({0, 0}, {std::numeric_limits<double>::infinity(), 0}, "grid"), Error);
}

TEST(Axis, HasRoundTicksAndCoversItsValues) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{{0, 1},
                                                                        {41.2, 58.9},
                                                                        {-3, 7},
                                                                        {0.0012, 0.0017},
                                                                        {1e6, 9.7e7},
                                                                        {5, 5},
                                                                        {0, 0},
                                                                        {-2, -2},
                                                                        {7, 3},
                                                                        {0.98, 1.31},
                                                                        {99.99999999, 100}}) {
    const Axis axis(low, high, 0, 100);
    EXPECT_LE(axis.low(), std::min(low, high) + 1e-9 * axis.high()) << low << " " << high;
    EXPECT_GE(axis.high(), std::max(low, high) - 1e-9 * axis.high()) << low << " " << high;
    EXPECT_GE(axis.ticks().size(), 2u) << low << " " << high;
    EXPECT_LE(axis.ticks().size(), 12u) << low << " " << high;
    EXPECT_DOUBLE_EQ(axis.at(axis.low()), 0);
    EXPECT_DOUBLE_EQ(axis.at(axis.high()), 100);
    for (const double tick : axis.ticks())
      EXPECT_NEAR(std::stod(axis.label(tick)), tick, 1e-6 * (std::abs(tick) + 1e-3)) << low << " " << high;
  }
}

TEST(Axis, NamesItsTicks) {
  const Axis axis(0, 100, 232, 40, 4);
  std::vector<std::string> labels;
  for (const double tick : axis.ticks()) labels.push_back(axis.label(tick));
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "50", "100"}));
  EXPECT_DOUBLE_EQ(axis.at(50), 136) << "downwards, as pixels go";
  const Axis fine(0.95, 1.2, 0, 1);
  labels.clear();
  for (const double tick : fine.ticks()) labels.push_back(fine.label(tick));
  EXPECT_EQ(labels, (std::vector<std::string>{"0.95", "1.00", "1.05", "1.10", "1.15", "1.20"}));
  EXPECT_EQ(Axis(-1, 1, 0, 1).label(-0.0), "0.0");
}

TEST(Axis, RefusesWhatIsNoNumber) { EXPECT_THROW(Axis(std::nan(""), 1, 0, 1), Error); }

}  // namespace
}  // namespace stet
