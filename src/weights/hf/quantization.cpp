#include "weights/hf/quantization.h"

#include "base/error.h"
#include "base/visible_text.h"
#include "weights/hf/dialect.h"
#include "weights/hf/scaled_matrix.h"

namespace stet {
namespace {

void need(StrictObject& object, std::string_view key, const Json& value) {
  if (!hf_given(object, key))
    fail(Code::kUnsupported, "{}: does not say {}; stet runs {}", object.what(), key, value.dump());
  hf_require(object, key, value);
}

// "fp8", "fp4", or empty where it is not said.
std::string expert_dtype(StrictObject& object) {
  if (!hf_given(object, "expert_dtype")) return "";
  const std::string text = object.text("expert_dtype");
  if (text != "fp8" && text != "fp4")
    fail(Code::kUnsupported, "{}: expert_dtype is '{}'; stet runs fp8 and fp4", object.what(), shown_name(text));
  return text;
}

}  // namespace

HfQuantization read_hf_quantization(StrictObject& config) {
  StrictObject q(config.any("quantization_config"), config.what() + ": quantization_config");
  need(q, "quant_method", "fp8");
  hf_require(q, "fmt", "e4m3");  // transformers leaves it out
  need(q, "activation_scheme", "dynamic");
  need(q, "scale_fmt", "ue8m0");
  need(q, "weight_block_size", Json::array({128, 128}));
  hf_require(q, "dequantize", false);
  for (const char* key : {"modules_to_convert", "modules_to_not_convert"}) hf_require(q, key, nullptr);
  const std::string inside = expert_dtype(q), beside = expert_dtype(config);
  if (!inside.empty() && !beside.empty() && inside != beside)
    fail(Code::kInput, "{}: expert_dtype is {} there and {} beside it", q.what(), inside, beside);
  hf_all_known(q);
  return {inside.empty() ? beside : inside};
}

std::string hf_dtype_problem(const std::optional<HfQuantization>& quantization, bool expert, const std::string& dtype) {
  if (!quantization)
    return hf_codes_format(dtype) ? "config.json has no quantization_config, which says how its values are meant" : "";
  const std::string& experts = quantization->experts;
  if (expert && !experts.empty() && dtype != (experts == "fp4" ? kHfFp4 : kHfFp8))
    return fmt::format("config.json says that experts are {}", experts);
  if (dtype == kHfFp4 && !(expert && experts == "fp4"))
    return "packed FP4 is what experts are, where config.json says expert_dtype fp4";
  return "";
}

}  // namespace stet
