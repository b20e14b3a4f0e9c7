#include "models/rope_frequencies.h"

#include <algorithm>
#include <cmath>

#include "base/dmath.h"
#include "base/error.h"

namespace stet {
namespace {

constexpr double kPi = 3.14159265358979323846;

void apply_yarn(ConfigReader& config, double base, double factor, uint32_t rope_dim, uint32_t context, const std::string& prefix,
                RopeSpec& rope) {
  const double original = config.number_or(prefix + "scaling.original_context_length", 1, 1e9, context);
  const double fast = config.number_or(prefix + "scaling.yarn_beta_fast", 1e-3, 1e6, 32);
  const double slow = config.number_or(prefix + "scaling.yarn_beta_slow", 1e-3, 1e6, 1);
  const double attention = config.number_or(prefix + "scaling.attn_factor", 1e-3, 1e3, 1) *
                           config.number_or(prefix + "scaling.yarn_attn_factor", 1e-3, 1e3, 0.1 * log64(factor) + 1.0);
  if (config.number_or(prefix + "scaling.yarn_ext_factor", -1e3, 1e3, 1) != 1)
    fail(Code::kUnsupported, "the model file sets rope.scaling.yarn_ext_factor to something other than 1");
  const double d = rope_dim;
  const auto correction = [&](double beta) { return d * log64(original / (beta * 2 * kPi)) / (2 * log64(base)); };
  const double low = std::max(0.0, std::floor(correction(fast)));
  const double high = std::min(d - 1, std::ceil(correction(slow)));
  for (size_t i = 0; i < rope.frequency.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
    rope.frequency[i] = rope.frequency[i] * (1 - ramp) + rope.frequency[i] / factor * ramp;
  }
  rope.factor = attention;
}

}  // namespace

RopeSpec read_rope(ConfigReader& config, uint32_t rope_dim, uint32_t context, const std::vector<float>& rope_freqs,
                   const std::string& prefix) {
  const double base = config.number_or(prefix + "freq_base", 1.0, 1e12, 10000.0);
  const std::string type = config.text_or(prefix + "scaling.type", config.has(prefix + "scale_linear") ? "linear" : "none");
  const double factor = config.number_or(prefix + "scaling.factor", 1e-3, 1e6, config.number_or(prefix + "scale_linear", 1e-3, 1e6, 1));
  RopeSpec rope;
  for (uint32_t i = 0; i < rope_dim / 2; ++i) {
    const double f = pow64(base, -2.0 * i / rope_dim);
    rope.frequency.push_back(rope_freqs.empty() ? f : f / static_cast<double>(rope_freqs[i]));
  }
  if (type == "linear") {
    for (double& f : rope.frequency) f = f / factor;
  } else if (type == "yarn") {
    apply_yarn(config, base, factor, rope_dim, context, prefix, rope);
  } else if (type != "none") {
    fail(Code::kUnsupported, "RoPE scaling '{}' is not supported; stet knows none, linear, yarn and rope_freqs tensors", type);
  }
  return rope;
}

}  // namespace stet
