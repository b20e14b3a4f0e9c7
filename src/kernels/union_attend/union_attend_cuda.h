// union_attend on a device: scores of all keys first, then weights, values and the join. Bits as union_attend.h, heads.h and rounding.h.
#pragma once

#include "base/cuda/launch.h"
#include "kernels/union_attend/union_attend.h"

namespace stet {

struct CudaUnion {
  UnionSpec spec;  // addresses of the device
  RopeRows rope;
  const float* q = nullptr;       // [row][heads][width], rotated
  const float* chosen = nullptr;  // [row][top], where spec.top is not 0
  const float* block = nullptr;   // [row][width]: the pass itself, whose rows attend to each other (block_attend), and to no entries
  float* out = nullptr;           // [row][heads][width], turned back
  uint32_t rows = 0;              // at most
  bool head = false;              // works on head_rows of the step
  uint32_t context = 0;           // positions at most
  float* scores = nullptr;        // union_attend_scratch() bytes
};

// Bytes for the scores of `rows` rows, or of some of them at a time, where all would be too many.
uint64_t union_attend_scratch(const UnionSpec& spec, uint32_t rows, uint32_t context);

// Throws Error(kUnsupported) for a shape that the kernels cannot take.
void launch_union(const CudaLaunch& on, const CudaStep* step, const CudaUnion& u);

}  // namespace stet
