// What a model weighs: tensors, formats, and the bytes that one token costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/tensor_source.h"

namespace stet {

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
  std::vector<SourceFile> files;
  Metadata metadata;
  std::vector<DeclaredTensor> tensors;
  std::vector<FormatSummary> formats;  // in order of appearance
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;
  uint64_t bytes_per_token = 0;  // see weight_bytes_per_token
};

// Tensors of formats that stet does not run included.
ModelSummary summarize(const TensorSource& source, const std::string& name);

// Bytes of weights that decoding one token reads: every tensor once, but of tables by token id one row (of the embedding
// unless it is the head too: there is no output.weight), and of the experts the share that a token is routed to.
uint64_t weight_bytes_per_token(const TensorSource& source);

}  // namespace stet
