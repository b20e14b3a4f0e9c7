#include "cli/compare_flags.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cli/terminal.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr uint32_t kMostRounds = 1000, kMostResamples = 1000000, kMostAnswerTokens = 1u << 20, kMostWaitSeconds = 86400,
                   kMostDisturbed = 100;
constexpr uint64_t kRequestSeed = 1;

std::vector<std::string> parts_of(const std::string& list, char separator) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(separator, at), list.size());
    const std::string part = list.substr(at, end - at);
    const size_t first = part.find_first_not_of(' ');
    if (first != std::string::npos) out.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
    at = end + 1;
  }
  return out;
}

std::string read_api_key(const std::string& file) {
  if (file.empty()) return "";
  std::string key = read_text_file(file);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.empty() || key.find_first_of("\r\n \t") != std::string::npos)
    fail(Code::kUsage, "{} holds no key: one line without spaces is a key", file);
  return key;
}

// What a frozen plan decides, and nothing else may; also where it would say the same.
std::vector<std::string> plan_flags_given(const Flags& flags) {
  std::vector<std::string> given;
  for (const char* name : {"--rounds", "--aa-rounds", "--disturbed-repeats", "--rules", "--witness", "--equal", "--authority", "--class",
                           "--cite", "--label", "--seed", "--resamples", "--confidence", "--freeze", "--steps",
                           "--points", "--figure", "--max-tokens", "--ignore-eos"})
    if (flags.given(name)) given.emplace_back(name);
  return given;
}

// 0.95 and not 0.949999988079071.
double as_written(float value) { return Json::parse(fmt::format("{}", value)).get<double>(); }

}  // namespace

void CompareFlags::declare(Flags& flags) {
  flags.positional("A", &a, "the control: serve:FLAGS, command:CMD with {port}, endpoint:URL or measure:CMD");
  flags.positional("B", &b, "the candidate, of the same form");
  flags.section("What is compared");
  flags.text("--suite", "NAME|FILE", &suite,
             "what arms that serve are asked: canary-v1, realistic-v1, long-v1, or a file");
  flags.text("--steps", "ID,ID", &steps, "only these steps of the suite");
  flags.text("--points", "LIST", &points,
             "values for the {placeholders} of measure: arms, as 'context=100 prompt=128; context=2048 prompt=512'");
  flags.texts("--figure", "NAME[:lower]", &figures,
              "what is judged (rate_100; of programs every number whose name says its unit); repeatable");
  flags.count("-n,--max-tokens", &max_tokens, 1, kMostAnswerTokens, "no answer is longer (the suite's)");
  flags.toggle("--ignore-eos", &ignore_eos, "every answer is as long as it may be");
  declare_plan(flags);
  flags.section("Arms");
  flags.text("--api-key-file", "FILE", &key_file, "the key for servers that are not ours");
  flags.text("--model-id", "NAME", &model_id, "which of such a server's models (the only one)");
  flags.count("--ready", &ready, 1, kMostWaitSeconds, "seconds that a server may take to load (600)");
  flags.count("--timeout", &timeout, 1, kMostWaitSeconds, "seconds that a program may run (3600)");
  flags.section("Output");
  flags.text("-o,--out", "PACKET", &out, "the folder to write; it must not exist");
  flags.text("--ledger", "FILE", &ledger, "the ledger; default $XDG_DATA_HOME/stet/ledger.sqlite");
  flags.toggle("--json", &json, "print the packet's results instead of the text");
  flags.toggle("-q,--quiet", &quiet, "no progress");
  flags.footer(
      "A/A runs first and states what identical arms differ by; then A-B-B-A, a fresh process each time. The exit code "
      "is 0\n"
      "for a result, promoted or not, 6 where tokens differ that must not, 7 where the run proves nothing.");
}

