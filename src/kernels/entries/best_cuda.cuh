// The best `top` of many numbers, by one block of threads: larger is better, of equals the lowest index; listed in ascending order.
//
// Their least one is found digit by digit from the highest bit on in which numbers differ, by counting how many have which digit. Counters
// are whole numbers, so it does not matter who comes first.
#pragma once

#include "base/cuda/device.cuh"

namespace stet::cuda {

constexpr uint32_t kBestThreads = 1024;
constexpr uint32_t kBestWarps = kBestThreads / kWarp;
constexpr uint32_t kBestHeld = 16;  // numbers of a thread that stay in registers
constexpr uint32_t kBestRun = kBestHeld * kBestThreads;
constexpr uint32_t kDigitBits = 8, kDigits = 1u << kDigitBits;

// The sum of what the lanes before this one have, and its own.
__device__ __forceinline__ uint32_t sum_through(uint32_t own) {
  uint32_t sum = own;
#pragma unroll
  for (uint32_t width = 1; width < kWarp; width *= 2) {
    const uint32_t other = __shfl_up_sync(kAll, sum, width);
    if (threadIdx.x % kWarp >= width) sum += other;
  }
  return sum;
}

struct BestShared {
  uint32_t count[kDigits];                   // numbers that have a digit
  uint32_t differ[kBestWarps];               // bits, of what a warp saw
  uint32_t digit, need;                      // the digit of the least one, and how many of those that have it are needed
  uint32_t before[kBestHeld * kBestWarps];   // how many better ones and equals come before a warp's row of 32 numbers
  uint32_t all;                              // and how many there are
};

class Best {
 public:
  // top < n
  __device__ Best(const uint32_t* values, uint32_t n, uint32_t top, BestShared& shared) : values_(values), n_(n), top_(top), s_(shared) {}

  __device__ void list(float* chosen) {
    hold(0);
    find_least();
    uint32_t better = 0, equals = 0;
    for (uint32_t base = 0; base < n_; base += kBestRun) {
      hold(base);
      list_run(base, better, equals, chosen);
    }
  }

 private:
  __device__ bool there(uint32_t base, uint32_t i) const { return base + i * kBestThreads + threadIdx.x < n_; }
  // Numbers base .. base + kBestRun - 1, a row of 32 neighbours a warp.
  __device__ void hold(uint32_t base) {
    if (base == held_) return;
    held_ = base;
#pragma unroll
    for (uint32_t i = 0; i < kBestHeld; ++i) v_[i] = there(base, i) ? __ldcg(values_ + base + i * kBestThreads + threadIdx.x) : 0;
  }
  template <typename F>
  __device__ void each(const F& f) {
    for (uint32_t base = 0; base < n_; base += kBestRun) {
      hold(base);
#pragma unroll
      for (uint32_t i = 0; i < kBestHeld; ++i)
        if (there(base, i)) f(v_[i]);
    }
  }

