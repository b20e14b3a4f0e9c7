// What plain reads of memory reach: the ceiling that a pass over weights is compared with.
#pragma once

#include <array>

#include "device/cuda_device.h"
#include "device/memory.h"

namespace stet {

// GB/s of nine reads of everything, from the slowest to the fastest.
using ReadRates = std::array<double, 9>;
// Where others use the machine too: the mean of the three fastest. Else: the middle one.
inline double fastest_rate(const ReadRates& rates) { return (rates[6] + rates[7] + rates[8]) / 3; }
inline double median_rate(const ReadRates& rates) { return rates[4]; }

// The processor's: sequential reads of memory that is far larger than the caches, one part a thread.
class ReadCeiling {
 public:
  // Reads most_bytes, or a quarter of what is available where that is less. Throws Error(kResource) when it cannot be
  // had.
  explicit ReadCeiling(unsigned threads, uint64_t most_bytes = uint64_t{1} << 30);
  ReadRates measure() const;

 private:
  const unsigned threads_;
  AlignedBuffer buffer_;
};

// The same of a GPU, by its own clock: all of its processors read 4 GiB, or half of what is free where that is less.
// Throws Error(kResource).
ReadRates cuda_read_ceiling(const CudaDeviceInfo& device);

}  // namespace stet
