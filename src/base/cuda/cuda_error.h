// Errors of CUDA code. (nvcc 13 cannot read fmt 9's format strings, so device sources do not include base/error.h.)
#pragma once

#include <cstdint>

namespace stet {

// Throws Error(kResource): what was being done, and what CUDA says.
[[noreturn]] void fail_cuda(int error, const char* text, const char* what);
// The same of a kernel that could not be launched with so many blocks (in x and y), threads and bytes of shared memory.
[[noreturn]] void fail_cuda_launch(int error, const char* text, const char* kernel, uint32_t blocks, uint32_t blocks_y,
                                   uint32_t threads, uint64_t shared);
// Throws Error(kUnsupported): a shape that a kernel cannot take. `what` ends in the unit that `number` counts.
[[noreturn]] void fail_cuda_shape(const char* what, uint32_t number, const char* advice);
// Throws Error(kUnsupported): the same, where no kernel was written for it.
[[noreturn]] void fail_cuda_kernel(const char* what, uint32_t number, const char* advice);
[[noreturn]] void fail_cuda_format(const char* kind, uint32_t format);

}  // namespace stet
