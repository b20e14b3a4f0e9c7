// Work of a CUDA stream that is recorded once and launched as one. Plain C++; only in builds with CUDA.
#pragma once

#include <cstdint>
#include <functional>

#include "device/cuda_device.h"

struct CUgraphExec_st;

namespace stet {

class CudaGraph {
 public:
  CudaGraph() = default;
  CudaGraph(CudaGraph&& other) noexcept;
  CudaGraph& operator=(CudaGraph&&) = delete;
  ~CudaGraph();

  // Records what `record` puts on the stream; nothing of it runs. Once an object.
  void capture(const CudaStream& stream, const std::function<void()>& record);
  bool empty() const { return exec_ == nullptr; }
  uint64_t nodes() const { return nodes_; }
  void launch(const CudaStream& stream) const;

 private:
  CUgraphExec_st* exec_ = nullptr;
  uint64_t nodes_ = 0;
};

}  // namespace stet
