#include "lab/compare/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/compare/compare_test_util.h"
#include "base/strict_json.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(ArmSpec, WordsAreSplitAsAShellDoes) {
  EXPECT_THAT(split_words("a  'b c' \"d \\\" e\" f\\ g ''"), ElementsAre("a", "b c", "d \" e", "f g", ""));
  EXPECT_THAT(split_words(""), ElementsAre());
  EXPECT_THAT(error_of([] { split_words("a 'b"); }), HasSubstr("not closed"));
}

TEST(ArmSpec, KindsAndWhatThePlanShows) {
  const ArmSpec serve = parse_arm("serve:-m /data/someone/m.gguf --draft model:/data/d.gguf --threads=2");
  EXPECT_EQ(serve.kind, ArmKind::serve);
  EXPECT_THAT(serve.words, ElementsAre("-m", "/data/someone/m.gguf", "--draft", "model:/data/d.gguf", "--threads=2"));
  EXPECT_EQ(serve.shown, "serve:-m m.gguf --draft model:d.gguf --threads=2");
  EXPECT_EQ(parse_arm("measure:/opt/x/bench --model=/y/m.gguf 'two words'").shown,
            "measure:bench --model=m.gguf 'two words'");
  EXPECT_EQ(parse_arm("command:/opt/llama-server --port {port}").shown, "command:llama-server --port {port}");
  EXPECT_EQ(parse_arm("endpoint:http://127.0.0.1:8080/v1").shown, "endpoint:http://127.0.0.1:8080/v1");
  EXPECT_EQ(parse_arm("endpoint:http://gpu-of-mine.lan:8080").shown, "endpoint:http://elsewhere:8080");
  EXPECT_EQ(parse_arm("endpoint:unix:/run/user/1/s.sock").shown, "endpoint:unix:s.sock");
}

TEST(ArmSpec, WhatIsNoArm) {
  EXPECT_THAT(error_of([] { parse_arm("http://127.0.0.1"); }), HasSubstr("one begins with serve:"));
  EXPECT_THAT(error_of([] { parse_arm("-m model"); }), HasSubstr("one begins with serve:"));
  EXPECT_THAT(error_of([] { parse_arm("serve:"); }), HasSubstr("empty"));
  EXPECT_THAT(error_of([] { parse_arm("command:llama-server"); }), HasSubstr("{port}"));
  EXPECT_THAT(error_of([] { parse_arm("endpoint:http://a http://b"); }), HasSubstr("more than a URL"));
}

TEST(ArmSpec, OptionsThatDiffer) {
  const auto differences = option_differences(parse_arm("serve:-m a.gguf --draft ngram --pin"),
                                              parse_arm("serve:--model=a.gguf --threads 2"));
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].option, "--draft");
  EXPECT_EQ(differences[0].a, "ngram");
  EXPECT_EQ(differences[0].b, "");
  EXPECT_EQ(differences[1].option, "--pin");
  EXPECT_EQ(differences[1].a, "on");
  EXPECT_EQ(differences[2].option, "--threads");
  EXPECT_TRUE(option_differences(parse_arm("measure:a"), parse_arm("measure:b")).empty());
}

