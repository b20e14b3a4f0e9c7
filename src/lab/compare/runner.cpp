#include "lab/compare/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "lab/packet/packet.h"
#include "base/strict_json.h"

namespace stet {
namespace {

// The values of a point in the placeholders of a command: "context=100 prompt=128" for {context} and {prompt}.
std::vector<std::string> filled(const ArmSpec& spec, const std::string& point) {
  std::vector<std::string> words = spec.words;
  for (const std::string& pair : split_words(point)) {
    const size_t sign = pair.find('=');
    if (sign == std::string::npos || sign == 0) fail(Code::kUsage, "the point '{}' is not NAME=VALUE ...", point);
    const std::string hole = "{" + pair.substr(0, sign) + "}", value = pair.substr(sign + 1);
    for (std::string& word : words)
      for (size_t at = 0; (at = word.find(hole, at)) != std::string::npos; at += value.size())
        word.replace(at, hole.size(), value);
  }
  return words;
}

// The last line of what a program wrote that is a JSON object; its numbers, and the objects and texts dropped.
std::string last_figures(const std::string& log_text, const std::string& name) {
  std::string_view text = log_text;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const size_t begin = text.rfind('\n') + 1;
  const Json printed = Json::parse(text.substr(begin), nullptr, false);
  if (!printed.is_object())
    fail(Code::kInput, "the last line of {} is no JSON object: {}", name, text.substr(begin).substr(0, 200));
  Json figures = Json::object();
  for (const auto& [key, value] : printed.items())
    if (value.is_number()) figures[key] = value;
  if (figures.empty()) fail(Code::kInput, "{} printed no figures", name);
  return dump_line(figures);
}

class Runner {
 public:
  Runner(const CompareRun& run, Attempt& attempt) : run_(run), attempt_(attempt), writer_(run.packet, run.plan_json) {
    writer_.note("ledger", attempt.context_json());
    seen_.plan_json = run.plan_json;
    if (run.questions) requests_ = planned_requests(*run.questions);
  }

  CompareOutcome all() {
    const std::vector<Leg> legs = legs_of(run_.plan);
    size_t done = 0;
    bool told = false;
    for (const Leg& leg : legs) {
      if (!leg.aa && !told) tell_floor();
      told = told || !leg.aa;
      say(fmt::format("{} of {}: {} round {}, arm {}", ++done, legs.size(), leg.aa ? "A/A" : "A-B-B-A", leg.round + 1,
                      leg.arm));
      run_undisturbed(leg);
    }
    CompareOutcome outcome;
    outcome.results_json = writer_.finish();
    outcome.verdict = judge_comparison(run_.plan, seen_);
    const MappedFile manifest(run_.packet + "/MANIFEST");
    outcome.packet_sha256 = sha256_hex(manifest.bytes().data(), manifest.bytes().size());
    return outcome;
  }

 private:
  void say(const std::string& line) const {
    if (run_.progress) run_.progress(line);
  }
  // A start that other machines disturbed is run again, as often as the plan allows; the last one stands, whatever it is. The judge
  // finds out from the events which one counts (disturbed.h).
  void run_undisturbed(Leg leg) {
    for (uint32_t repeats = 0;; ++repeats) {
      leg.start = next_[leg.arm == 'B']++;
      run_.plan.measures() ? measure(leg) : serve(leg);
      if (repeats >= run_.plan.disturbed_repeats.value_or(0)) return;
      const std::string why = stolen_from(seen_, std::string(1, leg.arm), leg.start);
      if (why.empty()) return;
      say(fmt::format("arm {} again: {}", leg.arm, why));
    }
  }

  const ArmSpec& spec(const Leg& leg) const { return leg.arm == 'A' ? run_.a : run_.b; }

  void begin(const Leg& leg, bool fresh, const std::string& identity) {
    const StartRecord start{std::string(1, leg.arm), leg.start, fresh, identity, monotonic_ns()};
    writer_.add(start);
    seen_.starts.push_back(start);
  }

  // From here on the attempt counts: B runs.
  void treat(const Leg& leg) {
    if (leg.arm == 'B') attempt_.treatment();
  }

  void serve(const Leg& leg) {
    ServedArm arm(spec(leg), run_.options);
    begin(leg, arm.fresh(), arm.identity().json);
    const Json before = counters(arm);
    treat(leg);
    uint32_t index = 0;
    for (const PlannedRequest& request : requests_) {
      if (run_.options.stop && run_.options.stop()) fail(Code::kCancelled, "interrupted before '{}'", request.step_id);
      RequestRecord r = arm.ask(request);
      r.arm = std::string(1, leg.arm);
      r.start = leg.start;
      r.index = index++;
      r.id = fmt::format("{}-{}-{}", r.arm, r.start, request.step_id);
      writer_.add(r);
      seen_.requests.push_back(std::move(r));
    }
    note_growth(leg, arm, before);
  }

