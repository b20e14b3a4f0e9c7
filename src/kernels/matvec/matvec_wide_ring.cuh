// Shape of an integer product of many rows, and the ring of stages in shared memory that feeds it.
#pragma once

#include "formats/each_cuda.cuh"
#include "formats/pack.h"
#include "kernels/cuda/activations.h"
#include "kernels/matvec/matvec_wide.cuh"

namespace stet::cuda {

// What a block of threads takes: warps along the weights and along x, tiles and groups of a warp. Best of those that
// were measured on an H200 (docs/performance.md).
struct WideShape {
  static constexpr uint32_t kWarpsM = 2, kWarpsN = 4, kM = 4, kN = 4;
  static constexpr uint32_t kTiles = kWarpsM * kM;   // of weights
  static constexpr uint32_t kGroups = kWarpsN * kN;  // of x
  static constexpr uint32_t kThreads = kWarpsM * kWarpsN * kWarp;
  static constexpr uint32_t kSlots = kM * kN;  // two at least for each block of a cluster: gate and up
  using Joined = Exchange<kSlots, kThreads>;
  using Waiting = WaitingSums<2, 4, kSlots, kThreads>;
};

template <Format kFormat>
struct WideStage {
  using W = CudaWeights<kFormat>;
  static constexpr uint32_t kBlockBytes = W::kCodes + W::kScales;
  static constexpr uint32_t kTileBytes = kChunkBlocks * kBlockBytes;
  static constexpr uint32_t kRecord =
      W::kMinimum || W::kHalves ? kCudaRecord : 320;  // what the format needs of a record
  static constexpr uint32_t kGroupBytes = kChunkBlocks * kRecord;
  static constexpr uint32_t kX = WideShape::kTiles * kTileBytes;  // where x begins
  static constexpr uint32_t kBytes = kX + WideShape::kGroups * kGroupBytes;
  static constexpr uint32_t kStages = stages_that_fit(kBytes, WideShape::Waiting::kBytes, 1);
  static_assert(kStages >= 2);
  // Codes of 256 bytes: the second half of each run is turned by 32 bytes, so that the lanes of a half-warp meet
  // different banks.
  static constexpr bool kTurned = W::kCodes % 256 == 0;
  __device__ static uint32_t turned(uint32_t offset) { return kTurned ? offset ^ (offset >> 2 & 32u) : offset; }
};

// Fills the ring. The chunks begin .. end - 1 of the groups of a cluster, one group after the other.
template <Format kFormat>
class WideReader {
 public:
  using Stage = WideStage<kFormat>;
  __device__ WideReader(const CudaProduct& p, const WideCut& cut, const WidePart& part, uint8_t* ring)
      : p_(p), cut_(cut), part_(part), ring_(ring), group_(part.cluster), chunk_(part.begin) {
    more_ = part.begin < part.end && group_ < cut.groups;
    if (more_) open();
#pragma unroll
    for (uint32_t j = 0; j < kXPieces; ++j) {
      const uint32_t piece = threadIdx.x % kXThreads + j * kXThreads;
      x_offset_[j] = piece / (Stage::kRecord / 16) * kCudaRecord + piece % (Stage::kRecord / 16) * 16;
    }
  }
  // The weights of the first stages, which depend on nothing; then, when x is there, x.
  __device__ void request_weights() {
    const uint32_t group = group_, chunk = chunk_;
    const bool more = more_;
    for (uint32_t i = 0; i + 1 < Stage::kStages && more_; ++i) {
      copy_weights(i);
      advance();
    }
    group_ = group, chunk_ = chunk, more_ = more;
    if (more_) open();
  }
  __device__ void begin(uint32_t rows) {
    const uint32_t group = threadIdx.x / kXThreads;
    live_ = group * kCudaGroup < rows;
    x_ = p_.x + size_t{group} * (cut_.k / kBlock) * kCudaRecord;
    for (uint32_t i = 0; i + 1 < Stage::kStages; ++i) {
      if (more_) {
        copy_x(i);
        advance();
      }
      copy_commit();
    }
  }
  // The next stage, when it is there for all threads. The place that became free is filled anew.
  __device__ const uint8_t* next() {
    copy_wait<Stage::kStages - 2>();
    __syncthreads();
    const uint32_t free = stage_ == 0 ? Stage::kStages - 1 : stage_ - 1;
    if (more_) {
      copy_weights(free);
      copy_x(free);
      advance();
    }
    copy_commit();
    const uint8_t* stage = ring_ + stage_ * Stage::kBytes;
    stage_ = stage_ + 1 == Stage::kStages ? 0 : stage_ + 1;
    return stage;
  }

 private:
  static constexpr uint32_t kTileThreads = WideShape::kThreads / WideShape::kTiles,
                            kXThreads = WideShape::kThreads / WideShape::kGroups;
  static constexpr uint32_t kXPieces = (kChunkBlocks * Stage::kRecord / 16 + kXThreads - 1) / kXThreads;
  static_assert(kTileThreads % 16 == 0 && kXThreads >= 1);

  __device__ uint32_t blocks() const { return min(kChunkBlocks, cut_.k / kBlock - chunk_ * kChunkBlocks); }
  __device__ void open() {
    const uint32_t t = group_ * WideShape::kTiles + threadIdx.x / kTileThreads;
    weights_ = nullptr;
    if (t >= cut_.tiles) return;
    const TilePlace place = tile_place(p_, t);
    weights_ = place.matrix->data + place.tile * p_.tile_bytes + threadIdx.x % kTileThreads * 16;
  }
  __device__ void copy_weights(uint32_t stage) {
    if (weights_ == nullptr) return;
    uint8_t* to = ring_ + stage * Stage::kBytes + threadIdx.x / kTileThreads * Stage::kTileBytes;
    const uint8_t* from = weights_ + size_t{chunk_} * Stage::kTileBytes;
    const uint32_t first = threadIdx.x % kTileThreads * 16, turned = Stage::turned(first);
    const uint32_t codes = blocks() * Stage::W::kCodes, bytes = blocks() * Stage::kBlockBytes;
#pragma unroll
    for (uint32_t o = 0; o < Stage::kTileBytes; o += kTileThreads * 16)
      if (o + first < bytes) copy_async16(to + o + (o + first < codes ? turned : first), from + o);
  }
  __device__ void copy_x(uint32_t stage) {
    if (!live_) return;
    uint8_t* to = ring_ + stage * Stage::kBytes + Stage::kX + threadIdx.x / kXThreads * Stage::kGroupBytes +
                  threadIdx.x % kXThreads * 16;
    const uint8_t* from = x_ + size_t{chunk_} * (kChunkBlocks * kCudaRecord);
    const uint32_t pieces = blocks() * (Stage::kRecord / 16);
#pragma unroll
    for (uint32_t j = 0; j < kXPieces; ++j)
      if (threadIdx.x % kXThreads + j * kXThreads < pieces) copy_async16(to + j * kXThreads * 16, from + x_offset_[j]);
  }
  __device__ void advance() {
    if (++chunk_ < part_.end) return;
    chunk_ = part_.begin;
    group_ += part_.clusters;
    more_ = group_ < cut_.groups;
    if (more_) open();
  }

  const CudaProduct& p_;
  const WideCut& cut_;
  const WidePart& part_;
  uint8_t* ring_;
  uint32_t group_, chunk_, stage_ = 0;
  bool more_, live_ = false;
  const uint8_t* weights_ = nullptr;  // of this thread's tile
  const uint8_t* x_ = nullptr;        // of this thread's group
  uint32_t x_offset_[kXPieces];
};

}  // namespace stet::cuda
