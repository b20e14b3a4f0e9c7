// What both kinds of product share on a device: which tile is whose, how partial sums of a tile become its output.
#pragma once

#include "base/fp.h"
#include "kernels/common/segments.h"
#include "kernels/cuda/math.cuh"
#include "kernels/matvec/matvec_cuda.h"

namespace stet::cuda {

constexpr uint32_t kProductWarps = 16;
constexpr uint32_t kProductThreads = kProductWarps * kWarp;

// Warps of a block in teams of `warps`; a team takes tiles one after the other, its warps share the segments of a tile.
struct Team {
  uint32_t warps, index, warp, thread;  // index: among all teams of the row group; warp, thread: inside the team
  uint32_t teams;
  __device__ explicit Team(uint32_t team_warps)
      : warps(team_warps),
        index(blockIdx.x * (kProductWarps / team_warps) + threadIdx.x / kWarp / team_warps),
        warp(threadIdx.x / kWarp % team_warps),
        thread(threadIdx.x % (kWarp * team_warps)),
        teams(gridDim.x * (kProductWarps / team_warps)) {}
  __device__ uint32_t threads() const { return warps * kWarp; }
  __device__ void sync() const {
    if (warps == 1) {
      __syncwarp();
    } else {
      barrier(1 + threadIdx.x / kWarp / warps, threads());
    }
  }
};

// Tile t of a launch: of a gated one, gate and up in turn; else of the matrices one after the other.
struct TilePlace {
  const CudaMatrix* matrix;
  uint32_t tile;
};
__device__ __forceinline__ TilePlace tile_place(const CudaProduct& p, uint32_t t) {
  if (p.gated) return {&p.matrix[t & 1u], t >> 1};
  uint32_t i = 0;
  while (i + 1 < p.matrices) {
    const uint32_t tiles = (p.matrix[i].rows + kTileRows - 1) / kTileRows;
    if (t < tiles) break;
    t -= tiles;
    ++i;
  }
  return {&p.matrix[i], t};
}

inline uint32_t tile_count(const CudaProduct& p) {
  uint32_t tiles = 0;
  for (uint32_t i = 0; i < p.matrices; ++i) tiles += (p.matrix[i].rows + kTileRows - 1) / kTileRows;
  return tiles;
}

// Balanced pairwise sum of kCount values, `stride` floats apart.
template <uint32_t kCount>
__device__ __forceinline__ float tree_of(const float* x, uint32_t stride) {
  if constexpr (kCount == 1) {
    return *x;
  } else {
    return __fadd_rn(tree_of<kCount / 2>(x, stride), tree_of<kCount / 2>(x + kCount / 2 * stride, stride));
  }
}
// n: a power of two, at most kProductWarps.
__device__ __forceinline__ float tree_sum(const float* x, uint32_t n, uint32_t stride) {
  switch (n) {
    case 1: return tree_of<1>(x, stride);
    case 2: return tree_of<2>(x, stride);
    case 4: return tree_of<4>(x, stride);
    case 8: return tree_of<8>(x, stride);
    default: return tree_of<16>(x, stride);
  }
}

// The same of the segments of any K.
__device__ __forceinline__ float tree_of_segments(const float* x, uint32_t segments, uint32_t stride) {
  return segments == kMaxSegments ? tree_of<kMaxSegments>(x, stride) : tree_sum(x, segments, stride);
}

// What an output becomes of its product and of what it was.
__device__ __forceinline__ float output_of(const CudaProduct& p, float product, float old) {
  if (p.rounded) product = rounded_bf16(product);
  if (!p.accumulate) return product;
  const float sum = __fadd_rn(old, product);
  return rounded_if(p.rounded, sum);
}

// Adds up what the warps of a team left for a tile and stores it: partial[warp][column][row of the tile].
// kept: of a gated launch, what this thread has of the gate's tile.
// stride: floats from one warp's sums to the next.
template <uint32_t kKept>
__device__ __forceinline__ void finish_tile(const CudaProduct& p, const Team& team, uint32_t t, uint32_t columns, uint32_t first_row,
                                            const float* partial, uint32_t stride, float (&kept)[kKept]) {
  const TilePlace place = tile_place(p, t);
  const uint32_t outputs = columns * kTileRows;
  uint32_t i = 0;
  for (uint32_t o = team.thread; o < outputs; o += team.threads(), ++i) {
    float sum = tree_sum(partial + o, team.warps, stride);
    if (p.gated) {
      if ((t & 1u) == 0) {
#pragma unroll
        for (uint32_t j = 0; j < kKept; ++j)
          if (i == j) kept[j] = sum;
        continue;
      }
      float gate = 0.0f;
#pragma unroll
      for (uint32_t j = 0; j < kKept; ++j)
        if (i == j) gate = kept[j];
      sum = __fmul_rn(silu(gate), sum);
    }
    const uint32_t row = place.tile * kTileRows + o % kTileRows;
    if (row >= place.matrix->rows) continue;
    const CudaMatrix& matrix = p.gated ? p.matrix[0] : *place.matrix;
    float* out = matrix.out + size_t{first_row + o / kTileRows} * matrix.width + row;
    *out = output_of(p, sum, p.accumulate ? *out : 0.0f);
  }
}

// segment_begin of a power of two of segments, without a division.
__device__ __forceinline__ uint32_t segment_start(uint32_t s, uint32_t segments, uint32_t chunks) {
  return (s * chunks + segments - 1) >> (31 - __clz(static_cast<int>(segments)));
}

// What a tile costs beside its products (a barrier, the tree, the store), in units of the products of a whole tile by one warp.
// Measured on an H200: docs/performance.md.
constexpr double kTileOverhead = 0.12;

// Warps of a team: few passes over the tiles, each short, but not so short that finishing tiles is all there is.
inline uint32_t team_warps(uint32_t tiles, uint32_t processors, uint32_t most) {
  uint32_t best = 1;
  double best_cost = 1e30;
  for (uint32_t w = 1; w <= most && w <= kProductWarps; w *= 2) {
    const uint32_t teams = processors * (kProductWarps / w);
    const double cost = static_cast<double>((tiles + teams - 1) / teams) * (1.0 / w + kTileOverhead);
    if (cost < best_cost) best_cost = cost, best = w;
  }
  return best;
}

}  // namespace stet::cuda
