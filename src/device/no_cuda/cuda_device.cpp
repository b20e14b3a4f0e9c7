#include "device/cuda_device.h"

#include "base/error.h"

namespace stet {
namespace {

constexpr const char* kNone = "this build of stet has no CUDA: nvcc was not found when it was configured";
[[noreturn]] void none() { fail(Code::kUnsupported, "{}", kNone); }

}  // namespace

CudaDevices cuda_devices() { return {{}, kNone}; }
CudaDeviceInfo cuda_device() { none(); }
uint64_t cuda_free_bytes(const CudaDeviceInfo&) { none(); }

CudaMemory::CudaMemory(uint64_t, const char*) { none(); }
CudaMemory::~CudaMemory() = default;
CudaMemory::CudaMemory(CudaMemory&&) noexcept = default;
CudaMemory& CudaMemory::operator=(CudaMemory&&) noexcept = default;
PinnedMemory::PinnedMemory(uint64_t) { none(); }
PinnedMemory::~PinnedMemory() = default;
Pin::Pin(void*, uint64_t) { none(); }
Pin::~Pin() = default;
CudaStream::CudaStream(const CudaDeviceInfo&) { none(); }
CudaStream::~CudaStream() = default;
void CudaStream::to_device(void*, const void*, uint64_t) { none(); }
void CudaStream::to_host(void*, const void*, uint64_t) { none(); }
void CudaStream::zero(void*, uint64_t) { none(); }
void CudaStream::wait() { none(); }
bool CudaStream::idle() const { none(); }

}  // namespace stet
