// Golden digests of tiny models: what numerics version 1 computes, bit for bit. They change only with the version
// (docs/numerics.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace stet::test {

struct Digest {
  std::string name;     // "synth:tiny:q4_0 kv f16"
  std::string logits;   // SHA-256 of the logits of the last rows of a prompt, f32 little-endian
  std::string greedy;   // SHA-256 of the ids of a greedy answer
  std::string sampled;  // of a sampled one
  std::string kv;       // XXH3-64 of the KV rows
  std::string rope;     // XXH3-64 of the rotary table

  bool operator==(const Digest&) const = default;
};

// Of the first `models` models.
std::vector<Digest> compute_digests(const Kernels& kernels, size_t models = SIZE_MAX);
// The text of tests/golden/digests.json.
std::string digests_json(const std::vector<Digest>& digests);

}  // namespace stet::test
