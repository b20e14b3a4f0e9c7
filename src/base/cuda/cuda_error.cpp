#include "base/cuda/cuda_error.h"

#include "base/error.h"

namespace stet {

void fail_cuda(int error, const char* text, const char* what) {
  fail(Code::kResource, "{}: CUDA error {} ({})", what, error, text);
}

void fail_cuda_launch(int error, const char* text, const char* kernel, uint32_t blocks, uint32_t blocks_y,
                      uint32_t threads, uint64_t shared) {
  fail(Code::kResource, "the kernel {} could not be launched ({} x {} blocks of {} threads, {} bytes shared): CUDA error {} ({})",
       kernel, blocks, blocks_y, threads, shared, error, text);
}

void fail_cuda_shape(const char* what, uint32_t number, const char* advice) {
  fail(Code::kUnsupported, "{} {} do not fit into the shared memory of this device: {}", number, what, advice);
}

void fail_cuda_kernel(const char* what, uint32_t number, const char* advice) {
  fail(Code::kUnsupported, "there is no CUDA kernel for {} {}: {}", number, what, advice);
}

void fail_cuda_format(const char* kind, uint32_t format) {
  fail(Code::kInternal, "internal error: format {} is no {} format", format, kind);
}

}  // namespace stet
