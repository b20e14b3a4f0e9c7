// Hyper-connections on a device, bits as hyper.h. Sinkhorn's matrix is one warp's: element (j, k) is a lane's, so that sums of rows and of
// columns are shuffles in the order of the contract, and every division is a lane's own.
#pragma once

#include "base/fp.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/hyper/hyper.h"

namespace stet::cuda {

constexpr uint32_t kGateTurns = 4;    // groups of threads that take turns at the sums of the lanes
constexpr uint32_t kGateThreads = kNormLanes * kGateTurns;

// 1 / sqrt(mean(x^2) + eps) by a block of kGateThreads threads. Every thread has some elements of its lane on their
// way at once; what is read first is added first.
__device__ __forceinline__ float inverse_rms(const float* x, uint32_t n, float eps, float* lanes) {
  constexpr uint32_t kEach = 16, kRound = kEach * kGateThreads;
  const uint32_t lane = threadIdx.x % kNormLanes, turn = threadIdx.x / kNormLanes;
#pragma unroll 1
  for (uint32_t first = 0; first < n; first += kRound) {
    const uint32_t begin = first + turn * (kEach * kNormLanes) + lane;
    float v[kEach];
    // A zero changes no sum of squares.
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) v[j] = begin + j * kNormLanes < n ? __ldcg(x + begin + j * kNormLanes) : 0.0f;
#pragma unroll 1
    for (uint32_t t = 0; t < kGateTurns; ++t) {
      if (t == turn) {
        float sum = first + t == 0 ? 0.0f : lanes[lane];
#pragma unroll
        for (uint32_t j = 0; j < kEach; ++j) sum = __fmaf_rn(v[j], v[j], sum);
        lanes[lane] = sum;
      }
      __syncthreads();
    }
  }
  return inverse_root_of_mean(fold_norm_lanes(lanes), n, eps);
}

__device__ __forceinline__ float sigmoid(float x) { return __fdiv_rn(1.0f, __fadd_rn(1.0f, exp_exact(__fsub_rn(0.0f, x)))); }

// An m by m matrix, m <= kSide, of one warp: element (j, k) is number j kSide + k, lane number mod 32, register number / 32. Lanes that no
// element is left for hold copies of others, and elements outside the matrix 1: no division by them is an exceptional one.
template <uint32_t kSide>
class SinkhornMatrix {
  static_assert(kSide == 4 || kSide == 8);
  static constexpr uint32_t kElements = kSide * kSide;

 public:
  static constexpr uint32_t kRegisters = (kElements + kWarp - 1) / kWarp;

  __device__ explicit SinkhornMatrix(uint32_t m) : m_(m), lane_(threadIdx.x % kWarp) {}
  // Whether register r of this lane has an element, and its place in rows of m.
  __device__ bool inside(uint32_t r) const { return row(r) < m_ && column() < m_; }
  __device__ uint32_t place(uint32_t r) const { return row(r) * m_ + column(); }
  __device__ void set(uint32_t r, float x) { c_[r] = inside(r) ? x : 1.0f; }
  __device__ void normalise(uint32_t iterations, float eps) {
    softmax();
    add(eps);
    divide_columns(eps);
#pragma unroll 1
    for (uint32_t i = 1; i < iterations; ++i) {
      divide_rows(eps);
      divide_columns(eps);
    }
  }
  // out [m][m]
  __device__ void store(float* out) const {
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r)
      if (inside(r) && r * kWarp + lane_ < kElements) out[place(r)] = c_[r];
  }

 private:
  __device__ uint32_t row(uint32_t r) const { return (r * kWarp + lane_) % kElements / kSide; }
  __device__ uint32_t column() const { return lane_ % kSide; }
  // Element (its own row, k); element (j, its own column).
  __device__ float in_row(uint32_t r, uint32_t k) const { return __shfl_sync(kAll, c_[r], k, kSide); }
  __device__ float in_column(uint32_t j) const {
    return __shfl_sync(kAll, c_[j * kSide / kWarp], j * kSide % kWarp + column());
  }

  // f over the elements of a row, in order.
  template <typename F>
  __device__ float over_row(uint32_t r, const F& f) const {
    float x = in_row(r, 0);
#pragma unroll
    for (uint32_t k = 1; k < kSide; ++k) {
      const float y = in_row(r, k);
      if (k < m_) x = f(x, y);
    }
    return x;
  }
  __device__ float sum_of_row(uint32_t r) const { return over_row(r, [](float a, float b) { return __fadd_rn(a, b); }); }
  __device__ float sum_of_column() const {
    float sum = in_column(0);
#pragma unroll
    for (uint32_t j = 1; j < kSide; ++j) {
      const float x = in_column(j);
      if (j < m_) sum = __fadd_rn(sum, x);
    }
    return sum;
  }

  __device__ void softmax() {
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r) {
      const float most = over_row(r, [](float a, float b) { return larger(a, b); });
      if (inside(r)) c_[r] = exp_exact(__fsub_rn(c_[r], most));
    }
    divide_rows(0.0f);
  }
  __device__ void add(float eps) {
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r) c_[r] = __fadd_rn(c_[r], eps);
  }
  __device__ void divide_rows(float eps) {
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r) c_[r] = __fdiv_rn(c_[r], __fadd_rn(sum_of_row(r), eps));
  }
  __device__ void divide_columns(float eps) {
    const float divisor = __fadd_rn(sum_of_column(), eps);
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r) c_[r] = __fdiv_rn(c_[r], divisor);
  }

  const uint32_t m_, lane_;
  float c_[kRegisters];
};

