// The chunks of weights that a warp reads, in order: those of a run of segments of one tile after the other, through a ring of its own. The
// lanes copy 16 bytes each at a time: a bulk copy costs the warp more instructions.
#pragma once

#include "base/cuda/device.cuh"
#include "kernels/matvec/segment_run.cuh"

namespace stet::cuda {

// Tiles::next() is where the next tile lies; null behind the last.
template <typename Unit, typename Tiles>
class ChunkReader {
 public:
  static constexpr uint32_t kStages = Unit::kChunkBytes > 1280 ? 2 : 4, kBytes = kStages * Unit::kChunkBytes;

  // ring: kBytes of the warp, aligned to 16.
  __device__ ChunkReader(const Tiles& tiles, const SegmentRun& run, uint8_t* ring)
      : tiles_(tiles), begin_(run.begin()), end_(run.end()), blocks_(run.blocks), asked_(end_), ring_(ring) {
    open();
#pragma unroll
    for (uint32_t i = 0; i < kStages; ++i) request();
  }
  // The next chunk, when it is there.
  __device__ const uint8_t* next() const {
    copy_wait<kStages - 1>();
    __syncwarp();
    return ring_ + place_;
  }
  // The chunk of next() was used: its place is filled anew.
  __device__ void done() {
    __syncwarp();
    request();
  }

 private:
  // asked_ == end_: there is no more.
  __device__ void open() {
    if (begin_ >= end_) return;
    const uint8_t* tile = tiles_.next();
    if (tile == nullptr) return;
    asked_ = begin_;
    at_ = tile + begin_ * Unit::kChunkBytes + threadIdx.x % kWarp * 16;
  }
  __device__ void request() {
    if (asked_ != end_) {
      const uint32_t lane = threadIdx.x % kWarp * 16, bytes = min(kChunkBlocks, blocks_ - asked_ * kChunkBlocks) * Unit::kBlockBytes;
      copy<0>(shared_address(ring_) + place_ + lane, bytes - lane);
      at_ += Unit::kChunkBytes;
      if (++asked_ == end_) open();
    }
    copy_commit();
    place_ = place_ + Unit::kChunkBytes == kBytes ? 0 : place_ + Unit::kChunkBytes;
  }
  // left: bytes from the lane's first on.
  template <uint32_t kOffset>
  __device__ void copy(uint32_t to, int32_t left) const {
    if (left > static_cast<int32_t>(kOffset)) copy_async16<kOffset>(to, at_);
    if constexpr (kOffset + kWarp * 16 < Unit::kChunkBytes) copy<kOffset + kWarp * 16>(to, left);
  }

  Tiles tiles_;
  const uint32_t begin_, end_, blocks_;
  uint32_t asked_, place_ = 0;
  const uint8_t* at_ = nullptr;
  uint8_t* const ring_;
};

}  // namespace stet::cuda
