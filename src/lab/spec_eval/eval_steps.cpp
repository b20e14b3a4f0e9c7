#include "lab/spec_eval/eval_steps.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr uint32_t kLogprobReserve = 4;  // answers may end early: so many times the positions are asked for
constexpr size_t kIdDigits = 32;
constexpr uint32_t kTemplateTokens = 64;

std::string step_id(const PackRequest& request, const EvalStep& step) {
  switch (step.kind) {
    case StepKind::timed:
      return step.repetition == 0 ? request.id : fmt::format("{}#{}", request.id, step.repetition + 1);
    case StepKind::cancelled:
      return request.id + "/cancelled";
    case StepKind::after_cancel:
      return request.id + "/after";
    case StepKind::logprobs:
      break;
  }
  return request.id + "/logprobs";
}

void add_timed(const std::vector<PackRequest>& pack, uint32_t repetitions, std::vector<EvalStep>& steps) {
  for (uint32_t repetition = 0; repetition < repetitions; ++repetition)
    for (size_t i = 0; i < pack.size(); ++i)
      steps.push_back({StepKind::timed, repetition % 2 == 0 ? i : pack.size() - 1 - i, repetition, ""});
}

Json range_json(const TokenRange& range) { return {range.first, range.second}; }

TokenRange read_range(StrictObject& object, std::string_view key) {
  const Json& json = object.any(key);
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() || !json[1].is_number_unsigned())
    fail(Code::kInput, "{}: '{}' is no range", object.what(), key);
  return {json[0].get<uint32_t>(), json[1].get<uint32_t>()};
}

PackRequest read_request(const Json& json, std::map<std::string, std::string>& prompts) {
  StrictObject object(json, "a request of the pack");
  PackRequest r;
  r.id = object.text("id");
  r.category = object.text("category");
  r.is_long = object.flag("long");
  r.prompt_bucket = read_range(object, "prompt_bucket");
  r.output_bucket = read_range(object, "output_bucket");
  r.prompt_tokens = object.u32("prompt_tokens");
  r.max_tokens = object.u32("max_tokens");
  const auto sent = prompts.find(object.text("prompt_sha256"));
  if (sent != prompts.end()) r.prompt = sent->second;
  object.finish();
  return r;
}

// The text of every prompt that was sent, by its hash.
std::map<std::string, std::string> sent_prompts(const Packet& packet) {
  std::map<std::string, std::string> prompts;
  for (const RequestRecord& r : packet.requests) {
    const std::vector<SuiteMessage> messages = parse_messages(r.prompt, "the prompt of a request");
    if (messages.size() != 1) continue;
    const std::string& text = messages[0].content;
    prompts.emplace(sha256_hex(text.data(), text.size()), text);
  }
  return prompts;
}

}  // namespace

std::vector<EvalStep> eval_steps(const SpecEvalContract& contract, const std::vector<PackRequest>& pack) {
  std::vector<EvalStep> steps;
  if (pack.empty()) return steps;
  add_timed(pack, contract.repetitions, steps);
  // The longest answer is the one that is surely not over when its client leaves.
  const auto longest = std::max_element(
      pack.begin(), pack.end(), [](const PackRequest& a, const PackRequest& b) { return a.max_tokens < b.max_tokens; });
  const auto left = static_cast<size_t>(longest - pack.begin());
  steps.push_back({StepKind::cancelled, left, 0, ""});
  steps.push_back({StepKind::after_cancel, (left + 1) % pack.size(), 0, ""});
  uint32_t positions = 0;
  for (size_t i = 0; i < pack.size() && positions < kLogprobReserve * contract.logprob_positions; ++i) {
    if (pack[i].is_long) continue;
    steps.push_back({StepKind::logprobs, i, 0, ""});
    positions += pack[i].max_tokens;
  }
  for (EvalStep& step : steps) step.id = step_id(pack[step.request], step);
  return steps;
}

PlannedRequest planned_step(const EvalStep& step, const PackRequest& request, const std::string& random_id) {
  PlannedRequest r;
  r.step_id = random_id;
  r.step_class = "request";
  r.messages = {{"user", request.prompt}};
  r.max_tokens = request.max_tokens;
  r.sampling.seed = 1;
  r.cold = true;
  r.logprobs = step.kind == StepKind::logprobs;
  if (step.kind == StepKind::cancelled) r.cancel_after_tokens = kCancelAfterTokens;
  return r;
}

uint32_t tokens_needed(const SpecEvalContract& c, double scale) {
  uint32_t prompt = 0, output = scaled(c.long_output, scale, 1).second;
  for (const auto& [tokens, n] : c.long_requests) prompt = std::max(prompt, scaled({tokens, tokens}, scale, 1).second);
  for (const TokenRange& r : c.prompt_buckets) prompt = std::max(prompt, scaled(r, scale, 1).second);
  for (const TokenRange& r : c.output_buckets) output = std::max(output, scaled(r, scale, 1).second);
  return prompt + output + kTemplateTokens;
}

std::string draw_request_id() {
  const uint64_t words[2] = {draw_seed(), draw_seed()};
  return sha256_hex(words, sizeof words).substr(0, kIdDigits);
}

bool is_request_id(std::string_view id) {
  return id.size() == kIdDigits && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string pack_note(const RevealedPack& pack) {
  Json requests = Json::array();
  for (const PackRequest& r : pack.requests)
    requests.push_back({{"id", r.id},
                        {"category", r.category},
                        {"long", r.is_long},
                        {"prompt_bucket", range_json(r.prompt_bucket)},
                        {"output_bucket", range_json(r.output_bucket)},
                        {"prompt_tokens", r.prompt_tokens},
                        {"max_tokens", r.max_tokens},
                        {"prompt_sha256", sha256_hex(r.prompt.data(), r.prompt.size())}});
  return dump_line({{"pack", pack.name},
                    {"seed", pack.seed},
                    {"seed_from", pack.drawn ? "drawn" : "given"},
                    {"sha256", pack_sha256(pack.requests)},
                    {"requests", requests}});
}

std::vector<RevealedPack> revealed_packs(const Packet& packet) {
  std::map<std::string, std::string> prompts = sent_prompts(packet);
  std::vector<RevealedPack> packs;
  for (const auto& [name, body] : packet.notes) {
    if (name != kPackNote) continue;
    const Json json = parse_json(body, "the note of a pack");
    StrictObject object(json, "the note of a pack");
    RevealedPack pack;
    pack.name = object.text("pack");
    pack.seed = object.optional_u64("seed").value_or(0);
    pack.drawn = object.text("seed_from") == "drawn";
    pack.sha256 = object.text("sha256");
    for (const Json& request : object.any("requests")) pack.requests.push_back(read_request(request, prompts));
    object.finish();
    packs.push_back(std::move(pack));
  }
  return packs;
}

std::string class_of(const PackRequest& request) { return request.is_long ? "long" : request.category; }

}  // namespace stet
