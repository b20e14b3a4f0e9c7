// Plain reads of device memory, as fast as they come.
#include <cuda_runtime.h>

#include <algorithm>

#include "base/cuda/cuda_error.h"
#include "device/read_ceiling.h"

namespace stet {
namespace {

constexpr uint32_t kThreads = 512, kBlocks = 4,
                   kAhead = 8;  // of a block; blocks a processor; loads in flight of a thread
constexpr uint64_t kMostBytes = uint64_t{4} << 30;

void ok(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail_cuda(error, cudaGetErrorString(error), what);
}

__device__ __forceinline__ uint4 load_once(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// quads: a multiple of kAhead times all threads. The sum is kept from the compiler by a store that never happens.
__global__ void read_all(const uint4* from, uint64_t quads, uint32_t* never) {
  const uint64_t all = uint64_t{gridDim.x} * kThreads;
  uint32_t sum = 0;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < quads; i += all * kAhead) {
    uint4 v[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) v[j] = load_once(from + i + j * all);
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) sum |= v[j].x | v[j].y | v[j].z | v[j].w;
  }
  if (sum != 0) *never = sum;  // the memory holds zeros
}

class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    ok(cudaEventCreate(&begin_), "an event cannot be made");
    ok(cudaEventCreate(&end_), "an event cannot be made");
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  template <typename Work>
  double seconds(const Work& work) const {
    ok(cudaEventRecord(begin_, stream_), "an event cannot be recorded");
    work();
    ok(cudaGetLastError(), "the read kernel cannot be launched");
    ok(cudaEventRecord(end_, stream_), "an event cannot be recorded");
    ok(cudaEventSynchronize(end_), "the read kernel failed");
    float ms = 0;
    ok(cudaEventElapsedTime(&ms, begin_, end_), "an event cannot be read");
    return static_cast<double>(ms) / 1e3;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

ReadRates cuda_read_ceiling(const CudaDeviceInfo& device) {
  CudaStream stream(device);
  const uint32_t blocks = device.processors * kBlocks;
  const uint64_t turn = uint64_t{blocks} * kThreads * kAhead * sizeof(uint4);
  const uint64_t turns = std::max<uint64_t>(1, std::min(kMostBytes, cuda_free_bytes(device) / 2) / turn);
  const CudaMemory memory(turns * turn, "the read ceiling");
  const CudaMemory never(256, "the read ceiling");
  const Timer timer(stream.get());
  ReadRates rates;
  for (double& rate : rates) {
    const double seconds = timer.seconds([&] {
      read_all<<<blocks, kThreads, 0, stream.get()>>>(reinterpret_cast<const uint4*>(memory.data()),
                                                      memory.bytes() / sizeof(uint4),
                                                      reinterpret_cast<uint32_t*>(never.data()));
    });
    rate = static_cast<double>(memory.bytes()) / seconds / 1e9;
  }
  std::sort(rates.begin(), rates.end());
  return rates;
}

}  // namespace stet
