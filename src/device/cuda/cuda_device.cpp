#include "device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "base/error.h"

namespace stet {
namespace {

constexpr uint32_t kLeastCapability = 80;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    fail(Code::kResource, "{}: CUDA error {} ({})", what, static_cast<int>(error), cudaGetErrorString(error));
}

// What people can do about it. A machine without a driver, without a device, and one that links a driver's stub are the
// same case.
std::string explain(cudaError_t error, int driver) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      if (driver != 0)
        return fmt::format("the NVIDIA driver knows CUDA {}.{}, and this program needs {}.{} or later", driver / 1000,
                           driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
      return "there is no NVIDIA driver on this machine";
    case cudaErrorNoDevice:
      return "there is no NVIDIA GPU that this process may use";
    case cudaErrorStubLibrary:
      return "there is no NVIDIA driver on this machine (only its stub)";
    default:
      return fmt::format("CUDA error {} ({})", static_cast<int>(error), cudaGetErrorString(error));
  }
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

CudaDeviceInfo describe(int index, int driver) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, index), "the properties of the GPU cannot be read");
  CudaDeviceInfo info;
  info.index = index;
  info.name = p.name;
  info.uuid = uuid_text(p.uuid);
  info.capability = static_cast<uint32_t>(p.major * 10 + p.minor);
  info.processors = static_cast<uint32_t>(p.multiProcessorCount);
  info.memory_bytes = p.totalGlobalMem;
  info.driver = driver;
  info.runtime = CUDART_VERSION;
  return info;
}

}  // namespace

CudaDevices cuda_devices() {
  CudaDevices out;
  int driver = 0, count = 0;
  cudaDriverGetVersion(&driver);
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();
    out.why_none = explain(error, driver);
    return out;
  }
  for (int i = 0; i < count; ++i) {
    const CudaDeviceInfo info = describe(i, driver);
    if (info.capability >= kLeastCapability) {
      out.devices.push_back(info);
    } else if (out.why_none.empty()) {
      out.why_none = fmt::format("{} has compute capability {}.{}, and stet needs 8.0", info.name, info.capability / 10,
                                 info.capability % 10);
    }
  }
  if (!out.devices.empty()) out.why_none.clear();
  return out;
}

CudaDeviceInfo cuda_device() {
  const CudaDevices all = cuda_devices();
  if (all.devices.empty())
    fail(Code::kUnsupported, "there is no CUDA device to run on: {}. Use --device cpu", all.why_none);
  return all.devices.front();
}

uint64_t cuda_free_bytes(const CudaDeviceInfo& device) {
  check(cudaSetDevice(device.index), "the GPU cannot be used");
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the free memory of the GPU cannot be read");
  return free;
}

CudaMemory::CudaMemory(uint64_t bytes, const char* what) : bytes_(bytes) {
  if (const cudaError_t error = cudaMalloc(reinterpret_cast<void**>(&data_), bytes); error != cudaSuccess) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail(Code::kResource, "{} bytes of GPU memory for {} cannot be had: {} of {} are free ({})", bytes, what, free,
         total, cudaGetErrorString(error));
  }
  check(cudaMemset(data_, 0, bytes), "GPU memory cannot be cleared");
  check(cudaDeviceSynchronize(), "GPU memory cannot be cleared");
}
CudaMemory::~CudaMemory() {
  if (data_ != nullptr) cudaFree(data_);
}
CudaMemory::CudaMemory(CudaMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
CudaMemory& CudaMemory::operator=(CudaMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PinnedMemory::PinnedMemory(uint64_t bytes) : bytes_(bytes) {
  check(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes), "pinned memory cannot be had");
}
PinnedMemory::~PinnedMemory() { cudaFreeHost(data_); }

Pin::Pin(void* data, uint64_t bytes) : data_(data) { check(cudaHostRegister(data, bytes, cudaHostRegisterDefault), "memory cannot be pinned"); }
Pin::~Pin() {
  if (data_ != nullptr) cudaHostUnregister(data_);
}

CudaStream::CudaStream(const CudaDeviceInfo& device) {
  check(cudaSetDevice(device.index), "the GPU cannot be used");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream cannot be made");
}
CudaStream::~CudaStream() { cudaStreamDestroy(stream_); }

void CudaStream::to_device(void* device, const void* host, uint64_t bytes) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "a copy to the GPU failed");
}
void CudaStream::to_host(void* host, const void* device, uint64_t bytes) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "a copy from the GPU failed");
}
void CudaStream::zero(void* device, uint64_t bytes) {
  check(cudaMemsetAsync(device, 0, bytes, stream_), "GPU memory cannot be cleared");
}
bool CudaStream::idle() const {
  const cudaError_t error = cudaStreamQuery(stream_);
  if (error == cudaErrorNotReady) return false;
  check(error, "the GPU failed");
  return true;
}
void CudaStream::wait() { check(cudaStreamSynchronize(stream_), "the GPU failed"); }

}  // namespace stet
