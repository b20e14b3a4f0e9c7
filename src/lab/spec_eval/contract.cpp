#include "lab/spec_eval/contract.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "embedded/lab.h"
#include "lab/record/strict_json.h"

namespace stet {
namespace {

std::vector<std::string> texts(const Json& json) { return json.get<std::vector<std::string>>(); }

TokenRange range(const Json& json) { return {json.at(0).get<uint32_t>(), json.at(1).get<uint32_t>()}; }

std::vector<TokenRange> ranges(const Json& json) {
  std::vector<TokenRange> all;
  for (const Json& entry : json) all.push_back(range(entry));
  return all;
}

// The file is part of the program: a member that is missing is a bug, and nlohmann's exception says which.
SpecEvalContract read(std::string_view bytes) {
  const Json j = parse_json(bytes, "the contract");
  SpecEvalContract c;
  c.id = j.at("contract_id");
  c.sha256 = sha256_hex(bytes.data(), bytes.size());
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
  static const SpecEvalContract contract = read(embedded::kSpecEvalContractV1);
  return contract;
}

}  // namespace stet
