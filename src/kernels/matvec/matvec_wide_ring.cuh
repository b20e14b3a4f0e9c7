// The ring of stages in shared memory that feeds a product of many rows: each stage has weights of kTiles tiles and x
// of kGroups groups of rows, of as many columns of K as the kind of product takes at a time.
#pragma once

#include "kernels/cuda/activations.h"
#include "kernels/matvec/matvec_wide.cuh"

namespace stet::cuda {

// Walks the places first, first + kStep .. below `end` of the groups of a cluster, one group after the other. Reader is
// the class that derives from this: copy_weights(stage) and copy_x(stage) ask for what is at place at_ of group group_.
// Stage: kBytes, kStages.
template <typename Reader, typename Shape, typename Stage, uint32_t kStep>
class WideRing {
 public:
  // The weights of the first stages, which depend on nothing; then, when x is there, x.
  __device__ void request_weights() {
    const uint32_t group = group_, at = at_;
    const bool more = more_;
    for (uint32_t i = 0; i + 1 < Stage::kStages && more_; ++i) {
      self().copy_weights(i);
      advance();
    }
    group_ = group, at_ = at, more_ = more;
    if (more_) open();
  }
  // rows: of x that are there. x_bytes: of a group; x_first: where in it this thread begins.
  __device__ void begin(uint32_t rows, size_t x_bytes, uint32_t x_first) {
    const uint32_t group = threadIdx.x / kXThreads;
    live_ = group * kCudaGroup < rows;
    x_ = p_.x + group * x_bytes + x_first;
    for (uint32_t i = 0; i + 1 < Stage::kStages; ++i) {
      if (more_) {
        self().copy_x(i);
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
      self().copy_weights(free);
      self().copy_x(free);
      advance();
    }
    copy_commit();
    const uint8_t* stage = ring_ + stage_ * Stage::kBytes;
    stage_ = stage_ + 1 == Stage::kStages ? 0 : stage_ + 1;
    return stage;
  }

 protected:
  static constexpr uint32_t kTileThreads = Shape::kThreads / Shape::kTiles,
                            kXThreads = Shape::kThreads / Shape::kGroups;

  __device__ WideRing(const CudaProduct& p, const WideCut& cut, const WidePart& part, uint32_t first, uint32_t end,
                      uint8_t* ring)
      : p_(p),
        cut_(cut),
        clusters_(part.clusters),
        first_(first),
        end_(end),
        ring_(ring),
        group_(part.cluster),
        at_(first) {
    more_ = first < end && group_ < cut.groups;
    if (more_) open();
  }

  const CudaProduct& p_;
  const WideCut& cut_;
  const uint32_t clusters_, first_, end_;
  uint8_t* ring_;
  uint32_t group_, at_, stage_ = 0;
  bool more_, live_ = false;
  const uint8_t* weights_ = nullptr;  // of this thread's tile; null: there is none
  const uint8_t* x_ = nullptr;        // of this thread's group, where it is live

 private:
  __device__ Reader& self() { return static_cast<Reader&>(*this); }
  __device__ void open() {
    const uint32_t t = group_ * Shape::kTiles + threadIdx.x / kTileThreads;
    weights_ = nullptr;
    if (t >= cut_.tiles) return;
    const TilePlace place = tile_place(p_, t);
    weights_ = place.matrix->data + place.tile * p_.tile_bytes + threadIdx.x % kTileThreads * 16;
  }
  __device__ void advance() {
    at_ += kStep;
    if (at_ < end_) return;
    at_ = first_;
    group_ += clusters_;
    more_ = group_ < cut_.groups;
    if (more_) open();
  }
};

}  // namespace stet::cuda
