// The CUDA devices of this machine, and the memory of one of them. Plain C++; without CUDA in the build the same
// functions say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct CUstream_st;

namespace stet {

struct CudaDeviceInfo {
  int index = 0;
  std::string name;
  std::string uuid;         // as nvidia-smi prints it
  uint32_t capability = 0;  // 90: compute capability 9.0
  uint32_t processors = 0;  // streaming multiprocessors
  uint64_t memory_bytes = 0;
  int driver = 0, runtime = 0;  // 13000: CUDA 13.0
  bool dependent_launch() const { return capability >= 90; }
};

struct CudaDevices {
  std::vector<CudaDeviceInfo> devices;  // that stet runs on: capability 8.0 and up
  std::string why_none;                 // for people; empty: there is one
};
CudaDevices cuda_devices();

// The first device. Throws Error(kUnsupported) that says why there is none.
CudaDeviceInfo cuda_device();

// Free memory of a device now, in bytes.
uint64_t cuda_free_bytes(const CudaDeviceInfo& device);

// Device memory that reads as zero at first. Movable; the address stays the same.
class CudaMemory {
 public:
  CudaMemory() = default;
  // Throws Error(kResource) with the numbers when the device has too little; `what` says what it is for.
  CudaMemory(uint64_t bytes, const char* what);
  ~CudaMemory();
  CudaMemory(CudaMemory&& other) noexcept;
  CudaMemory& operator=(CudaMemory&& other) noexcept;

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Memory of the host that a device copies from and to at full speed.
class PinnedMemory {
 public:
  explicit PinnedMemory(uint64_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Memory of the host that is there already, pinned while this lives.
class Pin {
 public:
  Pin(void* data, uint64_t bytes);
  ~Pin();
  Pin(Pin&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Pin& operator=(Pin&&) = delete;

 private:
  void* data_;
};

// A queue of work in order. Every function throws Error(kResource) with what CUDA says; a lost device is noticed at the
// next one.
class CudaStream {
 public:
  explicit CudaStream(const CudaDeviceInfo& device);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  CUstream_st* get() const { return stream_; }
  // The source may be reused when this returns, unless it is pinned.
  void to_device(void* device, const void* host, uint64_t bytes);
  // There when wait() has returned.
  void to_host(void* host, const void* device, uint64_t bytes);
  void zero(void* device, uint64_t bytes);
  void wait();
  bool idle() const;  // everything that was put on it is done

 private:
  CUstream_st* stream_ = nullptr;
};

}  // namespace stet
