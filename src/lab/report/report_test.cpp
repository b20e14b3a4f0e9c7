#include "lab/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "lab/packet/manifest.h"
#include "lab/report/report_fixture_test.h"

namespace stet {

std::string compare_results(const Packet& packet);

namespace {

using testing::HasSubstr;
using testing::Not;

std::string report(const Packet& packet, const std::string& request = "") { return report_html(packet, {request}); }

Packet comparison(double gain, size_t prompts = 12, uint32_t rounds = 2) {
  ComparePlan plan = suite_plan(prompts);
  plan.aa_rounds = plan.rounds = rounds;
  Packet p = packet_of(plan, [&](const Leg& leg, size_t prompt) {
    return (40.0 + static_cast<double>(prompt)) * (leg.arm == 'B' ? gain : 1.0) *
           (1 + 0.001 * static_cast<double>((leg.start * 7 + prompt) % 5));
  });
  p.path = "c";
  p.results_json = results_of(p, "compare", compare_results);
  return p;
}

TEST(Report, OfAValidBenchmarkShowsRates) {
  const Packet p = report_bench();
  ASSERT_THAT(p.results_json, HasSubstr("\"verdict\": \"valid\""));
  const std::string html = report(p);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THAT(html, HasSubstr("<strong class=\"stamp good\">valid</strong>"));
  EXPECT_THAT(html, HasSubstr(p.plan_sha256));
  EXPECT_THAT(html, HasSubstr("n-gram draft, depth 4"));
  EXPECT_THAT(html, HasSubstr("History-accelerated"));
  EXPECT_THAT(html, HasSubstr("historical inclusive rate"));
  for (const char* id : {"rates-t", "timeline-t", "acceptance-t"}) EXPECT_THAT(html, HasSubstr(id));
  EXPECT_EQ(count_of(html, "start 1: "), 24u) << "a mark for every request";
  EXPECT_THAT(html, HasSubstr("<summary>Arm A, starts 0 to 1</summary>"));
}

TEST(Report, HasNoScriptAndAsksNobody) {
  const std::string html = report(report_bench(), "A-0-3");
  for (const char* part :
       {"<script", "http://", "https://", "url(", "@import", "<img", "<iframe", " style=", " onload"})
    EXPECT_THAT(html, Not(HasSubstr(part)));
}

TEST(Report, IsTheSameForTheSamePacket) { EXPECT_EQ(report(report_bench()), report(report_bench())); }

TEST(Report, ShowsNoSpeedThatIsNotProved) {
  Packet p = report_bench();
  for (RequestRecord& r : p.requests)
    if (r.arm == "A" && r.start == 1 && r.index == 2) r.chunks.back().token_ids->back() += 1;
  p.results_json = recompute_results(p);
  const std::string html = report(p);
  EXPECT_THAT(html, HasSubstr("<strong class=\"stamp bad\">invalid</strong>"));
  EXPECT_THAT(html, HasSubstr("no rate"));
  EXPECT_EQ(count_of(html, "class=\"arm1\"><title>"), 0u) << "no mark of arm A in any picture of speed";
  EXPECT_THAT(html, HasSubstr("✗")) << "the style names what is invalid";
}

TEST(Report, OfOneRequestDrawsItsChunks) {
  const std::string html = report(report_bench(), "A-1-4");
  EXPECT_THAT(html, HasSubstr("Request A-1-4"));
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THROW(report(report_bench(), "nobody"), Error);
}

TEST(Report, OfAComparisonShowsPairs) {
  const std::string html = report(comparison(1.2));
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THAT(html, HasSubstr("<strong class=\"stamp good\">promoted</strong>"));
  EXPECT_EQ(count_of(html, "class=\"pair\""), 12u);
  EXPECT_THAT(html, HasSubstr("ratios0-t"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">--draft</th><td>proposed</td>"));
}

TEST(Report, OfAComparisonWithoutGainSaysWhy) {
  const std::string html = report(comparison(1.0));
  EXPECT_THAT(html, HasSubstr("stamp unsure\">not promoted"));
  EXPECT_THAT(html, HasSubstr("Why B is not promoted"));
}

TEST(Report, OfProgramsShowsPairsOfStarts) {
  ComparePlan plan = suite_plan();
  plan.a_kind = plan.b_kind = ArmKind::measure;
  plan.a_shown = "measure:old";
  plan.b_shown = "measure:new";
  plan.points = {"context=100"};
  plan.steps.clear();
  plan.figures = {{"decode_ms", false}};
  plan.witnesses.clear();
  plan.rounds = 4;
  Packet p;
  p.path = "m";
  p.plan_json = plan_json(plan);
  p.identity_json = "{}";
  int64_t now = 1000;
  for (const Leg& leg : legs_of(plan)) {
    const std::string arm(1, leg.arm),
        figures = fmt::format(R"({{"decode_ms":{}}})", (leg.arm == 'B' ? 8 : 10) + 0.01 * (leg.start % 3));
    p.starts.push_back({arm, leg.start, true, "{}", now});
    p.measures.push_back({arm, leg.start, "context=100", figures, now, now + 500, {}, {}});
    now += 1000;
  }
  p.results_json = results_of(p, "compare", compare_results);
  const std::string html = report(p);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count_of(html, "class=\"pair\""), 8u) << "four rounds of two pairs";
  EXPECT_THAT(html, HasSubstr("a line is a pair of starts."));
  EXPECT_THAT(html, HasSubstr("decode_ms at context=100"));
  EXPECT_THAT(html, Not(HasSubstr("No timeline")));
}

TEST(Report, OfAVoidComparisonShowsNoFigure) {
  Packet p = comparison(1.2);
  p.requests.pop_back();
  p.results_json = results_of(p, "compare", compare_results);
  const std::string html = report(p);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THAT(html, HasSubstr("stamp bad\">void"));
  EXPECT_THAT(html, HasSubstr("No figure"));
  EXPECT_THAT(html, HasSubstr("No timeline"));
}

TEST(Report, OfAnUnknownKindShowsItsMembers) {
  Packet p = report_bench();
  p.results_json =
      R"({"kind":"later","plan_sha256":"x","results":{"verdict":"fine","deep":{"figure":42.5},"unproven":["that <b>"]}})";
  const std::string html = report(p);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">deep.figure</th><td>42.5</td>"));
  EXPECT_THAT(html, HasSubstr("that &lt;b&gt;"));
}

