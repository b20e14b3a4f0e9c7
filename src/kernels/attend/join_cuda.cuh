// The parts of an attention and how they join, as kernels/attend/attend.h says.
#pragma once

#include "kernels/attend/attend.h"
#include "kernels/cuda/math.cuh"

namespace stet::cuda {

// One attended chunk of one row and query head: m, l, two floats unused, o[head_dim].
constexpr uint32_t kPartHead = 4;
__host__ __device__ constexpr size_t part_floats(uint32_t head_dim) { return kPartHead + (size_t{head_dim} + 3) / 4 * 4; }

// w: the weights of two neighbours.
__device__ __forceinline__ float join_two(float left, float right, float2 w) {
  return __fadd_rn(__fmul_rn(left, w.x), __fmul_rn(right, w.y));
}
__device__ __forceinline__ float2 join_two(float2 left, float2 right, float2 w) {
  return {join_two(left.x, right.x, w), join_two(left.y, right.y, w)};
}

// A subtree of parts, as the thread of an element, or of two, sees it.
template <typename Elements>
struct Joined {
  float m, l;
  Elements o;
  __device__ void join(const Joined& right) {
    const float top = larger(m, right.m);
    const float2 w = {exp_exact(__fsub_rn(m, top)), exp_exact(__fsub_rn(right.m, top))};
    m = top;
    l = join_two(l, right.l, w);
    o = join_two(o, right.o, w);
  }
};

// Subtrees of equal runs, joined as they come. (Those that wait lie in local memory.)
template <typename Elements>
class JoinedRuns {
 public:
  __device__ void push(const Joined<Elements>& run) {
    if (count_ != 0) level_[depth_++] = top_;
    top_ = run;
    for (uint32_t bits = count_++; (bits & 1u) != 0; bits >>= 1) join_waiting();
  }
  __device__ Joined<Elements> finish() {
    while (depth_ > 0) join_waiting();
    return top_;
  }

 private:
  __device__ void join_waiting() {
    level_[--depth_].join(top_);
    top_ = level_[depth_];
  }

  Joined<Elements> level_[kMaxRunLevels];  // that wait for their right neighbour, largest first
  Joined<Elements> top_;
  uint32_t count_ = 0, depth_ = 0;
};

// Element d of an attended row: the tree over `count` parts, `stride` floats apart, divided.
__device__ __forceinline__ float join_parts(const float* parts, size_t stride, uint32_t count, uint32_t d) {
  JoinedRuns<float> tree;
  for (uint32_t i = 0; i < count; ++i, parts += stride) tree.push({parts[0], parts[1], parts[kPartHead + d]});
  const Joined<float> all = tree.finish();
  return __fdiv_rn(all.o, all.l);
}

}  // namespace stet::cuda
