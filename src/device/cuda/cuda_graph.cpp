#include "device/cuda_graph.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "base/cuda/cuda_error.h"

namespace stet {
namespace {

void check_graph(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail_cuda(static_cast<int>(error), cudaGetErrorString(error), what);
}

}  // namespace

CudaGraph::CudaGraph(CudaGraph&& other) noexcept : exec_(std::exchange(other.exec_, nullptr)), nodes_(other.nodes_) {}
CudaGraph::~CudaGraph() {
  if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
}

void CudaGraph::capture(const CudaStream& stream, const std::function<void()>& record) {
  check_graph(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "a list cannot be captured");
  cudaGraph_t graph = nullptr;
  try {
    record();
  } catch (...) {
    cudaStreamEndCapture(stream.get(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check_graph(cudaStreamEndCapture(stream.get(), &graph), "a list cannot be captured");
  size_t nodes = 0;
  cudaError_t error = cudaGraphGetNodes(graph, nullptr, &nodes);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&exec_, graph, 0);
  cudaGraphDestroy(graph);
  check_graph(error, "a graph cannot be made");
  nodes_ = nodes;
}

void CudaGraph::launch(const CudaStream& stream) const {
  check_graph(cudaGraphLaunch(exec_, stream.get()), "a graph cannot be launched");
}

}  // namespace stet
