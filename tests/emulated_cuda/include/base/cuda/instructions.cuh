// What src/base/cuda/instructions.cuh has, for an emulated GPU: each instruction in C++. Layouts of matrices in the lanes of a warp as the PTX
// manual draws them (mma.m16n8k16, mma.m16n8k32).
#pragma once

#include <cuda_runtime.h>

#include <chrono>

#include "base/fp.h"
#include "formats/e4m3/e4m3.h"

namespace stet::cuda {

inline void release_next() {}
inline void wait_for_previous() {}

inline uint8_t* dynamic_shared() { return emulated::dynamic_shared(); }
inline uint32_t shared_address(const void* p) { return emulated::shared_address(p); }
inline void barrier(uint32_t id, uint32_t threads) { emulated::block_barrier(id, threads); }
inline void barrier_init(uint32_t barrier, uint32_t count) { emulated::mbarrier_init(barrier, count); }
inline void barrier_arrive(uint32_t barrier) { emulated::mbarrier_arrive(barrier, 0); }
inline bool barrier_passed(uint32_t barrier, uint32_t parity) { return emulated::mbarrier_passed(barrier, parity); }

inline void cluster_arrive() { emulated::cluster_arrive(); }
inline void cluster_wait() { emulated::cluster_wait(); }
inline float4 of_peer(const float4* mine, uint32_t rank) { return *static_cast<const float4*>(emulated::peer_pointer(mine, rank)); }

template <uint32_t kOffset = 0>
void copy_async16(uint32_t to, const void* from) {
  emulated::copy_later(emulated::shared_pointer(to) + kOffset, static_cast<const uint8_t*>(from) + kOffset, 16);
}
inline void copy_commit() { emulated::commit_copies(); }
template <int kPending>
void copy_wait() {
  emulated::wait_for_copies(kPending);
}
inline void prefetch_second(const void*, uint32_t) {}
inline void fence_bulk() {}
inline uint64_t read_once_policy() { return 0; }
inline void barrier_expect(uint32_t barrier, uint32_t bytes) { emulated::mbarrier_arrive(barrier, bytes); }
inline void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier, uint64_t) {
  emulated::mbarrier_copy(barrier, to, from, bytes);
}
inline uint4 load_once(const uint4* p) { return *p; }
inline uint64_t clock_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// ---- Products of matrices. --------------------------------------------------------------------------------------------------------------

namespace detail {

// A register of every lane, two at a time.
struct Registers {
  Registers(uint32_t low, uint32_t high) : values(emulated::exchange(0xffffffffu, uint64_t{high} << 32 | low)) {}
  uint32_t of(uint32_t lane, uint32_t which) const { return static_cast<uint32_t>(values[lane] >> 32 * which); }
  emulated::LaneValues values;
};

// Row (of two) and column (of two) of an element i of the four that a lane has of a product.
struct Place {
  uint32_t row, column;
  explicit Place(uint32_t i) : row(emulated::lane() / 4 + i / 2 * 8), column(emulated::lane() % 4 * 2 + i % 2) {}
};

// 16 columns of bytes: a's registers are (rows 0 to 7, rows 8 to 15).
inline void mma16_bytes(int32_t c[4], const Registers& a, const Registers& b, uint32_t which) {
  for (uint32_t i = 0; i < 4; ++i) {
    const Place p(i);
    for (uint32_t k = 0; k < 16; ++k) {
      const uint32_t x = a.of(p.row % 8 * 4 + k / 4, p.row / 8) >> k % 4 * 8, y = b.of(p.column * 4 + k / 4, which) >> k % 4 * 8;
      c[i] += static_cast<int32_t>(static_cast<uint8_t>(x)) * static_cast<int8_t>(y);
    }
  }
}

inline float half_value(uint32_t pair, uint32_t which) { return f16_to_f32(static_cast<uint16_t>(pair >> 16 * which)); }

template <typename Operation>
uint32_t by_halves(const Operation& operation) {
  uint32_t out = 0;
  for (uint32_t i = 0; i < 2; ++i) out |= uint32_t{__half_as_ushort(__double2half(operation(i)))} << 16 * i;
  return out;
}

}  // namespace detail