  // The counters of /metrics that are witnesses.
  Json counters(ServedArm& arm) const {
    Json values = Json::object();
    for (const Witness& w : run_.plan.witnesses)
      if (const auto name = metric_of(w.counter))
        if (const auto value = arm.metric(*name)) values[*name] = *value;
    return values;
  }

  // A labelled sample that is there only after its first event counts from 0, where the server has metrics at all.
  void note_growth(const Leg& leg, ServedArm& arm, const Json& before) {
    const Json after = counters(arm);
    if (after.empty()) return;
    Json growth = Json::object();
    for (const auto& [name, value] : after.items()) growth[name] = value.get<double>() - before.value(name, 0.0);
    const std::string body = dump_line({{"arm", std::string(1, leg.arm)}, {"start", leg.start}, {"growth", growth}});
    writer_.note("counters", body);
    seen_.notes.emplace_back("counters", body);
  }

  void measure(const Leg& leg) {
    const std::string& point = run_.plan.points[leg.point];
    const TemporaryFolder folder;
    const std::vector<std::string> words = filled(spec(leg), point);
    begin(leg, true, "{}");
    MeasureRecord m;
    m.arm = std::string(1, leg.arm);
    m.start = leg.start;
    m.point = point;
    m.before = run_.sample();
    m.begin_ns = monotonic_ns();
    ChildProcess program(words, folder.file("out"), folder.file("log"));
    treat(leg);
    const int code = program.wait(run_.options.measure_seconds, run_.options.stop);
    m.end_ns = monotonic_ns();
    m.after = run_.sample();
    if (code != 0)
      fail(Code::kInput, "{} ended with code {}; its last words: {}", words[0], code, program.last_words());
    m.figures_json = last_figures(program.output(), words[0]);
    writer_.add(m);
    seen_.measures.push_back(std::move(m));
  }

  // What the A/A phase says. Throws where it is not valid.
  void tell_floor() {
    const AaPhase phase = judge_aa(run_.plan, seen_);
    if (!phase.faults.empty())
      fail(Code::kInput, "the A/A phase is not valid, so nothing can be compared: {}{}", phase.faults[0],
           phase.faults.size() > 1 ? fmt::format(" (and {} more reasons)", phase.faults.size() - 1) : "");
    if (run_.floor) run_.floor(phase.series);
  }

  const CompareRun& run_;
  Attempt& attempt_;
  PacketWriter writer_;
  std::vector<PlannedRequest> requests_;
  Packet seen_;
  uint32_t next_[2] = {0, 0};  // starts of A and of B so far
};

}  // namespace

CompareOutcome run_comparison(const CompareRun& run, Attempt& attempt) {
  STET_CHECK(run.plan.measures() || run.questions.has_value());
  return Runner(run, attempt).all();
}

Outcome ledger_outcome(const ComparePlan& plan, const CompareVerdict& v, const std::string& packet_sha256) {
  Outcome o;
  o.verdict = v.verdict;
  o.packet_sha256 = packet_sha256;
  o.reason = !v.reasons.empty() ? v.reasons[0] : !v.unproven.empty() ? "unproven: " + v.unproven[0] : "";
  const bool is_void = v.verdict == "void", promoted = v.verdict == "promoted";
  const bool loss = !v.series.empty() && std::any_of(v.series.begin(), v.series.end(), [](const JudgedSeries& s) {
    return s.ab.interval.covers && s.ab.interval.high < 1 && 1 - s.ab.ratio > s.noise.smallest_effect;
  });
  o.status.infrastructure = Infrastructure::sound;
  o.status.measurement = is_void              ? Measurement::invalid
                         : v.unproven.empty() ? Measurement::valid
                                              : Measurement::unproven;
  o.status.lifecycle = promoted ? Lifecycle::promoted : Lifecycle::finished;
  if (plan.measures()) {
    o.status.component = is_void    ? ComponentStatus::none
                         : promoted ? ComponentStatus::pass
                         : loss     ? ComponentStatus::loss
                                    : ComponentStatus::below_gate;
    return o;
  }
  o.status.correctness = !v.equality.faults.empty() ? Correctness::inexact
                         : v.equality.proved        ? Correctness::exact
                                                    : Correctness::unproven;
  o.status.endpoint = is_void || v.series.empty() ? EndpointStatus::none
                      : promoted                  ? EndpointStatus::pass
                      : loss                      ? EndpointStatus::loss
                                                  : EndpointStatus::below_gate;
  return o;
}

}  // namespace stet
