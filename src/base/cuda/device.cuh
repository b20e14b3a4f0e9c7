// What the CUDA kernels share: dependent launch, asynchronous copies, conversions with the bits of base/fp.h.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "base/cuda/cuda_error.h"
#include "base/cuda/instructions.cuh"
#include "base/cuda/launch.h"

namespace stet::cuda {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kAll = 0xffffffffu;

// Rows of the step that a list works on: those of the pass, or, of a head list, those whose logits are wanted.
__device__ __forceinline__ uint32_t live_rows(const CudaStep* step, bool head) { return head ? step->head_rows : step->rows; }

__device__ __forceinline__ void copy_async16(void* shared, const void* global) { copy_async16(shared_address(shared), global); }

// Bits as f32_to_f16 of base/fp.h gives them: the instruction forgets what a NaN was.
__device__ __forceinline__ uint16_t f16_bits(float x) {
  const uint32_t b = __float_as_uint(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((b >> 16 & 0x8000u) | 0x7e00u | (b >> 13 & 0x3ffu));
  return __half_as_ushort(__float2half_rn(x));
}
__device__ __forceinline__ float f16_value(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
__device__ __forceinline__ float2 f16_pair(uint32_t bits) {
  return {f16_value(static_cast<uint16_t>(bits)), f16_value(static_cast<uint16_t>(bits >> 16))};
}
__device__ __forceinline__ float bf16_value(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}

// Throws Error(kResource) that says what was being done.
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail_cuda(error, cudaGetErrorString(error), what);
}

// Of a block of threads, on sm_90.
constexpr size_t kMostShared = 227 * 1024;

// Kernels of narrow passes have a block of threads for each processor, and two of them fit on one, never three: then each processor runs
// a block of one kernel and prepares a block of the next. (With fewer blocks, or room for three, the next kernel's blocks gather where room
// is, and the processors that they leave out stay idle.)
constexpr size_t kPairShared = 78 * 1024;

// More shared memory than a kernel has without asking.
template <typename Kernel>
void allow_shared(Kernel kernel, size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "shared memory of a kernel");
}

// Throws what says which kernel could not be launched, and with what.
[[noreturn]] inline void fail_launch(cudaError_t error, const void* kernel, const cudaLaunchConfig_t& config) {
  const char* name = nullptr;
  if (cudaFuncGetName(&name, kernel) != cudaSuccess) name = "unknown";
  fail_cuda_launch(error, cudaGetErrorString(error), name, config.gridDim.x, config.gridDim.y, config.blockDim.x,
                   config.dynamicSmemBytes);
}

// A grid in clusters of `cluster` blocks, which start together and reach into each other's shared memory (sm_90 and up;
// 1: none).
template <typename Kernel, typename... Args>
void launch_clusters(const CudaLaunch& on, Kernel kernel, uint32_t cluster, dim3 grid, uint32_t threads, size_t shared,
                     const Args&... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = on.stream;
  cudaLaunchAttribute attributes[2] = {};
  uint32_t count = 0;
  if (on.pdl) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {cluster, 1, 1};
  }
  config.attrs = attributes;
  config.numAttrs = count;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, args...);
  if (error != cudaSuccess) fail_launch(error, reinterpret_cast<const void*>(kernel), config);
}

template <typename Kernel, typename... Args>
void launch(const CudaLaunch& on, Kernel kernel, dim3 grid, uint32_t threads, size_t shared, const Args&... args) {
  // One split of first cache and shared memory for all: a processor that has to change it runs empty first.
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory of a kernel");
  launch_clusters(on, kernel, 1, grid, threads, shared, args...);
}

}  // namespace stet::cuda