  // least_: the number that is the last of the best; need_: how many of its equals are among them.
  __device__ void find_least() {
    const uint32_t any = __ldcg(values_);
    uint32_t differ = 0;
    each([&](uint32_t v) { differ |= v ^ any; });
    differ = __reduce_or_sync(kAll, differ);
    if (threadIdx.x % kWarp == 0) s_.differ[threadIdx.x / kWarp] = differ;
    __syncthreads();
    differ = __reduce_or_sync(kAll, s_.differ[threadIdx.x % kBestWarps]);
    uint32_t bits = 32 - __clz(differ);  // that are not known yet
    least_ = bits == 32 ? 0 : any >> bits << bits;
    need_ = top_;
    while (bits > 0) {
      const uint32_t width = min(bits, kDigitBits);
      count_digits(bits, width);
      if (threadIdx.x < kWarp) find_digit();
      __syncthreads();
      bits -= width;
      least_ |= s_.digit << bits;
      need_ = s_.need;
      __syncthreads();
    }
  }
  // Digits of `width` bits below bit `bits`, of the numbers that are as the least one from there on.
  __device__ void count_digits(uint32_t bits, uint32_t width) {
    if (threadIdx.x < kDigits) s_.count[threadIdx.x] = 0;
    __syncthreads();
    const uint64_t known = uint64_t{least_} >> bits;
    each([&](uint32_t v) {
      if (uint64_t{v} >> bits == known) atomicAdd(&s_.count[v >> (bits - width) & ((1u << width) - 1)], 1u);
    });
    __syncthreads();
  }
  // By one warp: a lane has eight neighbouring digits, the first lane the highest.
  __device__ void find_digit() {
    constexpr uint32_t kEach = kDigits / kWarp;
    const uint32_t lane = threadIdx.x % kWarp, highest = kDigits - 1 - lane * kEach;
    uint32_t own = 0;
    for (uint32_t i = 0; i < kEach; ++i) own += s_.count[highest - i];
    uint32_t above = sum_through(own) - own;  // of higher digits
    if (above >= need_ || above + own < need_) return;
    for (uint32_t i = 0; i < kEach; ++i) {
      const uint32_t here = s_.count[highest - i];
      if (above + here >= need_) {
        s_.digit = highest - i;
        s_.need = need_ - above;
        return;
      }
      above += here;
    }
  }

  // Counts lie in two halves of a word: better ones below, equals above. Neither is more than kBestRun.
  __device__ uint32_t here(uint32_t base, uint32_t i, uint32_t& better, uint32_t& equals) const {
    better = __ballot_sync(kAll, there(base, i) && v_[i] > least_);
    equals = __ballot_sync(kAll, there(base, i) && v_[i] == least_);
    return __popc(better) | __popc(equals) << 16;
  }
  __device__ void list_run(uint32_t base, uint32_t& better_before, uint32_t& equals_before, float* chosen) {
    static_assert(kBestRun < 1u << 16);
    const uint32_t warp = threadIdx.x / kWarp, lower = (1u << threadIdx.x % kWarp) - 1;
    uint32_t better, equals;
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kBestHeld; ++i) {
      const uint32_t counts = here(base, i, better, equals);
      if (threadIdx.x % kWarp == 0) s_.before[i * kBestWarps + warp] = counts;
    }
    __syncthreads();
    if (warp == 0) sum_counts();
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kBestHeld; ++i) {
      here(base, i, better, equals);
      if (!there(base, i)) continue;
      const uint32_t before = s_.before[i * kBestWarps + warp];
      const uint32_t better_here = better_before + (before & 0xffffu) + __popc(better & lower);
      const uint32_t equals_here = equals_before + (before >> 16) + __popc(equals & lower);
      if (v_[i] > least_ || (v_[i] == least_ && equals_here < need_))
        chosen[better_here + min(equals_here, need_)] = static_cast<float>(base + i * kBestThreads + threadIdx.x);
    }
    better_before += s_.all & 0xffffu;
    equals_before += s_.all >> 16;
  }
  // By one warp: of every count the sum of those before it.
  __device__ void sum_counts() {
    constexpr uint32_t kEach = kBestHeld * kBestWarps / kWarp;
    const uint32_t lane = threadIdx.x % kWarp;
    uint32_t* own = s_.before + lane * kEach;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < kEach; ++i) sum += own[i];
    uint32_t before = sum_through(sum);
    if (lane == kWarp - 1) s_.all = before;
    before -= sum;
    for (uint32_t i = 0; i < kEach; ++i) {
      const uint32_t here = own[i];
      own[i] = before;
      before += here;
    }
  }

  const uint32_t* values_;
  const uint32_t n_, top_;
  BestShared& s_;
  uint32_t least_ = 0, need_ = 0, held_ = UINT32_MAX;
  uint32_t v_[kBestHeld];
};

}  // namespace stet::cuda