// What logit i is made of, but for the norm.
struct LogitTerms {
  float mix = 0.0f, scale = 0.0f, base = 0.0f;
  __device__ void load(const HyperSpec& spec, const float* all, uint32_t i, uint32_t of) {
    mix = __ldcg(all + i);
    scale = spec.scale[of];
    base = spec.base[i];
  }
  __device__ float times(float r) const { return __fadd_rn(__fmul_rn(__fmul_rn(mix, r), scale), base); }
};

// hyper_gates of one row by a block of kGateThreads threads: the first warp makes comb, the second pre and post. m <= kSide.
template <uint32_t kSide>
__device__ __forceinline__ void hyper_gates_row(const HyperSpec& spec, const float* streams, uint32_t n, const float* mix, float* gates,
                                                float* lanes) {
  const uint32_t m = spec.streams, warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const bool makes_comb = warp == 0 && spec.iterations != 0, makes_pre = warp == 1 && lane < m,
             makes_post = warp == 1 && spec.iterations != 0 && lane >= m && lane < 2 * m;
  SinkhornMatrix<kSide> comb(m);
  // On their way before the sum of squares.
  LogitTerms terms[comb.kRegisters];
  if (makes_comb) {
#pragma unroll
    for (uint32_t r = 0; r < comb.kRegisters; ++r)
      if (comb.inside(r)) terms[r].load(spec, mix, 2 * m + comb.place(r), 2);
  } else if (makes_pre || makes_post) {
    terms[0].load(spec, mix, lane, makes_pre ? 0 : 1);
  }
  const float r = inverse_rms(streams, n, spec.norm_eps, lanes);
  if (makes_pre) gates[lane] = __fadd_rn(sigmoid(terms[0].times(r)), spec.eps);
  if (makes_post) gates[lane] = __fmul_rn(2.0f, sigmoid(terms[0].times(r)));
  if (!makes_comb) return;
#pragma unroll
  for (uint32_t i = 0; i < comb.kRegisters; ++i) comb.set(i, terms[i].times(r));
  comb.normalise(spec.iterations, spec.eps);
  comb.store(gates + 2 * m);
}

// Element d of hyper_mix.
template <uint32_t kMost>
__device__ __forceinline__ float hyper_mixed(uint32_t m, const float* streams, uint32_t hidden, const float* gates, uint32_t d) {
  float x[kMost];
#pragma unroll
  for (uint32_t j = 0; j < kMost; ++j) x[j] = j < m ? __ldcg(streams + j * hidden + d) : 0.0f;
  float acc = 0.0f;
#pragma unroll
  for (uint32_t j = 0; j < kMost; ++j)
    if (j < m) acc = __fmaf_rn(gates[j], x[j], acc);
  return acc;
}

// Element d of all streams of hyper_post, which may be written over `streams`: everything is read first.
template <uint32_t kMost>
__device__ __forceinline__ void hyper_posted(uint32_t m, float site, const float* streams, uint32_t hidden, const float* gates, uint32_t d,
                                             bool rounded, float* out) {
  const float *post = gates + m, *comb = gates + 2 * m;
  float x[kMost], y[kMost];
#pragma unroll
  for (uint32_t j = 0; j < kMost; ++j) x[j] = j < m ? __ldcg(streams + j * hidden + d) : 0.0f;
#pragma unroll
  for (uint32_t k = 0; k < kMost; ++k) {
    if (k >= m) continue;
    y[k] = __fmul_rn(post[k], site);
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j)
      if (j < m) y[k] = __fmaf_rn(comb[j * m + k], x[j], y[k]);
  }
#pragma unroll
  for (uint32_t k = 0; k < kMost; ++k)
    if (k < m) out[k * hidden + d] = rounded_if(rounded, y[k]);
}

}  // namespace stet::cuda
