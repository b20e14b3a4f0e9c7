// The parts of an attention and how they join, as kernels/attend/attend.h says.
#pragma once

#include "kernels/attend/attend.h"
#include "kernels/cuda/math.cuh"

namespace stet::cuda {

// One attended chunk of one row and query head: m, l, two floats unused, o[head_dim].
constexpr uint32_t kPartHead = 4;
__host__ __device__ constexpr size_t part_floats(uint32_t head_dim) { return kPartHead + (size_t{head_dim} + 3) / 4 * 4; }

// A subtree of parts, as the thread of one element sees it.
struct Joined {
  float m, l, o;
  __device__ void join(const Joined& right) {
    const float top = larger(m, right.m);
    const float left_weight = exp_exact(__fsub_rn(m, top)), right_weight = exp_exact(__fsub_rn(right.m, top));
    m = top;
    l = __fadd_rn(__fmul_rn(l, left_weight), __fmul_rn(right.l, right_weight));
    o = __fadd_rn(__fmul_rn(o, left_weight), __fmul_rn(right.o, right_weight));
  }
};

// Element d of an attended row: the tree over `count` parts, `stride` floats apart, divided.
__device__ __forceinline__ float join_parts(const float* parts, size_t stride, uint32_t count, uint32_t d) {
  Joined level[kMaxRunLevels];  // of subtrees that wait for their right neighbour, largest first
  uint32_t depth = 0;
  Joined top = {parts[0], parts[1], parts[kPartHead + d]};
  for (uint32_t i = 1; i < count; ++i) {
    level[depth++] = top;
    parts += stride;
    top = {parts[0], parts[1], parts[kPartHead + d]};
    for (uint32_t bits = i; (bits & 1u) != 0; bits >>= 1) {
      level[--depth].join(top);
      top = level[depth];
    }
  }
  while (depth > 0) {
    level[--depth].join(top);
    top = level[depth];
  }
  return __fdiv_rn(top.o, top.l);
}

}  // namespace stet::cuda
