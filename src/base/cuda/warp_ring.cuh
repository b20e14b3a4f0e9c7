// A ring of places in shared memory that a warp fills from global memory for itself, a run of bytes for the warp or for
// each of its halves. Devices from sm_90 on have an engine that copies whole runs; before, the lanes copy 16 bytes
// each.
#pragma once

#include "base/cuda/device.cuh"

namespace stet::cuda {

// Until the phase of that parity has ended.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  while (!barrier_passed(barrier, parity)) {
  }
}

// kRuns: 1 or 2; kRunBytes: of a run, at most. Runs are multiples of 16 bytes, and begin at such.
template <uint32_t kStages, uint32_t kRuns, uint32_t kRunBytes>
class WarpRing {
 public:
  // The runs of two halves begin in different banks.
  static constexpr uint32_t kRunStride = (kRunBytes + 127) / 128 * 128 + (kRuns == 2 ? 64 : 0);
  static constexpr uint32_t kBytes = (kStages * kRuns * kRunStride + 127) / 128 * 128;  // of a warp
  static constexpr uint32_t kBarrierBytes = kStages * 8;                                // of a warp

  // memory: kBytes, aligned to 128; barriers: kBarrierBytes, aligned to 8.
  __device__ WarpRing(uint8_t* memory, uint8_t* barriers) : memory_(memory), barriers_(shared_address(barriers)) {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x % kWarp == 0) {
#pragma unroll
      for (uint32_t i = 0; i < kStages; ++i) barrier_init(barriers_ + i * 8, kRuns);
      fence_bulk();
    }
    // Weights are read once a pass: what passes share stays in the second cache.
    policy_ = read_once_policy();
    __syncwarp();
#endif
  }

  // Asks for the next run; every lane says its own half's. Bytes may be 0.
  __device__ void request(const uint8_t* from, uint32_t bytes) {
    const uint32_t to = shared_address(run(asked_));
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x % kLanes == 0) {
      const uint32_t barrier = barriers_ + asked_ * 8;
      barrier_expect(barrier, bytes);
      if (bytes != 0) copy_bulk(to, from, bytes, barrier, policy_);
    }
#else
    for (uint32_t i = threadIdx.x % kLanes * 16; i < bytes; i += kLanes * 16) copy_async16(to + i, from + i);
    copy_commit();
#endif
    asked_ = next(asked_);
    ++flying_;
  }
  // The oldest run, when it is there.
  __device__ const uint8_t* wait() {
#if __CUDA_ARCH__ >= 900
    barrier_wait(barriers_ + used_ * 8, phase_);
#else
    if (flying_ == kStages) {
      copy_wait<kStages - 1>();
    } else {
      copy_wait<0>();
    }
    __syncwarp();
#endif
    return run(used_);
  }
  // The run of wait() was used: its place may be asked for again.
  __device__ void release() {
    __syncwarp();
    used_ = next(used_);
    phase_ ^= used_ == 0 ? 1 : 0;
    --flying_;
  }
  // Nothing may be on its way into the memory of a block that ends.
  __device__ void drain() {
    while (flying_ > 0) {
      wait();
      release();
    }
  }

 private:
  static constexpr uint32_t kLanes = kWarp / kRuns;  // of a run
  __device__ static uint32_t next(uint32_t stage) { return stage + 1 == kStages ? 0 : stage + 1; }
  __device__ uint8_t* run(uint32_t stage) const {
    return memory_ + (stage * kRuns + threadIdx.x % kWarp / kLanes) * kRunStride;
  }

  uint8_t* memory_;
  uint32_t barriers_;
#if __CUDA_ARCH__ >= 900
  uint64_t policy_;
#endif
  uint32_t asked_ = 0, used_ = 0, phase_ = 0, flying_ = 0;
};

}  // namespace stet::cuda