void CompareFlags::declare_plan(Flags& flags) {
  flags.section("The plan (frozen before anything runs)");
  flags.count("--rounds", &rounds, 1, kMostRounds, "A-B-B-A so often; each gives two pairs (2)");
  flags.count("--aa-rounds", &aa_rounds, 1, kMostRounds, "A-A-A-A so often (as --rounds)");
  flags.count("--disturbed-repeats", &disturbed_repeats, 0, kMostDisturbed,
              "a start that lost more than 1 % of the processor to other machines is run again, up to so often (3)");
  flags.text("--rules", "FILE", &rules,
             "what promotion demands beyond an interval above 1 (docs/benchmark_judgement.md)");
  flags.texts("--witness", "OPTION=COUNTER", &witnesses,
              "what shows that an option under test did something; repeatable");
  flags.choice("--equal", &equal, {"nothing", "ids", "sequences"},
               "what the answers of A and B must have in common (by the options in which they differ)");
  flags.choice("--authority", &authority, {"one-shot", "until-treatment"},
               "when the plan is used up (until-treatment)");
  flags.text("--class", "NAME", &idea, "the class of ideas that it belongs to, for the ledger");
  flags.texts("--cite", "ID", &cites, "a closure of that class that is known; repeatable");
  flags.text("--label", "TEXT", &label, "for people: what this is about");
  flags.seed("--seed", &seed, "of the bootstrap and of the nonces (drawn)");
  flags.count("--resamples", &resamples, 100, kMostResamples, "of the bootstrap (10000)");
  flags.number("--confidence", &confidence, "of the interval (0.95)");
  flags.text("--freeze", "FILE", &freeze, "write the plan and run nothing");
  flags.text("--plan", "FILE", &plan_file,
             "run this frozen plan: it decides everything that stands under this heading");
}

void CompareFlags::check(const Flags& flags) const {
  if (a.empty() || b.empty()) fail(Code::kUsage, "two arms are compared: stet compare A B");
  if (plan_file.empty() && suite.empty() && !a.starts_with("measure:"))
    fail(Code::kUsage, "no suite given: --suite {} or a file", fmt::join(suite_names(), ", "));
  if (a.starts_with("measure:") && !suite.empty())
    fail(Code::kUsage, "a program measures by itself: --suite is for arms that serve");
  if (!a.starts_with("measure:") && !points.empty())
    fail(Code::kUsage, "--points are for programs: arms that serve have a --suite");
  const std::vector<std::string> given = plan_file.empty() ? std::vector<std::string>{} : plan_flags_given(flags);
  if (!given.empty()) fail(Code::kUsage, "the plan of --plan decides {}: leave it out", fmt::join(given, ", "));
  if (freeze.empty() && out.empty()) fail(Code::kUsage, "no packet given: --out FOLDER");
}

BenchQuestions CompareFlags::questions_of(const std::string& name, uint64_t nonce_seed) const {
  BenchQuestions q;
  q.suite = load_suite(name);
  if (!steps.empty()) q.suite = with_steps(q.suite, parts_of(steps, ','));
  q.nonce_seed = nonce_seed;
  q.sampling.seed = kRequestSeed;
  if (max_tokens > 0) q.max_tokens = max_tokens;
  q.ignore_eos = ignore_eos;
  return q;
}

BenchQuestions CompareFlags::questions_of_plan(const ComparePlan& plan) const {
  BenchQuestions q;
  q.suite = load_suite(suite.empty() ? plan.suite_id : suite);
  if (q.suite.sha256 != plan.suite_sha256)
    fail(Code::kUsage, "the plan was frozen for the suite with the hash {}..., and this one has {}...",
         plan.suite_sha256.substr(0, 12), q.suite.sha256.substr(0, 12));
  std::set<std::string> wanted;
  for (const PlannedStep& s : plan.steps) wanted.insert(s.id);
  std::erase_if(q.suite.steps, [&](const SuiteStep& s) { return wanted.count(s.id) == 0; });
  q.nonce_seed = plan.nonce_seed;
  q.sampling.seed = kRequestSeed;
  q.max_tokens = plan.max_tokens;
  q.ignore_eos = plan.ignore_eos;
  const std::vector<PlannedRequest> requests = planned_requests(q);
  const auto same = [](const PlannedRequest& r, const PlannedStep& s) { return r.step_id == s.id; };
  if (!std::equal(requests.begin(), requests.end(), plan.steps.begin(), plan.steps.end(), same))
    fail(Code::kUsage, "the plan has steps that this suite has not");
  return q;
}

