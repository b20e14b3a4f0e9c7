#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "lab/metrics/acceptance.h"
#include "lab/packet/bench_arm.h"
#include "lab/packet/figures_json.h"

namespace stet {
namespace {

std::string stripped(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::vector<const RequestFigures*> figures_of(
    const std::vector<std::pair<std::string, const RequestFigures*>>& requests) {
  std::vector<const RequestFigures*> figures;
  for (const auto& [step_class, f] : requests) figures.push_back(f);
  return figures;
}

std::optional<double> median_first_100(const std::vector<std::pair<std::string, const RequestFigures*>>& requests) {
  std::vector<double> rates;
  for (const auto& [step_class, f] : requests)
    if (f->first_100) rates.push_back(f->first_100->interval_rate);
  if (rates.empty()) return std::nullopt;
  return median(std::move(rates));
}

}  // namespace

// (class, figures) of the requests that count: valid ones that their client waited for.
std::vector<std::pair<std::string, const RequestFigures*>> BenchArmJudge::timed(std::optional<uint32_t> start) const {
  std::vector<std::pair<std::string, const RequestFigures*>> list;
  for (const JudgedRequest& r : requests_)
    if (r.figures.invalid.empty() && !r.record->cancelled_by_client && (!start || r.record->start == *start))
      list.emplace_back(r.record->step_class, &r.figures);
  return list;
}

Json BenchArmJudge::exactness_json() const {
  return {{"status", status_},
          {"reason", reason_},
          {"against", text_or_null(against_)},
          {"compared", compared_},
          {"equal", equal_},
          {"first_difference", text_or_null(first_difference_)},
          {"repeat",
           {{"starts", repeat_.starts},
            {"fresh_starts", repeat_.fresh_starts},
            {"steps", repeat_.steps},
            {"equal", repeat_.equal},
            {"first_difference", text_or_null(repeat_.first)},
            {"not_compared", repeat_.missing}}}};
}

// How many answers a perfect model would have given: a property of the model, and no part of exactness.
Json BenchArmJudge::accuracy_json() const {
  std::map<std::string, std::string> expect;
  for (const BenchStep& step : plan_.steps)
    if (step.expect) expect[step.id] = stripped(*step.expect);
  uint32_t correct = 0, of = 0;
  for (const JudgedRequest& r : requests_) {
    const auto it = expect.find(r.record->step_id);
    if (it == expect.end()) continue;
    ++of;
    correct += stripped(r.record->text()) == it->second ? 1 : 0;
  }
  return {{"correct", correct}, {"of", of}};
}

Json BenchArmJudge::acceptance_json() const {
  AcceptanceCounts counts;
  for (const JudgedRequest& r : requests_) counts.add(*r.record);
  return {{"cycles", counts.cycles},
          {"proposed", counts.proposed},
          {"accepted", counts.accepted},
          {"emitted", counts.emitted},
          {"by_position", counts.by_position()}};
}

Json BenchArmJudge::request_json(const JudgedRequest& judged) const {
  const RequestRecord& r = *judged.record;
  const RequestFigures& f = judged.figures;
  const bool show = speeds_shown() && f.invalid.empty() && !r.cancelled_by_client;
  const std::vector<int32_t> ids = r.token_ids();
  return {{"id", r.id},
          {"start", r.start},
          {"index", r.index},
          {"step", r.step_id},
          {"class", r.step_class},
          {"prompt_sha256", sha256_hex(r.prompt.data(), r.prompt.size())},
          {"usage",
           {{"prompt_tokens", or_null(r.usage.prompt_tokens)},
            {"completion_tokens", or_null(r.usage.completion_tokens)},
            {"cached_tokens", or_null(r.usage.cached_tokens)}}},
          {"tokens", f.tokens},
          {"digest", ids.empty() ? Json(nullptr) : Json(token_digest(ids))},
          {"finish_reason", r.finish_reason},
          {"cancelled_by_client", r.cancelled_by_client},
          {"exact", or_null(judged.exact)},
          {"difference", text_or_null(judged.difference)},
          {"ttft_seconds", number_or_null(f.ttft_seconds, show)},
          {"first_100", window_json(f.first_100, show)},
          {"all", window_json(f.all, show)},
          {"wall_tokens_per_second", number_or_null(f.wall_rate, show)},
          {"prefill_tokens_per_second", number_or_null(f.prefill_rate, show)},
          {"server_tokens_per_second", number_or_null(f.server_rate, show)},
          {"target_passes_per_second", number_or_null(f.target_passes_per_second, show)},
          {"tokens_per_cycle", number_or_null(f.tokens_per_cycle)},
          {"tokens_per_cycle_without_bonus", number_or_null(f.tokens_per_cycle_without_bonus)},
          {"acceptance_by_position", f.acceptance_by_position},
          {"invalid", f.invalid},
          {"unproven", f.unproven}};
}

Json BenchArmJudge::by_class_json() const {
  std::map<std::string, std::vector<const RequestFigures*>> classes;
  for (const auto& [name, figures] : timed(std::nullopt)) classes[name].push_back(figures);
  Json list = Json::array();
  for (const auto& [name, figures] : classes)
    list.push_back({{"class", name}, {"requests", figures.size()}, {"summary", summary_json(figures, speeds_shown())}});
  return list;
}

// The first request of a start carries what later ones are spared, so it stands apart.
Json BenchArmJudge::by_start_json() const {
  Json list = Json::array();
  for (const StartRecord& s : starts_) {
    const auto requests = timed(s.start);
    const auto first = std::find_if(requests_.begin(), requests_.end(),
                                    [&](const JudgedRequest& r) { return r.record->start == s.start; });
    const bool known = first != requests_.end() && first->figures.invalid.empty();
    list.push_back({{"start", s.start},
                    {"fresh", s.fresh},
                    {"requests", requests.size()},
                    {"first_request_ttft_seconds",
                     known ? number_or_null(first->figures.ttft_seconds, speeds_shown()) : Json(nullptr)},
                    {"median_first_100_tokens_per_second", number_or_null(median_first_100(requests), speeds_shown())},
                    {"summary", summary_json(figures_of(requests), speeds_shown())}});
  }
  return list;
}

Json BenchArmJudge::headline_json() const {
  std::optional<double> lowest;
  uint32_t shorter = 0, requests = 0;
  for (const StartRecord& s : starts_) {
    const auto list = timed(s.start);
    const auto rate = median_first_100(list);
    if (rate && (!lowest || *rate < *lowest)) lowest = rate;
    for (const auto& [name, f] : list) {
      ++requests;
      shorter += f->first_100 && f->first_100->tokens < 100 ? 1 : 0;
    }
  }
  return {{"rule", "median interval rate over tokens 1 to 100 of each start's requests; of several starts, the lowest"},
          {"tokens_per_second", number_or_null(lowest, speeds_shown())},
          {"requests", requests},
          {"shorter_windows", shorter}};
}

Json BenchArmJudge::answers_json() const {
  Json answers = Json::array();
  for (const JudgedRequest& judged : requests_) {
    const RequestRecord& r = *judged.record;
    if (r.start != starts_.front().start) continue;
    answers.push_back({{"step", r.step_id},
                       {"prompt_sha256", sha256_hex(r.prompt.data(), r.prompt.size())},
                       {"cancelled", r.cancelled_by_client},
                       {"token_ids", r.token_ids()}});
  }
  return answers;
}

Json BenchArmJudge::results() const {
  const auto counted = timed(std::nullopt);
  Json json = {{"name", arm_.name},
               {"role", arm_.teacher ? "teacher" : "candidate"},
               {"verdict", verdict()},
               {"invalid", invalid_},
               {"unproven", unproven_},
               {"not_watched", not_watched_},
               {"exactness", exactness_json()},
               {"accuracy", accuracy_json()},
               {"identity", identity_},
               {"headline", headline_json()},
               {"summary", summary_json(figures_of(counted), speeds_shown())},
               {"class_balanced", class_balanced_json(counted, speeds_shown())},
               {"by_class", by_class_json()},
               {"by_start", by_start_json()},
               {"acceptance", acceptance_json()},
               {"requests", Json::array()}};
  for (const JudgedRequest& r : requests_) json["requests"].push_back(request_json(r));
  json["answers"] = arm_.teacher && !starts_.empty() ? answers_json() : Json::array();
  return json;
}

}  // namespace stet
