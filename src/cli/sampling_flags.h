// The flags that say how an answer is chosen and when it ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "stet/engine.h"

namespace stet {

struct SamplingFlags {
  SamplingParams params;  // seed, bias: below
  std::optional<uint64_t> seed;
  std::vector<std::string> biases;  // "ID=VALUE"
  std::vector<std::string> stops;   // with escapes
  uint32_t max_tokens = 0;
  bool ignore_eos = false;

  void declare(Flags& flags);
  // The request without its prompt, its values checked as far as that goes without a model; a seed is drawn when the
  // answer is sampled and none was given. Throws Error(kUsage).
  Request request() const;
};

bool is_sampled(const SamplingParams& params);

// \n, \t, \r, \\ and \xHH in a flag's value. Throws Error(kUsage) for other escapes.
std::string unescape(std::string_view flag, std::string_view text);

}  // namespace stet
