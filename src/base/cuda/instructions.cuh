// The instructions that CUDA C++ has no words for, a function each: all inline assembly of the kernels is here. Builds for a GPU that is
// emulated on the processor (tests/emulated_cuda) have another file of this name.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stet::cuda {

// ---- Dependent launch (sm_90 and up; before, a kernel begins when its predecessor has ended). -------------------------------------------

// The next kernel of the stream may begin: everything it does before its own wait depends on nothing.
__device__ __forceinline__ void release_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Until here nothing may be read that an earlier kernel writes, and nothing written at all. Every thread of every
// kernel calls it: a kernel that ended without it would let its successor overtake its predecessor.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- Shared memory and barriers. --------------------------------------------------------------------------------------------------------

// The memory that the launch gave the block.
__device__ __forceinline__ uint8_t* dynamic_shared() {
  extern __shared__ __align__(128) uint8_t memory[];
  return memory;
}
__device__ __forceinline__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A barrier of `threads` threads of a block; 0 is __syncthreads().
__device__ __forceinline__ void barrier(uint32_t id, uint32_t threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// A barrier in shared memory (mbarrier): `count` arrivals end a phase; the first phase has parity 0.
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}
// Whether the phase of that parity has ended.
__device__ __forceinline__ bool barrier_passed(uint32_t barrier, uint32_t parity) {
  uint32_t done;
#if __CUDA_ARCH__ >= 900
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
#else
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
#endif
  return done != 0;
}

// Clusters: all of their blocks' threads.
__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// What block `rank` of the cluster has at the place of *mine.
__device__ __forceinline__ float4 of_peer(const float4* mine, uint32_t rank) {
#if __CUDA_ARCH__ >= 900
  float4 v;
  asm volatile(
      "{\n .reg .b32 a;\n mapa.shared::cluster.u32 a, %4, %5;\n ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [a];\n}"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "r"(shared_address(mine)), "r"(rank)
      : "memory");
  return v;
#else
  return *mine;
#endif
}

// ---- Reading global memory. -------------------------------------------------------------------------------------------------------------

// 16 bytes from `from + kOffset` to shared address `to + kOffset`, both sides aligned; past the first cache, which holds activations.
template <uint32_t kOffset = 0>
__device__ __forceinline__ void copy_async16(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0 + %2], [%1 + %2], 16;" ::"r"(to), "l"(from), "n"(kOffset) : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending groups of this thread are in flight.
template <int kPending>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Brings bytes that will be read soon into the second cache; both numbers are multiples of 16. Devices before sm_90 wait until they are read.
__device__ __forceinline__ void prefetch_second(const void* global, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
#endif
}

#if __CUDA_ARCH__ >= 900
// What was written to shared memory is seen by the engine that copies whole runs.
__device__ __forceinline__ void fence_bulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Of bytes that are read once: they leave the second cache first.
__device__ __forceinline__ uint64_t read_once_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
// Arrives, and adds `bytes` to what the phase waits for.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
      "%4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}
#endif

// Past the first cache.
__device__ __forceinline__ uint4 load_once(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

__device__ __forceinline__ uint64_t clock_ns() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// ---- Products of matrices, by a warp. ---------------------------------------------------------------------------------------------------

// c = a * b + c over 32 columns, unsigned weights, signed activations.
__device__ __forceinline__ void mma32(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The same over 16 columns.
__device__ __forceinline__ void mma16(int32_t c[4], uint32_t a0, uint32_t a1, uint32_t b0) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a0), "r"(a1), "r"(b0));
}
// out = a * b + c, c left as it is.
__device__ __forceinline__ void mma32(int32_t out[4], const uint32_t a[4], uint32_t b0, uint32_t b1, const int32_t c[4]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
__device__ __forceinline__ void mma16(int32_t out[4], uint32_t a0, uint32_t a1, uint32_t b0, const int32_t c[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
      : "r"(a0), "r"(a1), "r"(b0), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
// out = a * b + c over 16 columns of f16, f32 sums.
__device__ __forceinline__ void mma_f16(float out[4], const uint32_t a[4], uint32_t b0, uint32_t b1, const float c[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

// ---- Pairs of f16, e4m3. ----------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ uint32_t add_pair(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
__device__ __forceinline__ uint32_t sub_pair(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
__device__ __forceinline__ uint32_t mul_pair(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
// |a| * b + c, and a * b + c where it is above zero, else zero.
__device__ __forceinline__ uint32_t fma_size_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t out;
  asm("{ .reg .b32 size; abs.f16x2 size, %1; fma.rn.f16x2 %0, size, %2, %3; }" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}
__device__ __forceinline__ uint32_t fma_relu_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t out;
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

#if __CUDA_ARCH__ >= 890
// The values of codes 2 * half and 2 * half + 1 of a word of four e4m3 codes.
__device__ __forceinline__ uint32_t e4m3_pair(uint32_t codes, uint32_t half) {
  uint32_t pair;
  if (half == 0) {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, low; }" : "=r"(pair) : "r"(codes));
  } else {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, high; }" : "=r"(pair) : "r"(codes));
  }
  return pair;
}
// Four f32, at most 448 in size, as e4m3 codes.
__device__ __forceinline__ uint32_t e4m3_codes(float4 x) {
  uint16_t low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x.y), "f"(x.x));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x.w), "f"(x.z));
  return low | uint32_t{high} << 16;
}
#endif

}  // namespace stet::cuda
