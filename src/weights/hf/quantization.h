// quantization_config of config.json: FP8 in blocks of 128 x 128 and, for the experts, packed FP4 in groups of 32, with
// scales that are powers of two (scaled_matrix.h).
#pragma once

#include <optional>
#include <string>

#include "base/strict_json.h"

namespace stet {

struct HfQuantization {
  std::string experts;  // expert_dtype: "fp8" or "fp4"; empty: it is not said
};

// What quantization_config says, and expert_dtype there or beside it. Throws Error(kUnsupported), naming the key, for
// what stet does not read, and Error(kInput) for a contradiction.
HfQuantization read_hf_quantization(StrictObject& config);

// Why a tensor of this dtype contradicts config.json; empty: it does not. No quantization: config.json has none.
std::string hf_dtype_problem(const std::optional<HfQuantization>& quantization, bool expert, const std::string& dtype);

}  // namespace stet
