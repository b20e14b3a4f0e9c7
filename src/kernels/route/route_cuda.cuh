// The router on a device: bits as route.h. A block of threads has a row.
#pragma once

#include "kernels/common/best_ref.h"
#include "kernels/cuda/math.cuh"
#include "kernels/route/route.h"

namespace stet::cuda {

constexpr uint32_t kRouteThreads = 256;

__device__ __forceinline__ float route_score(float logit) {
  const float e = exp_exact(logit < 0.0f ? logit : __fsub_rn(0.0f, logit));
  // 53/128 is kernels/route/route.h's.
  const float log1p = e < 53.0f / 128.0f ? log_ratio(0.0f, e, __fadd_rn(2.0f, e))
                                         : log_ratio(1.0f, __fsub_rn(e, 1.0f), __fadd_rn(e, 3.0f));
  return __fsqrt_rn(__fadd_rn(logit < 0.0f ? 0.0f : logit, log1p));
}

// The best key of the thread's own experts, of those below `last`; 0: there is none. With more experts than threads,
// scores are made anew each time: they need no memory, and only the threads that gave the last choice look again.
__device__ __forceinline__ uint64_t best_own(const RouteSpec& spec, const float* logits, uint64_t last) {
  uint64_t best = 0;
  for (uint32_t i = threadIdx.x; i < spec.experts; i += kRouteThreads) {
    const uint64_t key = best_key(__fadd_rn(route_score(logits[i]), spec.bias[i]), i);
    if (key < last && key > best) best = key;
  }
  return best;
}

// The largest of a warp's keys.
__device__ __forceinline__ uint64_t warp_best(uint64_t key) {
  const uint32_t high = static_cast<uint32_t>(key >> 32), most = __reduce_max_sync(kAll, high);
  const uint32_t low = __reduce_max_sync(kAll, high == most ? static_cast<uint32_t>(key) : 0);
  return uint64_t{most} << 32 | low;
}

// The ids of the best, in order, as floats. `best`: of two rounds.
__device__ __forceinline__ void route_best(const RouteSpec& spec, const float* logits, uint64_t (&best)[2][kRouteThreads / kWarp], float* ids) {
  uint64_t own = best_own(spec, logits, UINT64_MAX);
  for (uint32_t slot = 0; slot < spec.chosen; ++slot) {
    uint64_t(&of_warps)[kRouteThreads / kWarp] = best[slot % 2];  // the round before may still be read
    const uint64_t of_warp = warp_best(own);
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = of_warp;
    __syncthreads();
    const uint64_t chosen = warp_best(of_warps[threadIdx.x % (kRouteThreads / kWarp)]);
    if (threadIdx.x == 0) ids[slot] = static_cast<float>(index_of_key(chosen));
    if (own == chosen) own = best_own(spec, logits, chosen);
  }
}

// out [2 * chosen] from ids and scores, in shared memory both.
__device__ __forceinline__ void route_weights(const RouteSpec& spec, const float* logits, const float* ids, float* score, float* out) {
  const uint32_t i = threadIdx.x, n = spec.chosen;
  if (i < n) score[i] = route_score(logits[min(static_cast<uint32_t>(ids[i]), spec.experts - 1)]);
  __syncthreads();
  if (i >= n) return;
  float sum = 0.0f;
  for (uint32_t slot = 0; slot < n; ++slot) sum = __fadd_rn(sum, score[slot]);
  out[i] = ids[i];
  out[n + i] = __fdiv_rn(__fmul_rn(spec.scale, score[i]), __fadd_rn(sum, 1e-20f));
}

}  // namespace stet::cuda
