#include "lab/rerun/recorded_sampling.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr const char* kChooseNothing[] = {"stop",     "ignore_eos",   "max_tokens", "max_completion_tokens",
                                          "logprobs", "top_logprobs", "n"};

float number(const Json& value, const std::string& name) {
  if (!value.is_number()) fail(Code::kInput, "the sampling parameter '{}' is no number", name);
  return value.get<float>();
}

void read_bias(const Json& value, SamplingParams& params) {
  if (!value.is_object()) fail(Code::kInput, "the sampling parameter 'logit_bias' is no object");
  for (const auto& [key, bias] : value.items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0)
      fail(Code::kInput, "the sampling parameter 'logit_bias' names '{}', which is no token id", key);
    params.logit_bias[id] = number(bias, "logit_bias");
  }
}

bool read_member(const std::string& name, const Json& value, SamplingParams& p) {
  if (name == "temperature")
    p.temperature = number(value, name);
  else if (name == "top_p")
    p.top_p = number(value, name);
  else if (name == "min_p")
    p.min_p = number(value, name);
  else if (name == "repetition_penalty")
    p.repetition_penalty = number(value, name);
  else if (name == "presence_penalty")
    p.presence_penalty = number(value, name);
  else if (name == "frequency_penalty")
    p.frequency_penalty = number(value, name);
  else if (name == "logit_bias")
    read_bias(value, p);
  else if (name == "top_k" && value.is_number_unsigned())
    p.top_k = value.get<uint32_t>();
  else if (name == "seed" && value.is_number_unsigned())
    p.seed = value.get<uint64_t>();
  else
    return false;
  return true;
}

}  // namespace

RecordedSampling recorded_sampling(const std::string& json) {
  RecordedSampling recorded;
  if (json.empty()) {
    recorded.problem = "the sampling parameters were not recorded";
    return recorded;
  }
  try {
    const Json object = parse_json(json, "the sampling parameters");
    for (const auto& [name, value] : object.items()) {
      const bool skipped = value.is_null() || std::find(std::begin(kChooseNothing), std::end(kChooseNothing), name) !=
                                                  std::end(kChooseNothing);
      if (!skipped && !read_member(name, value, recorded.params))
        fail(Code::kInput, "the sampling parameter '{}' is not understood", name);
    }
    if (!object.contains("temperature"))
      recorded.problem = "the temperature was not recorded";
    else if (recorded.params.temperature > 0 && !object.contains("seed"))
      recorded.problem = "it was sampled, and its seed was not recorded";
  } catch (const Error& e) {
    recorded.problem = e.what();
  }
  return recorded;
}

}  // namespace stet
