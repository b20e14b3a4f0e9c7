#include "lab/report/plots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/report/report_fixture_test.h"

namespace stet {
namespace {

using testing::HasSubstr;

RatePlot rates(uint32_t steps, uint32_t starts) {
  RatePlot plot{"Rate by prompt", "tokens/s", {"A", "B"}, {}};
  for (size_t arm = 0; arm < 2; ++arm)
    for (uint32_t s = 0; s < starts; ++s)
      for (uint32_t i = 0; i < steps; ++i)
        plot.dots.push_back(
            {fmt::format("p{}", i), i % 2 ? "code" : "prose", arm, s, 40.0 + i + 3.0 * static_cast<double>(arm)});
  return plot;
}

TEST(PlotRates, DrawsAMarkForEveryRequest) {
  const std::string html = plot_rates("r", rates(12, 3));
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count_of(html, "start 1: "), 24u) << "12 prompts of two arms";
  EXPECT_EQ(count_of(html, "<circle"), 36u + 1) << "and one in the legend";
  EXPECT_EQ(count_of(html, "<polygon"), 36u + 1);
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">p11</th><td>code</td><td class=\"n\">51.00</td>"));
  EXPECT_EQ(count_of(html, "class=\"class\">code<"), 1u);
}

// The first value stands below x = 216, its name centred there.
TEST(PlotRates, TheUnitHasRoomBesideLongValues) {
  RatePlot plot = rates(4, 1);
  for (RateDot& dot : plot.dots) dot.value += 100000;
  const std::string html = plot_rates("r", plot);
  EXPECT_THAT(html, HasSubstr(">100040<"));
  EXPECT_THAT(html, testing::ContainsRegex("<text x=\"172\"[^>]*>tokens/s<"));
}

TEST(PlotRates, ManyPromptsBecomeRowsOfClasses) {
  const std::string html = plot_rates("r", rates(70, 1));
  EXPECT_THAT(html, HasSubstr("a row is a class"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">prose</th><td>prose</td><td class=\"n\">40.00</td><td "
                              "class=\"n\">74.00</td><td class=\"n\">108.00</td>"));
  EXPECT_EQ(count_of(html, "<circle"), 70u + 1);
}

TEST(PlotTimeline, IsALineForEveryRequest) {
  std::vector<TimelineLine> lines;
  for (uint32_t i = 0; i < 5; ++i)
    lines.push_back({i % 2, fmt::format("r{}", i), timeline_points(report_request("A", 0, i))});
  const std::string html = plot_timeline("t", {"A", "B"}, lines);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count_of(html, "<polyline"), 5u);
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">120</td>"));
  EXPECT_EQ(html.find("are drawn"), std::string::npos);
}

TEST(PlotTimeline, SaysWhatItLeavesOut) {
  const std::vector<SvgPoint> points = {{0.1, 1}, {0.5, 100}};
  const std::string html = plot_timeline("t", {"A"}, std::vector<TimelineLine>(1000, {0, "r", points}));
  EXPECT_EQ(count_of(html, "<polyline"), 200u);
  EXPECT_THAT(html, HasSubstr("200 of 1000 requests are drawn."));
}

TEST(TimelinePoints, CountTokensOfAChunkTogether) {
  RequestRecord r;
  r.sent_ns = 1'000'000'000;
  ChunkEvent role, first, second, text_only;
  role.channel = Channel::none;
  role.client_ns = 1'100'000'000;
  first.client_ns = 1'500'000'000;
  first.token_ids = std::vector<int32_t>{1, 2, 3};
  second.client_ns = 2'000'000'000;
  second.token_ids = std::vector<int32_t>{4};
  text_only.client_ns = 2'500'000'000;
  text_only.text = "x";
  r.chunks = {role, first, second, text_only};
  const std::vector<SvgPoint> points = timeline_points(r);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_DOUBLE_EQ(points[0].x, 0.5);
  EXPECT_DOUBLE_EQ(points[0].y, 3);
  EXPECT_DOUBLE_EQ(points[1].y, 4);
  EXPECT_DOUBLE_EQ(points[2].y, 5);
}

