// The contract of a speculation evaluation (spec-eval-contract-v1.json, in the binary): sizes, gates, what a policy may
// read. Its bytes are frozen by their hash in every manifest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stet {

using TokenRange = std::pair<uint32_t, uint32_t>;  // both ends included

struct SpecEvalContract {
  std::string id, sha256, bytes;  // bytes: the file; sha256: of them
  std::vector<std::string> packs;
  uint32_t repetitions = 0;
  std::vector<std::pair<std::string, uint32_t>> short_requests;  // category, how many
  std::vector<std::pair<uint32_t, uint32_t>> long_requests;      // prompt tokens, how many
  std::vector<std::string> long_sources;
  std::vector<TokenRange> prompt_buckets, output_buckets;
  TokenRange long_output;
  double long_tolerance = 0, unique_8grams = 0;
  std::vector<std::string> allowed_policy_inputs, forbidden_policy_inputs;
  uint32_t logprob_positions = 0, ordered_requests = 0;
  double most_looping_answers = 0;  // share of a pack's answers
  double emitted_per_cycle = 0, emitted_per_cycle_mixed = 0, draft_and_policy_ms = 0;
  double pack_wall = 0, median_decode = 0, mixed = 0, p10_regression = 0;
  uint32_t resamples = 0;
  double confidence = 0;
  std::vector<std::string> attested;

  uint32_t requests() const;  // of a pack
  // Throws Error(kUsage) that says which inputs a policy may read, for one that is forbidden or unknown.
  void check_policy_inputs(const std::vector<std::string>& inputs) const;
};

// The one in the binary: nothing is promoted by any other.
const SpecEvalContract& spec_eval_contract();

// Of a file. Throws Error(kInput) that names `what` and the member that is missing or of another type.
SpecEvalContract parse_spec_eval_contract(std::string_view bytes, const std::string& what);

}  // namespace stet
