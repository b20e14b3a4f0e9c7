// A request as the plan has it: what every arm is asked, whatever answers it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/bench/suite.h"
#include "spec/sampling.h"

namespace stet {

struct PlannedRequest {
  std::string step_id, step_class;
  std::vector<SuiteMessage> messages;
  uint32_t max_tokens = 0;
  SamplingParams sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool cold = true;                             // nothing of it may come out of a cache
  std::optional<uint32_t> cancel_after_tokens;  // 0: before the first token
  bool logprobs = false;  // with the target's log-probability of every token; of engines only
};

// What was sent besides the prompt, with OpenAI's names; only what differs from greedy decoding without any rule, but
// always the temperature and the seed: {"temperature":0,"seed":1}.
std::string sampling_json(const PlannedRequest& request);

// Everything, as one line, and back. Throws Error(kInput) beginning with `what`.
std::string planned_request_json(const PlannedRequest& request);
PlannedRequest parse_planned_request(std::string_view json, const std::string& what);

}  // namespace stet
