// What synthetic models of all families share: tensors of random blocks, each a pure function of its name and the seed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weights/synth_blocks.h"
#include "weights/tensor_source.h"

namespace stet {

class SynthTensors : public TensorSource {
 public:
  const Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  void read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;
  bool synthetic() const override { return true; }

 protected:
  SynthTensors(Metadata metadata, uint64_t seed) : seed_(seed), metadata_(std::move(metadata)) {}

  // REQUIRES: shape[0] a multiple of the format's block.
  void add(const std::string& name, std::vector<uint64_t> shape, Format format, float center, float deviation);
  // F32; near 1 by default, as trained norms are.
  void add_vector(const std::string& name, uint64_t n, float center = 1.0f, float deviation = 0.05f);
  // Standard deviation 1 / sqrt(K): a product keeps the size of its input, through any number of layers.
  void add_matrix(const std::string& name, uint64_t k, uint64_t n, Format format);
  // One that read() of the derived class makes.
  void add_made(TensorInfo tensor) { tensors_.push_back(std::move(tensor)); }

  const uint64_t seed_;

 private:
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, SynthBlocks, std::less<>> blocks_;
};

}  // namespace stet