TEST(Witnesses, UsualOnesAreKnownAndOthersMustBeNamed) {
  const auto of = [](const char* a, const char* b, std::vector<Witness> given = {}) {
    std::string all;
    for (const Witness& w : witnesses_for(parse_arm(a), parse_arm(b), given)) all += w.option + "=" + w.counter + " ";
    return all;
  };
  EXPECT_EQ(of("serve:-m m", "serve:-m m --draft ngram"), "--draft=proposed ");
  EXPECT_EQ(of("serve:-m m --draft none", "serve:-m m --draft ngram --draft-depth 4"),
            "--draft=proposed --draft-depth=proposed ");
  EXPECT_EQ(of("serve:-m m --draft ngram --draft-depth 4", "serve:-m m --draft ngram --draft-depth 8"),
            "--draft-depth=deeper:4 ");
  EXPECT_EQ(of("serve:-m m --isa avx2", "serve:-m m --isa avx512"), "--isa=identity:isa=avx512 ");
  EXPECT_EQ(of("serve:-m m", "serve:-m m --pin"), "--pin=identity:pin=true ");
  EXPECT_EQ(of("serve:-m m", "serve:-m m", {{"nothing", "proposed"}}), "nothing=proposed ");
  EXPECT_THAT(error_of([&] { of("serve:-m m", "serve:-m m --prompt-rows 8"); }),
              HasSubstr("--witness --prompt-rows=COUNTER"));
  EXPECT_EQ(of("serve:-m m", "serve:-m m --prompt-rows 8", {{"--prompt-rows", "metrics:stet_x"}}),
            "--prompt-rows=metrics:stet_x ");
  // The treatment in the control is no treatment: a draft taken away has no counter that grows.
  EXPECT_THAT(error_of([&] { of("serve:-m m --draft ngram", "serve:-m m"); }), HasSubstr("--witness --draft=COUNTER"));
}

TEST(Witnesses, Counters) {
  for (const char* good : {"proposed", "accepted", "deeper:4", "identity:isa=avx2", "metrics:a_b", "figure:x"})
    EXPECT_NO_THROW(check_counter(good)) << good;
  for (const char* bad : {"", "proposals", "deeper:", "deeper:x", "identity:isa", "identity:=1", "metrics:", "figure:"})
    EXPECT_THROW(check_counter(bad), Error) << bad;
  EXPECT_EQ(parse_witness("--draft=proposed").option, "--draft");
  EXPECT_THROW(parse_witness("proposed"), Error);
}

TEST(Witnesses, IdentityIsFoundWhereverItStands) {
  ComparePlan plan = suite_plan(1);
  const Packet packet = packet_of(plan, [](const Leg&, size_t) { return 50.0; });
  EXPECT_EQ(count_witness("identity:draft=ngram", packet, "B"), 4.0);
  EXPECT_EQ(count_witness("identity:draft=ngram", packet, "A"), 0.0);
  EXPECT_EQ(count_witness("identity:isa=avx2", packet, "A"), std::nullopt);
  EXPECT_EQ(count_witness("deeper:0", packet, "B"), 4.0 * 60);
  EXPECT_EQ(count_witness("deeper:1", packet, "B"), 0.0);
}

TEST(ComparePlan, SurvivesItsJson) {
  ComparePlan plan = suite_plan(3);
  plan.rules = parse_rules(R"({"minimum_ratio": 1.05, "every_pair": false})", "rules");
  plan.authority = Authority::one_shot;
  plan.idea = "drafts";
  plan.cites = {3, 4};
  plan.bootstrap.seed = uint64_t{INT64_MAX};
  const std::string json = plan_json(plan);
  EXPECT_EQ(plan_json(parse_plan(json)), json);
  EXPECT_EQ(parse_plan(json).bootstrap.seed, uint64_t{INT64_MAX});
}

