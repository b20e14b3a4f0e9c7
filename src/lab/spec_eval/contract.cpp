#include "lab/spec_eval/contract.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "embedded/lab.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr uint32_t kMostRequests = 10000, kMostRepetitions = 100, kMostEvalResamples = 1000000;

std::vector<std::string> texts(const Json& json) { return json.get<std::vector<std::string>>(); }

TokenRange range(const Json& json) { return {json.at(0).get<uint32_t>(), json.at(1).get<uint32_t>()}; }

std::vector<TokenRange> ranges(const Json& json) {
  std::vector<TokenRange> all;
  for (const Json& entry : json) all.push_back(range(entry));
  return all;
}

// nlohmann's exceptions say which member is missing.
SpecEvalContract read(const Json& j) {
  SpecEvalContract c;
  c.id = j.at("contract_id");
  c.packs = texts(j.at("packs"));
  c.repetitions = j.at("repetitions");
  for (const auto& [category, n] : j.at("short").items()) c.short_requests.emplace_back(category, n.get<uint32_t>());
  for (const auto& [tokens, n] : j.at("long").items())
    c.long_requests.emplace_back(static_cast<uint32_t>(std::stoul(tokens)), n.get<uint32_t>());
  c.long_sources = texts(j.at("long_sources"));
  c.prompt_buckets = ranges(j.at("prompt_buckets"));
  c.output_buckets = ranges(j.at("output_buckets"));
  c.long_output = range(j.at("long_output"));
  c.long_tolerance = j.at("long_tolerance");
  c.unique_8grams = j.at("unique_8grams");
  c.allowed_policy_inputs = texts(j.at("allowed_policy_inputs"));
  c.forbidden_policy_inputs = texts(j.at("forbidden_policy_inputs"));
  c.logprob_positions = j.at("logprob_positions");
  c.ordered_requests = j.at("ordered_requests");
  c.most_looping_answers = j.at("most_looping_answers");
  const Json &development = j.at("development"), &promotion = j.at("promotion"), &bootstrap = j.at("bootstrap");
  c.emitted_per_cycle = development.at("emitted_per_cycle");
  c.emitted_per_cycle_mixed = development.at("emitted_per_cycle_mixed");
  c.draft_and_policy_ms = development.at("draft_and_policy_ms");
  c.pack_wall = promotion.at("pack_wall");
  c.median_decode = promotion.at("median_decode");
  c.mixed = promotion.at("mixed");
  c.p10_regression = promotion.at("p10_regression");
  c.resamples = bootstrap.at("resamples");
  c.confidence = bootstrap.at("confidence");
  c.attested = texts(j.at("attested_by_the_operator"));
  return c;
}

void check(const SpecEvalContract& c, const std::string& what) {
  if (c.packs.size() != 2 || c.packs[0] == c.packs[1]) fail(Code::kInput, "{}: two packs are judged", what);
  if (c.repetitions == 0 || c.requests() == 0 || c.requests() > kMostRequests || c.repetitions > kMostRepetitions)
    fail(Code::kInput, "{}: a pack of {} requests, {} times", what, c.requests(), c.repetitions);
  if (c.prompt_buckets.empty() || c.output_buckets.empty() || (c.long_sources.empty() && !c.long_requests.empty()))
    fail(Code::kInput, "{}: no buckets, or long prompts of no source", what);
  if (c.resamples < 100 || c.resamples > kMostEvalResamples || !(c.confidence >= 0.5 && c.confidence <= 0.999))
    fail(Code::kInput, "{}: {} resamples at a confidence of {}", what, c.resamples, c.confidence);
}

}  // namespace

uint32_t SpecEvalContract::requests() const {
  uint32_t n = 0;
  for (const auto& [category, count] : short_requests) n += count;
  for (const auto& [tokens, count] : long_requests) n += count;
  return n;
}

void SpecEvalContract::check_policy_inputs(const std::vector<std::string>& inputs) const {
  const auto among = [](const std::vector<std::string>& list, const std::string& x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  for (const std::string& input : inputs) {
    if (among(forbidden_policy_inputs, input))
      fail(Code::kUsage, "a policy must not read '{}': a request would be routed by what it is, not by its text",
           input);
    if (!among(allowed_policy_inputs, input))
      fail(Code::kUsage, "the contract knows no policy input '{}'; allowed are: {}", input,
           fmt::join(allowed_policy_inputs, ", "));
  }
}

const SpecEvalContract& spec_eval_contract() {
  static const SpecEvalContract contract = parse_spec_eval_contract(embedded::kSpecEvalContractV1, "the contract");
  return contract;
}

SpecEvalContract parse_spec_eval_contract(std::string_view bytes, const std::string& what) {
  const Json json = parse_json(bytes, what);
  SpecEvalContract contract;
  try {
    contract = read(json);
  } catch (const std::exception& e) {
    fail(Code::kInput, "{} is no contract of a speculation evaluation: {}", what, e.what());
  }
  contract.bytes = bytes;
  contract.sha256 = sha256_hex(bytes.data(), bytes.size());
  check(contract, what);
  return contract;
}

}  // namespace stet
