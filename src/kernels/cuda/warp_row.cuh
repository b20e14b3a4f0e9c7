// A row of floats that a warp holds in registers: what heads, cached rows and entries are while they are normed, rotated and rounded.
#pragma once

#include "base/cuda/device.cuh"

namespace stet::cuda {

constexpr uint32_t kWarpRowMost = 512;  // elements

// Element 32 i + lane is x[i] of the lane; behind the n elements of the row registers hold anything. Every lane of the warp takes part in
// whatever is done with it.
template <uint32_t kRegs>
struct WarpRow {
  float x[kRegs];
  uint32_t n;

  __device__ __forceinline__ static uint32_t place(uint32_t i) { return i * kWarp + threadIdx.x % kWarp; }

  // f(x, d) for each of the lane's elements d of begin .. end - 1. REQUIRES: end <= n.
  template <typename F>
  __device__ __forceinline__ void each(uint32_t begin, uint32_t end, const F& f) {
#pragma unroll
    for (uint32_t i = 0; i < kRegs; ++i)
      if (const uint32_t d = place(i); d >= begin && d < end) f(x[i], d);
  }
  template <typename F>
  __device__ __forceinline__ void each(const F& f) {
    each(0, n, f);
  }
  __device__ __forceinline__ void load(const float* from, uint32_t elements) {
    n = elements;
#pragma unroll
    for (uint32_t i = 0; i < kRegs; ++i) x[i] = place(i) < n ? from[place(i)] : 0.0f;
  }
  __device__ __forceinline__ void store(float* to) {
    each([&](float v, uint32_t d) { to[d] = v; });
  }
};

// Calls f.operator()<kRegs>() with as many registers as rows of n elements need.
template <typename F>
void with_warp_row(uint32_t n, const F& f) {
  if (n > kWarpRowMost) fail_cuda_kernel("elements of a row that a warp holds", n, "use --device cpu");
  if (n <= 128) return f.template operator()<4>();
  f.template operator()<16>();
}

}  // namespace stet::cuda
