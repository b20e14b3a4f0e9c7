// Where on the device what lists name on the host lies.
#pragma once

#include <map>
#include <vector>

#include "replay/cuda_interpreter.h"

namespace stet {

class Twins {
 public:
  // Plans the twins of everything that the lists name and `plan.shared` has not, then allocates and sends the weights. Memory of the host
  // that is only reserved (cache, rotations) is not read.
  Twins(const CudaPlan& plan, CudaStream& stream);

  // The twin of an address inside a range that a list names; null of null.
  template <typename T>
  T* of(const T* host) const {
    return const_cast<T*>(reinterpret_cast<const T*>(find(host)));
  }
  uint64_t bytes() const { return memory_.bytes(); }

 private:
  struct Range {
    const uint8_t* host;
    uint64_t bytes, offset;
    bool sent;  // its content is sent now
  };
  void add(const void* host, uint64_t bytes, bool sent);
  void add_buffers(const std::vector<const CommandList*>& lists);
  void allocate(const CudaDeviceInfo& device);
  void send(const CudaPlan& plan, CudaStream& stream) const;
  const Range* range_of(const uint8_t* host) const;
  const uint8_t* find(const void* host) const;

  const Twins* shared_;                     // asked first; may be null
  std::map<const uint8_t*, Range> ranges_;  // by first host byte
  uint64_t total_ = 0;
  CudaMemory memory_;
};

}  // namespace stet
