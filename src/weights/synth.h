// Synthetic models: a real geometry and format with random weights, as a tensor source without a file. They measure
// speed at any size and feed tests; what they generate means nothing, and everything that they touch says so.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/synth_tensors.h"

namespace stet {

// "synth:GEOMETRY[:VARIANT[:SEED]]".
struct SynthName {
  std::string_view geometry, variant;  // variant: empty where there is none
  uint64_t seed = 1;
};
// Throws Error(kUsage) for other names.
SynthName split_synth_name(std::string_view name);

// Of any family. drafts: with the blocks of a draft, where the geometry has them. Throws Error(kUsage) that lists what
// there is.
std::unique_ptr<TensorSource> open_synthetic(std::string_view name, bool drafts = false);

// A llama geometry.
struct SynthGeometry {
  std::string_view name;
  uint32_t layers;
  uint32_t hidden;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t ffn;
  uint32_t vocab;
  bool tied;  // token_embd is the head too
  uint32_t rope_base;
  uint32_t context;
};

std::span<const SynthGeometry> synth_geometries();

class SynthSource : public SynthTensors {
 public:
  // Does a model name ask for a synthetic model?
  static bool is_name(std::string_view name) { return name.starts_with("synth:"); }

  // From "synth:GEOMETRY:FORMAT" or "synth:GEOMETRY:FORMAT:SEED" (seed 1 when absent). Matrices have the format; where
  // their rows are not whole blocks of it, Q8_0, else F16; embedding and head of an integer format are Q8_0; norms are
  // F32. Throws Error(kUsage) that lists what there is.
  static std::unique_ptr<SynthSource> create(std::string_view name);

  const SynthGeometry& geometry() const { return geometry_; }

  std::string identity() const override;

 private:
  SynthSource(const SynthGeometry& geometry, Format format, uint64_t seed);
  // A matrix of the format, or of one that its rows are whole blocks of.
  void add_fitting(const std::string& name, uint64_t k, uint64_t n, Format wanted);
  void add_tensors();

  const SynthGeometry& geometry_;
  Format format_;
};

}  // namespace stet
