// Sampling parameters as a record has them.
#pragma once

#include <string>
#include <vector>

#include "spec/sampling.h"

namespace stet {

struct RecordedSampling {
  SamplingParams params;
  std::string problem;  // why they do not determine the answer; empty: they do
};

// json: RequestRecord::sampling, "" for none. Members are named as in OpenAI's API, top_k, min_p and repetition_penalty
// beside them; what ends an answer (stop, ignore_eos, max_tokens) and what is only reported (logprobs) does not choose
// a token and is skipped; any other member might choose one, and is a problem.
RecordedSampling recorded_sampling(const std::string& json);

}  // namespace stet
