// Plain reads of device memory, as fast as they come.
#include "base/cuda/device.cuh"
#include "device/read_ceiling.h"

namespace stet {
namespace {

constexpr uint32_t kThreads = 512, kBlocks = 4,
                   kAhead = 8;  // of a block; blocks a processor; loads in flight of a thread
constexpr uint64_t kMostBytes = uint64_t{4} << 30;

// quads: a multiple of kAhead times all threads. The sum is kept from the compiler by a store that never happens.
__global__ void read_all(const uint4* from, uint64_t quads, uint32_t* never) {
  const uint64_t all = uint64_t{gridDim.x} * kThreads;
  uint32_t sum = 0;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < quads; i += all * kAhead) {
    uint4 v[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) v[j] = cuda::load_once(from + i + j * all);
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) sum |= v[j].x | v[j].y | v[j].z | v[j].w;
  }
  if (sum != 0) *never = sum;  // the memory holds zeros
}

class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    cuda::check(cudaEventCreate(&begin_), "an event cannot be made");
    cuda::check(cudaEventCreate(&end_), "an event cannot be made");
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  template <typename Work>
  double seconds(const Work& work) const {
    cuda::check(cudaEventRecord(begin_, stream_), "an event cannot be recorded");
    work();
    cuda::check(cudaEventRecord(end_, stream_), "an event cannot be recorded");
    cuda::check(cudaEventSynchronize(end_), "the read kernel failed");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, begin_, end_), "an event cannot be read");
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
      cuda::launch_clusters({stream.get(), false, device.processors}, read_all, 1, blocks, kThreads, 0, reinterpret_cast<const uint4*>(memory.data()),
                            memory.bytes() / sizeof(uint4), reinterpret_cast<uint32_t*>(never.data()));
    });
    rate = static_cast<double>(memory.bytes()) / seconds / 1e9;
  }
  std::sort(rates.begin(), rates.end());
  return rates;
}

}  // namespace stet