TEST(PlotRequest, MarksCyclesInWhichProposalsStood) {
  const RequestRecord r = report_request("A", 0, 3);
  const std::string html = plot_request("q", r);
  EXPECT_EQ(unbalanced(html), "");
  size_t stood = 0;
  for (const ChunkEvent& chunk : r.chunks) stood += chunk.accepted.value_or(0) > 0 ? 1 : 0;
  EXPECT_EQ(count_of(html, "<polygon"), stood + 1);
  EXPECT_EQ(count_of(html, "<circle"), r.chunks.size() - stood + 1);
}

TEST(PlotAcceptance, HasABarForEveryPosition) {
  const std::string html = plot_acceptance("a", {{0, "A", {0.75, 0.5}, "5 of 8"}, {1, "B", {1, 0.25, 0}, ""}});
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count_of(html, "<rect"), 5u);
  EXPECT_THAT(html, HasSubstr("A, position 1: 75.0 %"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">3</th><td class=\"n\">–</td><td class=\"n\">0.0 %</td>"));
}

TEST(PlotPairs, TellsWhichGotWorse) {
  const std::vector<PairLine> lines = {{"p0", "code", 40, 50}, {"p1", "prose", 40, 39}};
  const std::string html = plot_pairs("p", {"Rates", "tokens/s", "prompt", true, lines});
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count_of(html, "class=\"pair\""), 1u);
  EXPECT_EQ(count_of(html, "class=\"pair worse\""), 1u);
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">1.2500</td>"));
  const std::string times = plot_pairs("p", {"Times", "seconds", "prompt", false, lines});
  EXPECT_THAT(times, HasSubstr("<td class=\"n\">0.8000</td>"));
}

TEST(PlotRatios, ShowsIntervalAndNoise) {
  const RatioPlot plot{"Ratios", {{"p0", "code", 1.25}, {"p1", "prose", 1.1}}, 1.175, 1.1, 1.25, "95 %", 0.02};
  const std::string html = plot_ratios("r", plot);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THAT(html, HasSubstr("Band: its interval at 95 %, 1.1000 to 1.2500."));
  EXPECT_THAT(html, HasSubstr("1 ± 0.0200"));
  EXPECT_EQ(count_of(html, "class=\"interval\""), 1u);
  EXPECT_EQ(count_of(html, "class=\"noise\""), 1u);
}

TEST(Plots, OfNothingAreNothing) {
  EXPECT_EQ(plot_rates("x", {"t", "u", {"A"}, {}}), "");
  EXPECT_EQ(plot_timeline("x", {"A"}, {}), "");
  EXPECT_EQ(plot_timeline("x", {"A"}, {{0, "r", {}}}), "");
  EXPECT_EQ(plot_request("x", RequestRecord()), "");
  EXPECT_EQ(plot_acceptance("x", {{0, "A", {}, ""}}), "");
  EXPECT_EQ(plot_pairs("x", PairPlot()), "");
  EXPECT_EQ(plot_ratios("x", RatioPlot()), "");
}

TEST(Plots, OfOneEqualValueStandStill) {
  EXPECT_EQ(unbalanced(plot_rates("x", {"t", "u", {"A"}, {{"p", "c", 0, 0, 0.0}}})), "");
  EXPECT_EQ(unbalanced(plot_pairs("x", {"t", "u", "prompt", true, {{"p", "c", 5, 5}}})), "");
  EXPECT_EQ(unbalanced(plot_timeline("x", {"A"}, {{0, "r", {{0, 0}}}})), "");
  EXPECT_EQ(unbalanced(plot_ratios("x", {"t", {{"p", "c", 1}}, 1, 1, 1, "", 0.0})), "");
}

TEST(Plots, EscapeNames) {
  const std::string evil = "<script>x</script>\x1b";
  RatePlot plot{evil, evil, {evil}, {{evil, evil, 0, 0, 1.0}}};
  for (const std::string& html :
       {plot_rates("x", plot), plot_timeline("x", {evil}, {{0, evil, {{1, 1}}}}),
        plot_acceptance("x", {{0, evil, {0.5}, evil}}), plot_pairs("x", {evil, evil, evil, true, {{evil, evil, 1, 2}}}),
        plot_ratios("x", {evil, {{evil, evil, 1}}, 1, 1, 1, evil, 0.1})}) {
    EXPECT_EQ(unbalanced(html), "");
    EXPECT_EQ(html.find("<script"), std::string::npos);
    EXPECT_EQ(html.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace stet
