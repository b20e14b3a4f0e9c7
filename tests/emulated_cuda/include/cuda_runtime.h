// CUDA C++ for a C++ compiler: kernels are functions whose threads are fibers (../scheduler.h). The toolkit's own headers give types and
// declarations; ../runtime.cpp defines what stet calls of them.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "../scheduler.h"

#undef __shared__
#undef __launch_bounds__
#undef __forceinline__
#define __shared__ static  // a grid is run by one block, or cluster, after the other
#define __launch_bounds__(...)
#define __forceinline__ inline

// The paths of sm_90. Behind the toolkit's headers, which would take themselves for device code.
#define __CUDA_ARCH__ 900

// ---- Launches. --------------------------------------------------------------------------------------------------------------------------

namespace stet::emulated {
// Runs a grid, or records it where the stream is captured.
cudaError_t launch(const cudaLaunchConfig_t& config, std::function<void()> kernel);
}  // namespace stet::emulated

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  return stet::emulated::launch(*config, [kernel, values = std::tuple<std::decay_t<Parameters>...>(std::forward<Arguments>(arguments)...)] {
    std::apply(kernel, values);
  });
}
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int, size_t) {
  *blocks = 1;
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Kernel*, const cudaLaunchConfig_t*) {
  *clusters = 1;
  return cudaSuccess;
}

// ---- Arithmetic. The files are compiled without contraction. ----------------------------------------------------------------------------

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }

inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }
inline int32_t __float_as_int(float x) { return std::bit_cast<int32_t>(x); }
inline float __uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int32_t x) { return std::bit_cast<float>(x); }

inline int __popc(uint32_t x) { return std::popcount(x); }
inline int __clz(int32_t x) { return std::countl_zero(static_cast<uint32_t>(x)); }
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{a} * b >> 64);
}
inline int32_t __dp4a(int32_t a, int32_t b, int32_t c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return c;
}
// Without the mode that repeats a sign, which nothing uses.
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t select) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) out |= static_cast<uint32_t>(bytes >> (select >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
  return out;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}

// ---- Memory. ----------------------------------------------------------------------------------------------------------------------------

template <typename T>
T __ldcg(const T* p) {
  return *p;
}
template <typename T>
T __ldg(const T* p) {
  return *p;
}
inline void __threadfence() {}
inline void __threadfence_system() {}
template <typename T>
T atomicAdd(T* p, std::type_identity_t<T> x) {
  const T old = *p;
  *p += x;
  return old;
}

// ---- Threads of a block, lanes of a warp. -----------------------------------------------------------------------------------------------

namespace stet::emulated {

template <typename T>
uint64_t bits_of(T x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
template <typename T>
T of_bits(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline uint32_t lane() { return threadIdx.x % 32; }

// The value of lane `from`; this lane's own where there is no such lane.
template <typename T>
T from_lane(uint32_t mask, T x, uint32_t from) {
  const LaneValues& all = exchange(mask, bits_of(x));
  return from < 32 ? of_bits<T>(all[from]) : x;
}
template <typename T, typename Join>
T over_lanes(uint32_t mask, T x, const Join& join) {
  const LaneValues& all = exchange(mask, bits_of(x));
  for (uint32_t i = 0; i < 32; ++i)
    if ((mask >> i & 1u) != 0 && i != lane()) x = join(x, of_bits<T>(all[i]));
  return x;
}

}  // namespace stet::emulated

inline void __syncthreads() { stet::emulated::block_barrier(0, 0); }
inline int __syncthreads_or(int x) { return stet::emulated::block_barrier(0, 0, x != 0); }
inline void __syncwarp(uint32_t mask = 0xffffffffu) { stet::emulated::exchange(mask, 0); }

// width: of groups of lanes that look among themselves.
template <typename T>
T __shfl_sync(uint32_t mask, T x, uint32_t from, uint32_t width = 32) {
  return stet::emulated::from_lane(mask, x, stet::emulated::lane() / width * width + from % width);
}
template <typename T>
T __shfl_xor_sync(uint32_t mask, T x, uint32_t with) {
  return stet::emulated::from_lane(mask, x, stet::emulated::lane() ^ with);
}
template <typename T>
T __shfl_up_sync(uint32_t mask, T x, uint32_t by) {
  return stet::emulated::from_lane(mask, x, stet::emulated::lane() - by);  // wraps far beyond 32 below lane 0
}
template <typename T>
T __shfl_down_sync(uint32_t mask, T x, uint32_t by) {
  return stet::emulated::from_lane(mask, x, stet::emulated::lane() + by);
}

template <typename T>
T __reduce_max_sync(uint32_t mask, T x) {
  return stet::emulated::over_lanes(mask, x, [](T a, T b) { return a < b ? b : a; });
}
template <typename T>
T __reduce_add_sync(uint32_t mask, T x) {
  return stet::emulated::over_lanes(mask, x, [](T a, T b) { return static_cast<T>(a + b); });
}
inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t x) {
  return stet::emulated::over_lanes(mask, x, [](uint32_t a, uint32_t b) { return a | b; });
}
inline uint32_t __ballot_sync(uint32_t mask, int x) { return __reduce_or_sync(mask, x != 0 ? 1u << stet::emulated::lane() : 0u); }
inline int __any_sync(uint32_t mask, int x) { return __ballot_sync(mask, x) != 0; }
template <typename T>
uint32_t __match_all_sync(uint32_t mask, T x, int* all) {
  const uint64_t bits = stet::emulated::bits_of(x);
  const stet::emulated::LaneValues& values = stet::emulated::exchange(mask, bits);
  *all = 1;
  for (uint32_t i = 0; i < 32; ++i)
    if ((mask >> i & 1u) != 0 && values[i] != bits) *all = 0;
  return *all != 0 ? mask : 0;
}