inline void mma32(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
  const detail::Registers first(a[0], a[1]), second(a[2], a[3]), b(b0, b1);
  detail::mma16_bytes(c, first, b, 0);
  detail::mma16_bytes(c, second, b, 1);
}
inline void mma16(int32_t c[4], uint32_t a0, uint32_t a1, uint32_t b0) {
  const detail::Registers a(a0, a1), b(b0, 0);
  detail::mma16_bytes(c, a, b, 0);
}
inline void mma32(int32_t out[4], const uint32_t a[4], uint32_t b0, uint32_t b1, const int32_t c[4]) {
  const int32_t sums[4] = {c[0], c[1], c[2], c[3]};
  std::copy_n(sums, 4, out);
  mma32(out, a, b0, b1);
}
inline void mma16(int32_t out[4], uint32_t a0, uint32_t a1, uint32_t b0, const int32_t c[4]) {
  const int32_t sums[4] = {c[0], c[1], c[2], c[3]};
  std::copy_n(sums, 4, out);
  mma16(out, a0, a1, b0);
}
// Exact where the kernels use it, so that the order of the sums is nobody's business.
inline void mma_f16(float out[4], const uint32_t a[4], uint32_t b0, uint32_t b1, const float c[4]) {
  const detail::Registers halves[2] = {{a[0], a[1]}, {a[2], a[3]}}, b(b0, b1);
  double sums[4];
  for (uint32_t i = 0; i < 4; ++i) {
    const detail::Place p(i);
    sums[i] = static_cast<double>(c[i]);
    for (uint32_t k = 0; k < 16; ++k) {
      const float x = detail::half_value(halves[k / 8].of(p.row % 8 * 4 + k % 8 / 2, p.row / 8), k % 2);
      const float y = detail::half_value(b.of(p.column * 4 + k % 8 / 2, k / 8), k % 2);
      sums[i] += static_cast<double>(x) * static_cast<double>(y);
    }
  }
  for (uint32_t i = 0; i < 4; ++i) out[i] = static_cast<float>(sums[i]);
}

// ---- Pairs of f16, e4m3. ----------------------------------------------------------------------------------------------------------------

inline uint32_t add_pair(uint32_t a, uint32_t b) {
  return detail::by_halves([&](uint32_t i) { return static_cast<double>(detail::half_value(a, i)) + static_cast<double>(detail::half_value(b, i)); });
}
inline uint32_t sub_pair(uint32_t a, uint32_t b) { return add_pair(a, b ^ 0x80008000u); }
inline uint32_t mul_pair(uint32_t a, uint32_t b) {
  return detail::by_halves([&](uint32_t i) { return static_cast<double>(detail::half_value(a, i)) * static_cast<double>(detail::half_value(b, i)); });
}
inline uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c) {
  return detail::by_halves([&](uint32_t i) {
    return std::fma(static_cast<double>(detail::half_value(a, i)), static_cast<double>(detail::half_value(b, i)),
                    static_cast<double>(detail::half_value(c, i)));
  });
}
inline uint32_t fma_size_pair(uint32_t a, uint32_t b, uint32_t c) { return fma_pair(a & 0x7fff7fffu, b, c); }
inline uint32_t fma_relu_pair(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t sum = fma_pair(a, b, c);
  return ((sum & 0x8000u) != 0 ? 0u : sum & 0xffffu) | ((sum & 0x80000000u) != 0 ? 0u : sum & 0xffff0000u);
}

inline uint32_t e4m3_pair(uint32_t codes, uint32_t half) {
  return detail::by_halves([&](uint32_t i) { return static_cast<double>(e4m3_to_f32(static_cast<uint8_t>(codes >> 8 * (2 * half + i)))); });
}
inline uint32_t e4m3_codes(float4 x) {
  return f32_to_e4m3(x.x) | uint32_t{f32_to_e4m3(x.y)} << 8 | uint32_t{f32_to_e4m3(x.z)} << 16 | uint32_t{f32_to_e4m3(x.w)} << 24;
}

}  // namespace stet::cuda
