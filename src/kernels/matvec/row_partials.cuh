// From the sums of warps to outputs.
#pragma once

#include "kernels/matvec/row_schedule.cuh"

namespace stet::cuda {

// Partial sums of the tiles of a few rounds: [buffer][warp][output][row of the tile]. Warps that leave theirs go on;
// the ones that make outputs come back for all of them.
template <uint32_t kOutputs, uint32_t kBuffers>
class Partials {
  static constexpr uint32_t kBufferFloats = kRowWarps * kOutputs * kTileRows;

 public:
  static constexpr uint32_t kStride = kOutputs * kTileRows;  // floats from a warp's sums to the next's
  static constexpr uint32_t kBytes = kBuffers * (kBufferFloats * 4 + 16);
  __device__ explicit Partials(uint8_t* memory)
      : floats_(reinterpret_cast<float*>(memory)), full_(shared_address(memory + kBuffers * kBufferFloats * 4)) {}
  // By one thread, before a barrier of the block. outputs: that are made.
  __device__ void init(uint32_t outputs) const {
    for (uint32_t i = 0; i < kBuffers; ++i) barrier_init(full_ + i * 8, kRowWarps), barrier_init(empty(i), outputs);
  }
  __device__ float* of(uint32_t round) const { return floats_ + round % kBuffers * kBufferFloats; }
  // By every warp: the buffer may be written; it was.
  __device__ void begin(uint32_t round) const {
    if (round >= kBuffers) barrier_wait(empty(round % kBuffers), (round / kBuffers - 1) & 1u);
  }
  __device__ void left(uint32_t round) const {
    __syncwarp();
    if (threadIdx.x % kWarp == 0) barrier_arrive(full_ + round % kBuffers * 8);
  }
  // By the warps that make outputs: every warp has left its sums; they were read.
  __device__ void wait(uint32_t round) const { barrier_wait(full_ + round % kBuffers * 8, (round / kBuffers) & 1u); }
  __device__ void read(uint32_t round) const {
    __syncwarp();
    if (threadIdx.x % kWarp == 0) barrier_arrive(empty(round % kBuffers));
  }

 private:
  __device__ uint32_t empty(uint32_t i) const { return full_ + (kBuffers + i) * 8; }
  float* floats_;
  uint32_t full_;
};

// The outputs of a round, or of two where gate and up are in two, for one row of x, by one warp. Half h has
// the tile of slot h, or gate and up, or a share.
template <typename Partials>
class Finisher {
 public:
  __device__ Finisher(const CudaProduct& p, const RowCut& cut, const Schedule& schedule, const Partials& partials)
      : p_(p),
        cut_(cut),
        schedule_(schedule),
        partials_(partials),
        row_(threadIdx.x % kTileRows),
        h_(threadIdx.x % kWarp / 16) {}

  // Finds where the round's output goes; what it is added to is on its way early.
  __device__ void begin(uint32_t round, uint32_t output) {
    output_ = output;
    const uint32_t t = schedule_.tile(gate(round), schedule_.slots == 2 && !p_.gated ? h_ : 0);
    out_ = nullptr;
    if (t >= cut_.tiles || (h_ == 1 && (p_.gated || schedule_.slots == 1))) return;
    const uint32_t row = (p_.gated ? t >> 1 : t) * kTileRows + row_;
    if (row >= (p_.gated ? cut_.end_row[0] : cut_.of_tile(t, cut_.end_row))) return;
    out_ = (p_.gated ? cut_.out_of[0] : cut_.of_tile(t, cut_.out_of)) + row;
    if (Partials::kStride != kTileRows)
      out_ += size_t{output} * (p_.gated ? cut_.width_of[0] : cut_.of_tile(t, cut_.width_of));
    if (p_.accumulate) old_ = __ldcg(out_);
  }
  __device__ void end(uint32_t round) {
    if (gate(round) != round) partials_.wait(gate(round));
    partials_.wait(round);
    constexpr uint32_t kStride = Partials::kStride;
    const uint32_t at = output_ * kTileRows + row_;
    float sum;
    if (schedule_.slots == 2) {
      sum = tree_sum(partials_.of(round) + h_ * cut_.warps * kStride + at, cut_.warps, kStride);
    } else if (p_.gated) {
      sum = tree_sum(partials_.of(gate(round) + h_) + at, cut_.warps, kStride);
    } else {
      sum = tree_sum(partials_.of(round) + h_ * (cut_.warps / 2) * kStride + at, cut_.warps / 2, kStride);
      sum = __fadd_rn(sum, __shfl_xor_sync(kAll, sum, 16));
    }
    if (gate(round) != round) partials_.read(gate(round));
    partials_.read(round);
    if (p_.gated) sum = __fmul_rn(silu(sum), __shfl_xor_sync(kAll, sum, 16));
    if (out_ != nullptr) *out_ = output_of(p_, sum, old_);
  }

 private:
  __device__ uint32_t gate(uint32_t round) const { return p_.gated && schedule_.slots == 1 ? round - 1 : round; }

  const CudaProduct& p_;
  const RowCut& cut_;
  const Schedule& schedule_;
  const Partials& partials_;
  const uint32_t row_, h_;
  uint32_t output_ = 0;
  float* out_ = nullptr;
  float old_ = 0.0f;
};

}  // namespace stet::cuda
