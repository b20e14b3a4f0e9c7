// The choice of entries on a device: bits as entries.h.
#pragma once

#include "base/cuda/launch.h"
#include "kernels/entries/entries.h"

namespace stet {

struct CudaChoose {
  ChooseSpec spec;                // addresses of the device
  const float* q = nullptr;       // [row][heads][width of a key]
  const float* weight = nullptr;  // [row][heads]
  float* chosen = nullptr;        // [row][top]
  uint32_t rows = 0;              // at most
  bool head = false;              // works on head_rows of the step
  uint32_t context = 0;           // positions at most
  uint32_t* scores = nullptr;     // choose_entries_scratch() bytes
};

// Bytes for the scores of `rows` rows, or of some of them at a time, where all would be too many.
uint64_t choose_entries_scratch(const ChooseSpec& spec, uint32_t rows, uint32_t context);

// Throws Error(kUnsupported) for a shape that the kernels cannot take.
void launch_choose(const CudaLaunch& on, const CudaStep* step, const CudaChoose& c);

}  // namespace stet