TEST(ComparePlan, DamageIsNamed) {
  const std::string json = plan_json(suite_plan(3));
  const auto with = [&](const std::function<void(Json&)>& change) {
    Json j = Json::parse(json);
    change(j);
    return error_of([&] { parse_plan(j.dump()); });
  };
  EXPECT_THAT(with([](Json& j) { j["unknown"] = 1; }), HasSubstr("unknown"));
  EXPECT_THAT(with([](Json& j) { j.erase("rules"); }), HasSubstr("rules"));
  EXPECT_THAT(with([](Json& j) { j["rounds"] = 0; }), HasSubstr("rounds"));
  EXPECT_THAT(with([](Json& j) { j["kind"] = "bench"; }), HasSubstr("none of stet compare"));
  EXPECT_THAT(with([](Json& j) { j["figures"][0]["name"] = "speed"; }), HasSubstr("requests have no figure 'speed'"));
  EXPECT_THAT(with([](Json& j) { j["figures"] = Json::array(); }), HasSubstr("no figure"));
  EXPECT_THAT(with([](Json& j) { j["rules"]["minimum_fun"] = 1; }), HasSubstr("minimum_fun"));
  EXPECT_THAT(with([](Json& j) { j["arms"]["A"]["kind"] = "measure"; }), HasSubstr("no figure in common"));
  EXPECT_THAT(with([](Json& j) { j["suite"]["steps"][1]["id"] = "p0"; }), HasSubstr("'p0' twice"));
  EXPECT_THAT(with([](Json& j) { j["witnesses"][0]["counter"] = "x"; }), HasSubstr("no counter 'x'"));
  EXPECT_THAT(with([](Json& j) { j["bootstrap"]["confidence"] = 1.0; }), HasSubstr("confidence"));
}

TEST(ComparePlan, SubjectIsWhatIsCompared) {
  const ComparePlan plan = suite_plan();
  ComparePlan other = plan;
  other.bootstrap.seed = 99;
  other.created = "2027-01-01T00:00:00Z";
  other.label = "again";
  other.rounds = 9;
  EXPECT_EQ(subject_sha256(plan), subject_sha256(other));
  other.b_shown += " --threads 2";
  EXPECT_NE(subject_sha256(plan), subject_sha256(other));
  other = plan;
  other.suite_sha256[0] = '6';
  EXPECT_NE(subject_sha256(plan), subject_sha256(other));
}

TEST(ComparePlan, LegsAreAAFirstThenABBA) {
  ComparePlan plan = suite_plan(1);
  plan.aa_rounds = 1;
  plan.rounds = 2;
  std::string order;
  for (const Leg& leg : legs_of(plan))
    order += fmt::format("{}{}{}{} ", leg.aa ? "aa:" : "", leg.arm, leg.start, leg.side_b ? "b" : "a");
  EXPECT_EQ(order, "aa:A0a aa:A1b aa:A2b aa:A3a A4a B0b B1b A5a A6a B2b B3b A7a ");
}

TEST(ComparePlan, PointsKeepTheirPhasesApart) {
  ComparePlan plan = suite_plan(0);
  plan.points = {"x", "y"};
  plan.aa_rounds = plan.rounds = 1;
  std::string order;
  for (const Leg& leg : legs_of(plan))
    order += fmt::format("{}{}{}{} ", leg.aa ? "aa:" : "", plan.points[leg.point], leg.arm, leg.start);
  EXPECT_EQ(order, "aa:xA0 aa:xA1 aa:xA2 aa:xA3 aa:yA4 aa:yA5 aa:yA6 aa:yA7 xA8 xB0 xB1 xA9 yA10 yB2 yB3 yA11 ");
}

TEST(ComparePlan, UnitsSayWhatIsBetter) {
  EXPECT_TRUE(figure_by_unit("decode_tokens_per_second")->higher_is_better);
  EXPECT_FALSE(figure_by_unit("load_seconds")->higher_is_better);
  EXPECT_FALSE(figure_by_unit("step_us")->higher_is_better);
  EXPECT_FALSE(figure_by_unit("threads"));
}

TEST(CompareRules, Names) {
  EXPECT_TRUE(parse_rules("{}", "rules").every_pair);
  EXPECT_THAT(error_of([] { parse_rules(R"({"minimum_ratio": "1"})", "rules"); }),
              HasSubstr("'minimum_ratio' is no number"));
  EXPECT_THAT(error_of([] { parse_rules(R"({"minimum_wins": -1})", "rules"); }), HasSubstr("minimum_wins"));
  EXPECT_THAT(error_of([] { parse_rules("[]", "rules"); }), HasSubstr("rules"));
}

}  // namespace
}  // namespace stet
