// Everything that can be chosen about an engine. There are no switches elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace stet {

struct Options {
  std::string model;             // a GGUF file, a folder from Hugging Face, "smollm2-135m", or "synth:GEOMETRY:FORMAT"
  std::string isa = "auto";      // scalar, avx2, avxvnni, avx512; auto: the last of these that the processor has
  unsigned threads = 0;          // 0: what affinity, cgroup quota and physical cores allow
  bool pin = false;              // bind each thread to a processor
  uint32_t context = 0;          // tokens; 0: what fits, at most the trained length
  std::string kv = "f16";        // f16, f32, q8
  std::string device = "cpu";    // cpu; cuda: the first GPU; auto: that where there is one
  // What activations are rounded to: auto (what the file declares, else a8); a8: int8 where weights are integers; f32: dequantised
  // weights, the float reference path; checkpoint: as the family's published checkpoints declare.
  std::string activations = "auto";
  // cache: packed weights are kept in the cache directory and loaded into huge pages, or mapped where memory is short; mapped: always
  // mapped; none: packed in memory at every start.
  std::string pack = "cache";
  std::string cache_dir;         // empty: the user's
  std::string replay = "replayed";  // eager, recorded, replayed
  uint32_t prompt_rows = 128;    // prompt tokens run together, 1 .. 128
  std::string draft = "none";    // none, ngram, mtp, dspark, model:FILE
  uint32_t draft_depth = 0;      // proposals a step, 1 .. 15; 0: the draft's default
  bool qualify = true;           // compare the kernels with the reference before the first use of a model

  // Told what is being done while the model loads: a phase, and how far it is (total 0: unknown).
  std::function<void(std::string_view phase, uint64_t done, uint64_t total)> progress;
};

}  // namespace stet
