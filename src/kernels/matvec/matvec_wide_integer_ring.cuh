// Shape of an integer product of many rows, and what its ring holds: a stage is a chunk of K.
#pragma once

#include "formats/each_cuda.cuh"
#include "formats/pack.h"
#include "kernels/matvec/matvec_wide_ring.cuh"

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

template <Format kFormat>
class WideReader : public WideRing<WideReader<kFormat>, WideShape, WideStage<kFormat>, 1> {
  using Stage = WideStage<kFormat>;
  using Ring = WideRing<WideReader<kFormat>, WideShape, Stage, 1>;
  friend Ring;

 public:
  __device__ WideReader(const CudaProduct& p, const WideCut& cut, const WidePart& part, uint8_t* ring)
      : Ring(p, cut, part, part.begin, part.end, ring) {
#pragma unroll
    for (uint32_t j = 0; j < kXPieces; ++j) {
      const uint32_t piece = threadIdx.x % kXThreads + j * kXThreads;
      x_offset_[j] = piece / (Stage::kRecord / 16) * kCudaRecord + piece % (Stage::kRecord / 16) * 16;
    }
  }
  __device__ void begin(uint32_t rows) { Ring::begin(rows, size_t{this->cut_.k / kBlock} * kCudaRecord, 0); }

 private:
  using Ring::kTileThreads, Ring::kXThreads;
  static constexpr uint32_t kXPieces = (kChunkBlocks * Stage::kRecord / 16 + kXThreads - 1) / kXThreads;
  static_assert(kTileThreads % 16 == 0 && kXThreads >= 1);

  __device__ uint32_t blocks() const { return min(kChunkBlocks, this->cut_.k / kBlock - this->at_ * kChunkBlocks); }
  __device__ void copy_weights(uint32_t stage) {
    if (this->weights_ == nullptr) return;
    uint8_t* to = this->ring_ + stage * Stage::kBytes + threadIdx.x / kTileThreads * Stage::kTileBytes;
    const uint8_t* from = this->weights_ + size_t{this->at_} * Stage::kTileBytes;
    const uint32_t first = threadIdx.x % kTileThreads * 16, turned = Stage::turned(first);
    const uint32_t codes = blocks() * Stage::W::kCodes, bytes = blocks() * Stage::kBlockBytes;
#pragma unroll
    for (uint32_t o = 0; o < Stage::kTileBytes; o += kTileThreads * 16)
      if (o + first < bytes) copy_async16(to + o + (o + first < codes ? turned : first), from + o);
  }
  __device__ void copy_x(uint32_t stage) {
    if (!this->live_) return;
    uint8_t* to = this->ring_ + stage * Stage::kBytes + Stage::kX + threadIdx.x / kXThreads * Stage::kGroupBytes +
                  threadIdx.x % kXThreads * 16;
    const uint8_t* from = this->x_ + size_t{this->at_} * (kChunkBlocks * kCudaRecord);
    const uint32_t pieces = blocks() * (Stage::kRecord / 16);
#pragma unroll
    for (uint32_t j = 0; j < kXPieces; ++j)
      if (threadIdx.x % kXThreads + j * kXThreads < pieces) copy_async16(to + j * kXThreads * 16, from + x_offset_[j]);
  }

  uint32_t x_offset_[kXPieces];
};

}  // namespace stet::cuda
