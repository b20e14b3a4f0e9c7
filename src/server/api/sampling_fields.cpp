// Fields that say how tokens are chosen and when the answer ends.
#include <charconv>

#include "server/api/api_error.h"
#include "server/api/raw_request.h"

namespace stet {
namespace {

// The ranges are those of SamplingParams::validate().
constexpr double kMaxTemperature = 100.0, kMaxPenalty = 100.0, kMaxBias = 1000.0;
constexpr size_t kMaxStops = 64, kMaxStopBytes = 1024;

void read_top_k(const FieldValue& v, RawRequest& r) {
  const bool off = v.is_whole(-1);  // as vLLM writes it
  r.out.request.sampling.top_k = off ? 0 : static_cast<uint32_t>(v.whole(0, INT32_MAX));
}

void read_bias(const FieldValue& v, RawRequest& r) {
  const uint32_t vocab = r.limits.vocab;
  for (const FieldValue& entry : v.members()) {
    uint32_t id = 0;
    const std::string_view name = entry.name();
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size() || id >= vocab)
      refuse(entry.path(), "{} does not name a token: the model's token ids are 0 to {}", entry.path(), vocab - 1);
    const float bias = entry.number(-kMaxBias, kMaxBias);
    if (!r.out.request.sampling.logit_bias.emplace(static_cast<int32_t>(id), bias).second)
      refuse(entry.path(), "{} names a token twice", entry.path());
  }
}

void add_stop(const FieldValue& v, RawRequest& r) {
  const std::string& text = v.text();
  if (text.empty()) refuse(v.path(), "{} is empty: give the text to stop at", v.path());
  if (text.size() > kMaxStopBytes)
    refuse(v.path(), "{} has {} bytes; a stop text may have {}", v.path(), text.size(), kMaxStopBytes);
  r.out.request.stop.push_back(text);
}

void read_stop(const FieldValue& v, RawRequest& r) {
  if (!v.is_list()) return add_stop(v, r);
  const std::vector<FieldValue> stops = v.items();
  if (stops.size() > kMaxStops) refuse(v.path(), "{} has {} texts; {} are possible", v.path(), stops.size(), kMaxStops);
  for (const FieldValue& stop : stops) add_stop(stop, r);
}

void read_max_tokens(const FieldValue& v, RawRequest& r) { r.max_tokens = v.whole(1, UINT64_MAX); }

}  // namespace

RequestFields sampling_fields() {
  using V = const FieldValue&;
  using R = RawRequest;
  return {
      honoured<R>("temperature", [](V v, R& r) { r.out.request.sampling.temperature = v.number(0, kMaxTemperature); }),
      honoured<R>("top_p", [](V v, R& r) { r.out.request.sampling.top_p = v.number(0, 1, true); }),
      honoured<R>("top_k", read_top_k),
      honoured<R>("min_p", [](V v, R& r) { r.out.request.sampling.min_p = v.number(0, 1); }),
      honoured<R>("presence_penalty",
                  [](V v, R& r) { r.out.request.sampling.presence_penalty = v.number(-kMaxPenalty, kMaxPenalty); }),
      honoured<R>("frequency_penalty",
                  [](V v, R& r) { r.out.request.sampling.frequency_penalty = v.number(-kMaxPenalty, kMaxPenalty); }),
      honoured<R>(
          "repetition_penalty",
          [](V v, R& r) { r.out.request.sampling.repetition_penalty = v.number(1.0 / kMaxPenalty, kMaxPenalty); }),
      honoured<R>("logit_bias", read_bias),
      honoured<R>("seed", [](V v, R& r) { r.seed = v.whole(0, UINT64_MAX); }),
      honoured<R>("stop", read_stop),
      honoured<R>("max_tokens", read_max_tokens),
      honoured<R>("ignore_eos", [](V v, R& r) { r.out.request.ignore_eos = v.boolean(); }),
      // vLLM's and llama.cpp's further ones.
      unless<R>("min_tokens", "[0]"),
      unless<R>("stop_token_ids", "[[]]", "use stop or logit_bias"),
      unless<R>("include_stop_str_in_output", "[false]"),
      unless<R>("bad_words", "[[]]", "use logit_bias"),
      unless<R>("allowed_token_ids", "[]", "use logit_bias"),
      unless<R>("use_beam_search", "[false]"),
      unless<R>("length_penalty", "[1.0]"),
      unless<R>("logits_processors", "[[]]"),
      unless<R>("truncate_prompt_tokens", "[]", "shorten the prompt yourself"),
      unless<R>("prompt_logprobs", "[]"),
      unless<R>("skip_special_tokens", "[true]", "return_token_ids gives all ids"),
      unless<R>("typical_p", "[1.0]"),
      unless<R>("mirostat", "[0]"),
      unless<R>("grammar", R"([""])"),
      unless<R>("json_schema", "[]"),
      unless<R>("structured_outputs", "[]"),
      unless<R>("guided_json", "[]"),
      unless<R>("guided_regex", "[]"),
      unless<R>("guided_choice", "[]"),
      unless<R>("guided_grammar", "[]"),
      hint<R>("spaces_between_special_tokens"),
  };
}

}  // namespace stet
