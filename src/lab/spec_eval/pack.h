// Prompt packs: what an evaluation asks, drawn from a seed that nobody knew when the candidate was frozen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/spec_eval/contract.h"

namespace stet {

struct PackRequest {
  std::string id;        // "A-07": for the record; the servers never see it
  std::string category;  // code, math, mixed, exact; long: prose, code, math, extraction, adversarial
  bool is_long = false;
  TokenRange prompt_bucket, output_bucket;  // in tokens, scaled; of long ones: the target with its tolerance
  uint32_t prompt_tokens = 0;               // as the tokenizer counted them, without the chat template
  uint32_t max_tokens = 0;
  double diversity = 0;  // share of its sequences of eight words that occur once
  std::string prompt;
};

using CountTokens = std::function<uint32_t(std::string_view text)>;

// The requests of a pack in the order in which they are sent. scale: of all sizes in tokens, 1 as the contract says;
// smaller ones are for small machines and prove less (a screening). Throws Error(kUsage) where a tokenizer makes the
// sizes impossible.
std::vector<PackRequest> generate_pack(const SpecEvalContract& contract, uint64_t seed, const std::string& pack,
                                       double scale, const CountTokens& count);

// What is wrong with a pack, against the contract: sizes, counts, diversity, repeated lines, prompts twice. Empty:
// nothing.
std::vector<std::string> pack_faults(const SpecEvalContract& contract, const std::vector<PackRequest>& pack,
                                     double scale);

// SHA-256 of its prompts and limits, in order.
std::string pack_sha256(const std::vector<PackRequest>& pack);

// A range of tokens at a scale: at least 12 for prompts and 4 for answers, and never empty.
TokenRange scaled(TokenRange range, double scale, uint32_t least);

}  // namespace stet
