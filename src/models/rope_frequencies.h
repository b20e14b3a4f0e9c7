// Frequencies of rotary embeddings and their scalings, in double, from one configuration namespace.
#pragma once

#include "models/config_reader.h"
#include "models/model_desc.h"

namespace stet {

// Reads <arch>.<prefix>*. rope_freqs: divisors of the frequencies (the tensor rope_freqs.weight), empty when there is none.
// frequency[i] = base^(-2i/d), divided by rope_freqs[i]; then
//   linear: divided by the factor;
//   yarn (Peng et al. 2023, section 3.2): f (1 - r_i) + f / factor * r_i with r_i = clamp((i - lo) / (hi - lo), 0, 1), lo and hi from
//   beta_fast and beta_slow; cosines and sines times attn_factor * yarn_attn_factor, the latter 0.1 ln(factor) + 1 where absent.
// Throws Error(kUnsupported) for other scalings.
RopeSpec read_rope(ConfigReader& config, uint32_t rope_dim, uint32_t context, const std::vector<float>& rope_freqs,
                   const std::string& prefix = "rope.");

}  // namespace stet
