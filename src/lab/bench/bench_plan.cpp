#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "lab/bench/bench.h"
#include "lab/packet/packet.h"
#include "lab/packet/teacher.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr uint32_t kMostRepeats = 1000;

Json steps_json(const BenchQuestions& questions) {
  Json steps = Json::array();
  const std::vector<PlannedRequest> requests = planned_requests(questions);
  for (size_t i = 0; i < requests.size(); ++i) {
    const SuiteStep& step = questions.suite.steps[i % questions.suite.steps.size()];
    Json json = {{"id", requests[i].step_id}, {"class", requests[i].step_class}};
    if (step.ideal) json["expect"] = *step.ideal;
    if (step.cancel_after_tokens) json["cancel_after_tokens"] = *step.cancel_after_tokens;
    if (step.round > 0) json["round"] = step.round;
    steps.push_back(std::move(json));
  }
  return steps;
}

Json suite_json(const BenchQuestions& questions) {
  const Suite& s = questions.suite;
  return {{"id", s.id},
          {"version", s.version},
          {"sha256", s.sha256},
          {"cold", s.cold},
          {"repeats_allowed", s.repeats_allowed},
          {"steps", steps_json(questions)}};
}

Json arms_json(const BenchJob& job) {
  Json arms = Json::array();
  for (const BenchArmJob& arm : job.arms)
    arms.push_back({{"name", arm.name},
                    {"role", arm.teacher ? "teacher" : "candidate"},
                    {"starts", arm.starts},
                    {"speculative", arm.speculative},
                    {"fixed_length", job.questions.ignore_eos},
                    {"what", parse_json(arm.what_json, "an arm")}});
  return arms;
}

// Sampling and length: what the steps are asked with. A request without a step says all of it.
Json questions_json(const BenchQuestions& questions) {
  PlannedRequest general;
  general.sampling = questions.sampling;
  general.ignore_eos = questions.ignore_eos;
  Json json = {{"repeats", questions.repeats},
               {"nonce_seed", questions.suite.nonce ? Json(questions.nonce_seed) : Json(nullptr)},
               {"sampling", parse_json(sampling_json(general), "sampling")},
               {"max_tokens", questions.max_tokens ? Json(*questions.max_tokens) : Json(nullptr)}};
  return json;
}

Json requests_json(const BenchQuestions& questions) {
  Json list = Json::array();
  for (const PlannedRequest& r : planned_requests(questions))
    list.push_back(parse_json(planned_request_json(r), "a request"));
  return list;
}

// For a message: how the steps of the teacher differ from these.
void check_steps(const Json& theirs, const BenchQuestions& questions) {
  std::vector<std::string> a, b;
  for (const Json& step : theirs) a.push_back(step.at("id").get<std::string>());
  for (const PlannedRequest& r : planned_requests(questions)) b.push_back(r.step_id);
  if (a != b)
    fail(Code::kUsage,
         "the teacher packet was asked {} requests and this run has {}: give it the same --steps and --repeats",
         a.size(), b.size());
}

}  // namespace

std::vector<PlannedRequest> planned_requests(const BenchQuestions& q) {
  std::vector<PlannedRequest> requests;
  for (uint32_t repeat = 0; repeat < q.repeats; ++repeat) {
    for (const SuiteStep& step : q.suite.steps) {
      PlannedRequest r;
      r.step_id = repeat == 0 ? step.id : fmt::format("{}#{}", step.id, repeat + 1);
      r.step_class = step.step_class;
      r.messages = step_messages(q.suite, step, q.nonce_seed, repeat);
      r.max_tokens = q.max_tokens ? std::min(*q.max_tokens, step.max_tokens) : step.max_tokens;
      r.sampling = q.sampling;
      r.stop = step.stop;
      r.ignore_eos = step.ignore_eos || q.ignore_eos;
      r.cold = q.suite.cold;
      r.cancel_after_tokens = step.cancel_after_tokens;
      requests.push_back(std::move(r));
    }
  }
  return requests;
}

std::string bench_plan_json(const BenchJob& job) {
  Json plan = {{"kind", "bench"},
               {"created", job.created},
               {"label", job.label},
               {"suite", suite_json(job.questions)},
               {"arms", arms_json(job)}};
  plan["teacher"] = nullptr;
  if (!job.teacher_packet.empty()) plan["teacher"] = {{"manifest_sha256", manifest_sha256(job.teacher_packet)}};
  plan["questions"] = questions_json(job.questions);
  plan["rules"] = {"one request at a time, in this order", "no request before the first, none sent again",
                   "one connection for each request to a server", "every start asks the same"};
  plan["requests"] = requests_json(job.questions);
  return plan.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string bench_subject_sha256(const BenchJob& job) {
  Json questions = questions_json(job.questions);
  questions.erase("nonce_seed");
  const std::string subject =
      dump_line({{"suite", job.questions.suite.sha256}, {"arms", arms_json(job)}, {"questions", questions}});
  return sha256_hex(subject.data(), subject.size());
}

BenchQuestions questions_of_teacher(const std::string& packet, const Suite& suite) {
  const Packet teacher = read_packet(packet);
  const Json plan = parse_json(teacher.plan_json, packet + "/plan.json");
  StrictObject object(plan, packet + "/plan.json");
  if (object.text("kind") != "bench") fail(Code::kUsage, "{} is no packet of stet bench, and so no teacher", packet);
  StrictObject theirs(object.any("suite"), packet + "/plan.json, 'suite'");
  if (const std::string sha256 = theirs.text("sha256"); sha256 != suite.sha256)
    fail(Code::kUsage, "the teacher packet was asked the suite {} (SHA-256 {}) and not {} (SHA-256 {})",
         theirs.text("id"), sha256, suite.id, suite.sha256);
  StrictObject asked(object.any("questions"), packet + "/plan.json, 'questions'");
  BenchQuestions questions;
  questions.suite = suite;
  questions.repeats = static_cast<uint32_t>(asked.whole("repeats", 1, kMostRepeats));
  if (!asked.any("nonce_seed").is_null())
    questions.nonce_seed = static_cast<uint64_t>(asked.whole("nonce_seed", 0, INT64_MAX));
  if (!asked.any("max_tokens").is_null()) questions.max_tokens = asked.u32("max_tokens");
  const std::string general = dump_line({{"step", "s"},
                                         {"class", "c"},
                                         {"messages", {{{"role", "user"}, {"content", "x"}}}},
                                         {"max_tokens", 1},
                                         {"cold", true},
                                         {"sampling", asked.any("sampling")}});
  const PlannedRequest request = parse_planned_request(general, packet + "/plan.json, 'questions'");
  questions.sampling = request.sampling;
  questions.ignore_eos = request.ignore_eos;
  check_steps(theirs.any("steps"), questions);
  return questions;
}

}  // namespace stet
