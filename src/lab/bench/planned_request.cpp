#include "lab/bench/planned_request.h"

#include <charconv>

#include "base/error.h"
#include "base/strict_json.h"

namespace stet {
namespace {

// As short as it can be said: 0.8 and not 0.800000011920929.
Json number(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return Json::parse(text, end);
}

Json sampling_object(const PlannedRequest& r) {
  const SamplingParams& s = r.sampling;
  const SamplingParams off;
  Json json = {{"temperature", number(s.temperature)}, {"seed", s.seed}};
  if (s.top_k != off.top_k) json["top_k"] = s.top_k;
  if (s.top_p != off.top_p) json["top_p"] = number(s.top_p);
  if (s.min_p != off.min_p) json["min_p"] = number(s.min_p);
  if (s.repetition_penalty != off.repetition_penalty) json["repetition_penalty"] = number(s.repetition_penalty);
  if (s.presence_penalty != off.presence_penalty) json["presence_penalty"] = number(s.presence_penalty);
  if (s.frequency_penalty != off.frequency_penalty) json["frequency_penalty"] = number(s.frequency_penalty);
  for (const auto& [id, value] : s.logit_bias) json["logit_bias"][std::to_string(id)] = number(value);
  if (!r.stop.empty()) json["stop"] = r.stop;
  if (r.ignore_eos) json["ignore_eos"] = true;
  return json;
}

float sampling_number(StrictObject& object, std::string_view key) {
  const Json& value = object.any(key);
  if (!value.is_number()) fail(Code::kInput, "{}: '{}' is no number", object.what(), key);
  return value.get<float>();
}

void read_sampling(const Json& json, const std::string& what, PlannedRequest& r) {
  StrictObject object(json, what + ": sampling");
  SamplingParams& s = r.sampling;
  s.temperature = sampling_number(object, "temperature");
  s.seed = static_cast<uint64_t>(object.whole("seed", 0, INT64_MAX));
  if (object.has("top_k")) s.top_k = object.u32("top_k");
  if (object.has("top_p")) s.top_p = sampling_number(object, "top_p");
  if (object.has("min_p")) s.min_p = sampling_number(object, "min_p");
  if (object.has("repetition_penalty")) s.repetition_penalty = sampling_number(object, "repetition_penalty");
  if (object.has("presence_penalty")) s.presence_penalty = sampling_number(object, "presence_penalty");
  if (object.has("frequency_penalty")) s.frequency_penalty = sampling_number(object, "frequency_penalty");
  if (object.has("logit_bias")) {
    StrictObject biases(object.any("logit_bias"), what + ": logit_bias");
    for (const auto& [id, value] : object.any("logit_bias").items()) {
      int32_t token = -1;
      std::from_chars(id.data(), id.data() + id.size(), token);
      if (token < 0) fail(Code::kInput, "{}: logit_bias names '{}', which is no token id", what, id);
      s.logit_bias[token] = sampling_number(biases, id);
    }
  }
  if (object.has("stop")) {
    const Json& stop = object.any("stop");
    if (!stop.is_array()) fail(Code::kInput, "{}: stop is no list", what);
    for (const Json& text : stop) {
      if (!text.is_string()) fail(Code::kInput, "{}: stop holds something else than a text", what);
      r.stop.push_back(text.get<std::string>());
    }
  }
  if (object.has("ignore_eos")) r.ignore_eos = object.flag("ignore_eos");
  object.finish();
}

}  // namespace

std::string sampling_json(const PlannedRequest& request) { return dump_line(sampling_object(request)); }

std::string planned_request_json(const PlannedRequest& r) {
  Json json = {
      {"step", r.step_id},          {"class", r.step_class}, {"messages", Json::parse(messages_json(r.messages))},
      {"max_tokens", r.max_tokens}, {"cold", r.cold},        {"sampling", sampling_object(r)}};
  if (r.cancel_after_tokens) json["cancel_after_tokens"] = *r.cancel_after_tokens;
  if (r.logprobs) json["logprobs"] = true;
  return dump_line(json);
}

PlannedRequest parse_planned_request(std::string_view text, const std::string& what) {
  const Json json = parse_json(text, what);
  StrictObject object(json, what);
  PlannedRequest r;
  r.step_id = object.text("step");
  r.step_class = object.text("class");
  r.messages = parse_messages(dump_line(object.any("messages")), what);
  r.max_tokens = object.u32("max_tokens");
  r.cold = object.flag("cold");
  read_sampling(object.any("sampling"), what, r);
  r.cancel_after_tokens = object.optional_u32("cancel_after_tokens");
  if (object.has("logprobs")) r.logprobs = object.flag("logprobs");
  object.finish();
  return r;
}

}  // namespace stet