// Every place of a JSON in turn: nothing there, or one of five other things.
void for_each_place(Json& here, size_t& turn, const std::function<void()>& look_at) {
  const Json others[] = {nullptr, "<script>\xe2\x80\xae", -1e308, Json::array({Json::object()}), Json::object(), true};
  const Json kept = here;
  here = others[turn++ % std::size(others)];
  look_at();
  here = kept;
  if (!here.is_structured()) return;
  const size_t most = here.is_array() ? std::min<size_t>(here.size(), 2) : here.size();
  size_t i = 0;
  for (auto it = here.begin(); it != here.end() && i < most; ++it, ++i) for_each_place(*it, turn, look_at);
}

// Packets of later versions may lack anything, or say something else there.
TEST(Report, TakesWhateverStandsInResults) {
  for (Packet p : {report_bench(1), comparison(1.2, 2, 1)}) {
    Json stored = parse_json(p.results_json, "results");
    size_t reports = 0, turn = 0;
    for_each_place(stored["results"], turn, [&] {
      p.results_json = stored.dump();
      const std::string html = report(p);
      ASSERT_EQ(unbalanced(html), "") << p.results_json;
      ASSERT_EQ(html.find("<script"), std::string::npos) << p.results_json;
      ++reports;
    });
    EXPECT_GT(reports, 90u);
  }
}

TEST(Report, EscapesEverythingOfAPacket) {
  const std::string evil = "\"><script>alert(1)</script>\x1b[31m\xe2\x80\xae";
  Packet p = report_bench(2);
  p.path = "x/" + evil;
  for (StartRecord& s : p.starts)
    s.identity_json = Json{{"build_id", "1"}, {"draft", "none"}, {"model", evil}, {evil, evil}}.dump();
  for (RequestRecord& r : p.requests) r.id = evil + r.id, r.step_class = evil;
  Json plan = parse_json(p.plan_json, "plan");
  plan["label"] = evil;
  plan["created"] = evil;
  p.plan_json = plan.dump();
  p.plan_sha256 = evil;
  p.identity_json = Json{{"client", {{evil, evil}}}}.dump();
  p.results_json = recompute_results(p);
  const std::string html = report(p, p.requests.back().id);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find("\xe2\x80\xae"), std::string::npos);
}

class ReportPacket : public PacketFolderTest {};

TEST_F(ReportPacket, IsReadWhenItRecomputes) {
  FakeBench().write(path("p"));
  const Packet p = read_packet_for_report(path("p"));
  EXPECT_EQ(unbalanced(report(p)), "");
}

TEST_F(ReportPacket, IsRefusedWhenItsResultsAreNotThoseOfItsEvents) {
  FakeBench().write(path("p"));
  std::string results = read_text(path("p/results.json"));
  const size_t at = results.find("\"tokens\": 120");
  ASSERT_NE(at, std::string::npos);
  results.replace(at, 13, "\"tokens\": 121");
  write_text(path("p/results.json"), results);
  EXPECT_THROW(read_packet_for_report(path("p")), Error) << "the manifest does not match";
  std::vector<ManifestEntry> entries = read_manifest(read_text(path("p/MANIFEST")));
  for (ManifestEntry& e : entries)
    if (e.name == kResultsFile) e = manifest_entry(kResultsFile, results);
  write_text(path("p/MANIFEST"), manifest_text(entries));
  try {
    (void)read_packet_for_report(path("p"));
    ADD_FAILURE() << "results that the events do not give were taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
    EXPECT_THAT(e.what(), HasSubstr("the results are not what the raw events give"));
  }
}

}  // namespace
}  // namespace stet
