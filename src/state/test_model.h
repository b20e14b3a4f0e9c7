// A small synthetic model with everything a decoder needs, for tests.
#pragma once

#include "state/decoder.h"
#include "weights/synth.h"

namespace stet::test {

// A synthetic model; " by e4m3" behind its name chooses the input of its products (PackOptions::fp_input).
struct TestModel {
  explicit TestModel(std::string_view name, bool dequantize = false)
      : TestModel(SynthSource::create(name.substr(0, name.find(' '))), dequantize,
                  name.ends_with(" by e4m3") ? ActKind::e4m3 : ActKind::i8) {}
  explicit TestModel(std::unique_ptr<TensorSource> from, bool dequantize = false, ActKind fp_input = ActKind::i8)
      : source(std::move(from)), desc(describe_model(*source)) {
    PackOptions options;
    options.dequantize = dequantize;
    options.fp_input = fp_input;
    pack = PackedModel::load(*source, options);
  }
  std::unique_ptr<TensorSource> source;
  ModelDesc desc;
  std::unique_ptr<PackedModel> pack;
};

// A synthetic model of any family, with the blocks of its draft, in an activation mode.
struct ModeModel : TestModel {
  ModeModel(std::string_view name, std::string_view activations)
      : TestModel(open_synthetic(name, true), activations == "f32",
                  activations == "checkpoint" ? ActKind::e4m3 : ActKind::i8) {
    choose_activations(desc, activations);
  }
};

inline WorkerPool::Options pool_options(unsigned threads) {
  WorkerPool::Options options;
  options.threads = threads;
  return options;
}

// For decoders whose kernels are compared in other ways, or are wrong on purpose.
inline ArmOptions unqualified() { return {Qualify::skip, "", nullptr}; }

inline std::vector<int32_t> test_tokens(const ModelDesc& desc, uint32_t n, uint32_t seed = 1) {
  std::vector<int32_t> tokens(n);
  uint32_t x = seed;
  for (int32_t& t : tokens) {
    x = x * 1664525u + 1013904223u;
    t = static_cast<int32_t>((x >> 8) % desc.vocab);
  }
  return tokens;
}

}  // namespace stet::test