void CompareFlags::take_figures(ComparePlan& plan) const {
  for (const std::string& text : figures) {
    const size_t colon = text.rfind(':');
    Figure figure{text.substr(0, colon), true};
    const std::string better = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (colon != std::string::npos && better != "lower" && better != "higher")
      fail(Code::kUsage, "--figure {} is not NAME, NAME:lower or NAME:higher", text);
    const auto by_unit = figure_by_unit(figure.name);
    figure.higher_is_better =
        !better.empty() ? better == "higher" : figure.name != "ttft" && (!by_unit || by_unit->higher_is_better);
    plan.figures.push_back(figure);
  }
  if (plan.figures.empty() && !plan.measures()) plan.figures.push_back({"rate_100", true});
}

Equal usual_equal(const ArmSpec& a, const ArmSpec& b) {
  if (a.kind != ArmKind::serve || b.kind != ArmKind::serve) return Equal::nothing;
  static const std::set<std::string> kNumbers = {"--model", "--activations", "--float", "--kv"}, kDrafts = {"--draft", "--draft-depth"};
  Equal equal = Equal::sequences;
  for (const OptionDifference& d : option_differences(a, b)) {
    if (kNumbers.count(d.option) > 0) return Equal::nothing;
    if (kDrafts.count(d.option) > 0) equal = Equal::ids;
  }
  return equal;
}

ComparePlan CompareFlags::new_plan(const ArmSpec& spec_a, const ArmSpec& spec_b,
                                   const std::optional<BenchQuestions>& questions, const std::string& created) const {
  ComparePlan plan;
  plan.label = label;
  plan.created = created;
  plan.frozen_in_a_file = !freeze.empty();
  plan.a_kind = spec_a.kind;
  plan.b_kind = spec_b.kind;
  plan.a_shown = spec_a.shown;
  plan.b_shown = spec_b.shown;
  plan.rounds = rounds;
  plan.aa_rounds = aa_rounds > 0 ? aa_rounds : rounds;
  plan.disturbed_repeats = disturbed_repeats;
  plan.equal = equal.empty() ? usual_equal(spec_a, spec_b) : parse_equal(equal);
  for (const std::string& text : witnesses) plan.witnesses.push_back(parse_witness(text));
  plan.witnesses = witnesses_for(spec_a, spec_b, plan.witnesses);
  if (!rules.empty()) plan.rules = parse_rules(read_text_file(rules), "the rules");
  plan.authority = parse_authority(authority);
  plan.idea = idea;
  for (const std::string& id : cites)
    plan.cites.push_back(static_cast<int64_t>(parse_whole("--cite", id, 1, INT64_MAX)));
  plan.bootstrap.resamples = resamples;
  plan.bootstrap.confidence = as_written(confidence);
  take_figures(plan);
  if (!questions) {
    plan.points = points.empty() ? std::vector<std::string>{""} : parts_of(points, ';');
    return plan;
  }
  plan.suite_id = questions->suite.id;
  plan.suite_version = questions->suite.version;
  plan.suite_sha256 = questions->suite.sha256;
  plan.cold = questions->suite.cold;
  plan.nonce_seed = questions->nonce_seed;
  plan.max_tokens = questions->max_tokens;
  plan.ignore_eos = questions->ignore_eos;
  for (const PlannedRequest& r : planned_requests(*questions)) plan.steps.push_back({r.step_id, r.step_class});
  return plan;
}

CompareRun CompareFlags::run(const std::string& created) const {
  CompareRun run;
  run.a = parse_arm(a);
  run.b = parse_arm(b);
  run.packet = out;
  run.options.program = this_program();
  run.options.api_key = read_api_key(key_file);
  run.options.model = model_id;
  run.options.ready_seconds = ready;
  run.options.measure_seconds = timeout;
  if (plan_file.empty()) {
    const uint64_t drawn = seed ? *seed : draw_seed();
    if (run.a.kind != ArmKind::measure) run.questions = questions_of(suite, drawn);
    ComparePlan plan = new_plan(run.a, run.b, run.questions, created);
    plan.bootstrap.seed = drawn;
    run.plan_json = plan_json(plan);
  } else {
    run.plan_json = read_text_file(plan_file);
  }
  run.plan = parse_plan(run.plan_json);
  if (run.plan.a_shown != run.a.shown || run.plan.b_shown != run.b.shown)
    fail(Code::kUsage, "the plan compares '{}' with '{}', and here stand '{}' and '{}'", run.plan.a_shown,
         run.plan.b_shown, run.a.shown, run.b.shown);
  if (!plan_file.empty() && !run.plan.measures()) run.questions = questions_of_plan(run.plan);
  return run;
}

}  // namespace stet
