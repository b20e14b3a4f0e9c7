// Joins all chunks of kQueries query heads by a block of threads, bits as attend.h: first the weights of every join,
// level by level, then the sums, a thread an element. A join is known by the chunk that its right side begins with.
#pragma once

#include "kernels/attend/join_cuda.cuh"
#include "kernels/attend/score_cuda.cuh"

namespace stet::cuda {

struct JoinShared {
  float2* sums;     // [kQueries][chunks]: m, l of the run that begins there
  float2* weights;  // [kQueries][chunks]: of its join with the run before it
};
constexpr size_t join_bytes(uint32_t chunks) { return size_t{kQueries} * chunks * 2 * sizeof(float2); }

__device__ __forceinline__ void join_sums(const JoinShared& s, uint32_t a, uint32_t b) {
  const float2 left = s.sums[a], right = s.sums[b];
  const float top = larger(left.x, right.x);
  const float2 w = {exp_exact(__fsub_rn(left.x, top)), exp_exact(__fsub_rn(right.x, top))};
  s.weights[b] = w;
  s.sums[a] = {top, __fadd_rn(__fmul_rn(left.y, w.x), __fmul_rn(right.y, w.y))};
}

// parts: of the first query's first chunk; `stride` floats from chunk to chunk, `apart` from query to query.
__device__ __forceinline__ void join_weights(const JoinShared& s, const float* parts, size_t stride, size_t apart,
                                             uint32_t chunks, uint32_t queries) {
  for (uint32_t i = threadIdx.x; i < queries * chunks; i += kStepThreads)
    s.sums[i] = __ldcg(reinterpret_cast<const float2*>(parts + i / chunks * apart + i % chunks * stride));
  __syncthreads();
  for (uint32_t run = 1; 2 * run <= chunks; run *= 2) {
    const uint32_t pairs = chunks / (2 * run);
    for (uint32_t i = threadIdx.x; i < queries * pairs; i += kStepThreads) {
      const uint32_t a = i / pairs * chunks + i % pairs * 2 * run;
      join_sums(s, a, a + run);
    }
    __syncthreads();
  }
  // Runs that are left, from the last to the first.
  if (threadIdx.x < queries) {
    const uint32_t first = threadIdx.x * chunks;
    for (uint32_t rest = chunks & (chunks - 1), right = chunks - (chunks & (0u - chunks)); rest != 0;
         rest &= rest - 1) {
      const uint32_t size = rest & (0u - rest), left = right - size;
      join_sums(s, first + left, first + right);
      right = left;
    }
  }
  __syncthreads();
}

// Chunks first .. first + kRun - 1, kRun a power of two and first a multiple of it.
template <uint32_t kRun>
__device__ __forceinline__ float join_run(const float* o, size_t stride, const float2* weights, uint32_t first) {
  float x[kRun];
#pragma unroll
  for (uint32_t i = 0; i < kRun; ++i) x[i] = __ldcg(o + (first + i) * stride);
#pragma unroll
  for (uint32_t run = 1; run < kRun; run *= 2)
#pragma unroll
    for (uint32_t i = 0; i < kRun; i += 2 * run) x[i] = join_two(x[i], x[i + run], weights[first + i + run]);
  return x[0];
}

// One element over all chunks, before the division. o: of chunk 0.
__device__ __forceinline__ float join_element(const float* o, size_t stride, const float2* weights, uint32_t chunks) {
  constexpr uint32_t kRun = 8;
  float level[kMaxRunLevels];
  uint32_t starts[kMaxRunLevels], depth = 0, at = 0;
  const auto push = [&](float x, uint32_t start) {
    level[depth] = x;
    starts[depth++] = start;
  };
  for (uint32_t group = 0; at + kRun <= chunks; ++group, at += kRun) {
    float x = join_run<kRun>(o, stride, weights, at);
    uint32_t start = at;
    for (uint32_t bits = group; (bits & 1u) != 0; bits >>= 1) {
      x = join_two(level[--depth], x, weights[start]);
      start = starts[depth];
    }
    push(x, start);
  }
  if ((chunks & 4u) != 0) push(join_run<4>(o, stride, weights, at), at), at += 4;
  if ((chunks & 2u) != 0) push(join_run<2>(o, stride, weights, at), at), at += 2;
  if ((chunks & 1u) != 0) push(join_run<1>(o, stride, weights, at), at);
  float x = level[--depth];
  uint32_t start = starts[depth];
  while (depth > 0) {
    x = join_two(level[--depth], x, weights[start]);
    start = starts[depth];
  }
  return x;
}

}  // namespace stet::cuda
