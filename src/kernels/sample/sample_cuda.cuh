// What the kernels of sampling share, and how its result becomes a token.
#pragma once

#include "kernels/cuda/math.cuh"
#include "kernels/sample/sample_cuda.h"

namespace stet::cuda {

using Wide = unsigned long long;

// Unsigned keys in the order of finite numbers; -0 equals +0.
__device__ __forceinline__ uint32_t key_of(float x) {
  const uint32_t bits = __float_as_uint(__fadd_rn(x, 0.0f));
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float value_of_key(uint32_t key) {
  return __uint_as_float((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}

// A key with its id: of two the larger is the larger key or, of equals, the lower id. 0 is below all.
__device__ __forceinline__ Wide ranked(uint32_t key, uint32_t id) {
  return static_cast<Wide>(key) << 32 | static_cast<uint32_t>(~id);
}
__device__ __forceinline__ uint32_t key_of_ranked(Wide x) { return static_cast<uint32_t>(x >> 32); }
__device__ __forceinline__ uint32_t id_of_ranked(Wide x) { return ~static_cast<uint32_t>(x); }

__device__ __forceinline__ Wide warp_max(Wide x) {
#pragma unroll
  for (uint32_t width = kWarp / 2; width >= 1; width /= 2) x = max(x, __shfl_xor_sync(kAll, x, width));
  return x;
}

__device__ __forceinline__ float tempered(float logit, float largest, float temperature) {
  return __fdiv_rn(__fsub_rn(logit, largest), temperature);
}
__device__ __forceinline__ uint32_t weight_of(float x) {
  return static_cast<uint32_t>(__fmul_rn(exp_exact(x), 0x1p31f));
}

// The logits of a row after bias and penalties. (A bias of 0 is added too: it changes at most the sign of a zero, which
// decides nothing.)
class AdjustedRow {
 public:
  __device__ AdjustedRow(const CudaSample& s, const CudaSampling& p, uint32_t row)
      : logits_(s.logits + size_t{row} * s.vocab),
        bias_(p.biased != 0 ? s.bias : nullptr),
        counts_(p.penalised != 0 ? s.counts : nullptr),
        proposed_(s.timeline->proposed),
        before_(s.first + row),
        p_(p) {}

  __device__ float operator[](uint32_t id) const {
    float l = logits_[id];
    if (bias_ != nullptr) l = __fadd_rn(l, bias_[id]);
    if (counts_ == nullptr) return l;
    const uint32_t entry = counts_[id];
    uint32_t count = entry & ~kCudaInPrompt;
    for (uint32_t i = 0; i < before_; ++i) count += static_cast<uint32_t>(proposed_[i]) == id;
    if (count == 0 && entry == 0) return l;
    l = l > 0.0f ? __fdiv_rn(l, p_.repetition) : __fmul_rn(l, p_.repetition);
    if (count == 0) return l;
    return __fsub_rn(__fsub_rn(l, __fmul_rn(p_.frequency, static_cast<float>(count))), p_.presence);
  }

 private:
  const float* logits_;
  const float* bias_;
  const uint32_t* counts_;
  const int32_t* proposed_;
  uint32_t before_;
  const CudaSampling& p_;
};

// Slices of a row: block b of threads has slice b % count of row b / count.
__device__ __forceinline__ uint32_t slices_of(const CudaSample& s, uint32_t rows) { return s.blocks / rows; }

// By a whole warp: the largest of what the slices of a row left.
__device__ __forceinline__ Wide join_slices(const Wide* of_slices, uint32_t slices, uint32_t row) {
  Wide x = 0;
  for (uint32_t i = threadIdx.x % kWarp; i < slices; i += kWarp) x = max(x, of_slices[row * slices + i]);
  return warp_max(x);
}

// By a whole warp: the token of a row, or -1 where a logit is not finite.
__device__ __forceinline__ int32_t join_row(const CudaSample& s, uint32_t rows, uint32_t row) {
  const uint32_t slices = slices_of(s, rows);
  bool bad = false;
  for (uint32_t i = threadIdx.x % kWarp; i < slices; i += kWarp) bad |= s.bad[row * slices + i] != 0;
  const Wide x = join_slices(s.sampling->temperature == 0.0f ? s.best : s.noisy, slices, row);
  return __any_sync(kAll, bad) ? -1 : static_cast<int32_t>(id_of_ranked(x));
}

void launch_cut(const CudaLaunch& on, const CudaStep* step, const CudaSample& s, uint32_t rows);

}  // namespace stet::cuda
