// What a model weighs: tensors, formats, and the bytes that one token costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf.h"

namespace stet {

struct TensorSummary {
  std::string name;
  std::vector<uint64_t> shape;  // fastest dimension first, as the file stores it
  std::string format;
  bool supported = true;
  uint64_t bytes = 0;  // 0: unknown, for a type that no published file uses
};

struct FormatSummary {
  std::string format;
  bool supported = true;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

struct ModelSummary {
  std::string name;  // as the user gave it
  bool synthetic = false;
  std::vector<GgufFile::PartInfo> parts;  // of a file
  Metadata metadata;
  std::vector<TensorSummary> tensors;
  std::vector<FormatSummary> formats;  // in order of appearance
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;
  uint64_t bytes_per_token = 0;  // see weight_bytes_per_token
};

// The summary of a file, tensors of formats that stet does not run included.
ModelSummary summarize(const GgufFile& file, const std::string& name);
// The summary of any source.
ModelSummary summarize(const TensorSource& source, const std::string& name);

// Bytes of weights that decoding one token reads: every tensor once, but of the embedding table one row, unless it is
// the head too (there is no output.weight).
uint64_t weight_bytes_per_token(const TensorSource& source);

}  // namespace stet
