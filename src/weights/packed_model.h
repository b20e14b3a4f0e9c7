// The weights of a model as the kernels read them: every matrix packed (formats/pack.h), every vector f32, all in one mapping that
// never moves. Made once from a TensorSource, then kept in the user's cache directory (docs/design.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "formats/pack.h"
#include "weights/tensor_source.h"

namespace stet {

struct PackOptions {
  std::string cache_dir;    // empty: keep the pack in memory ("--pack none")
  bool mapped = false;      // a pack from the cache stays mapped instead of being copied into huge pages ("--pack mapped")
  bool dequantize = false;  // the float reference path: every matrix becomes F32
  // What products with F8_E4M3 and MXFP4 weights read: i8 (activation mode a8), or e4m3 as published checkpoints are
  // run.
  ActKind fp_input = ActKind::i8;
  unsigned threads = 1;
  // Called now and then, from one thread: what is being done and how far it is. Also once before a pack file is written, with
  // its path and size.
  std::function<void(std::string_view what, uint64_t done_bytes, uint64_t total_bytes)> progress;
};

class PackedModel {
 public:
  // Loads the pack of `source` from the cache, or makes it. Throws Error(kInput) for a damaged source, Error(kResource)
  // for too little memory or disk and for an unsafe cache directory, Error(kUsage) for an fp_input that is neither.
  static std::unique_ptr<PackedModel> load(const TensorSource& source, const PackOptions& options);
  virtual ~PackedModel() = default;

  // A tensor of two dimensions; null when there is none of that name.
  virtual const PackedMatrix* matrix(std::string_view name) const = 0;
  // A tensor of one dimension as f32, with its length; null when there is none of that name.
  virtual const float* vector(std::string_view name, uint64_t* length) const = 0;

  virtual uint64_t bytes() const = 0;        // of the pack in memory
  virtual const std::string& key() const = 0;  // SHA-256, the content address
  virtual bool synthetic() const = 0;
  // Where the data lies, and why there: "in huge pages", "mapped: ...". Bytes read a second depend on it, bits do not.
  virtual const std::string& place() const = 0;
};

}  // namespace stet
