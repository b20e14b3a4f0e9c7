// How a kernel is put on a stream. Plain C++: what includes this needs no CUDA header.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace stet {

struct CudaLaunch {
  CUstream_st* stream = nullptr;
  bool pdl = false;  // programmatic dependent launch: the kernel starts before its predecessor ends (sm_90 and up)
  uint32_t processors = 0;  // streaming multiprocessors of the device
};

// What a step is about, in device memory. Every kernel of a list reads it; nothing of it is in a launch's arguments. Whoever writes it has
// ended before the first kernel of a list begins (that one is no dependent launch): kernels may read it before they wait.
struct CudaStep {
  uint32_t rows, position, head_first, head_rows;
  int32_t tokens[128];
};

}  // namespace stet
