#include "weights/synth_tensors.h"

#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace stet {

void SynthTensors::add(const std::string& name, std::vector<uint64_t> shape, Format format, float center,
                       float deviation) {
  const FormatTraits& t = traits(format);
  STET_CHECK(shape[0] % t.block_elements == 0);
  TensorInfo tensor{name, std::move(shape), format, 0};
  tensor.bytes = tensor.elements() / t.block_elements * t.block_bytes;
  tensors_.push_back(std::move(tensor));
  blocks_.emplace(name, SynthBlocks(format, xxh3(name.data(), name.size(), seed_), center, deviation));
}

void SynthTensors::add_vector(const std::string& name, uint64_t n, float center, float deviation) {
  add(name, {n}, Format::f32, center, deviation);
}

void SynthTensors::add_matrix(const std::string& name, uint64_t k, uint64_t n, Format format) {
  add(name, {k, n}, format, 0.0f, 1.0f / std::sqrt(static_cast<float>(k)));
}

void SynthTensors::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  STET_CHECK(offset <= tensor.bytes && out.size() <= tensor.bytes - offset);
  const auto it = blocks_.find(tensor.name);
  STET_CHECK(it != blocks_.end());
  it->second.read(offset, out);
}

}  // namespace stet
