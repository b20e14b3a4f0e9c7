#include "kernels/hyper/hyper_cuda.cuh"
#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

// An element of all streams a thread.
template <uint32_t kMost>
struct Post {
  const float *site, *streams, *gates;
  float* out;
  uint32_t m, hidden, gates_width;
  bool rounded;
  __device__ void operator()(const CudaStep&, uint32_t row, uint32_t i) const {
    const size_t of_row = size_t{row} * m * hidden;
    hyper_posted<kMost>(m, __ldcg(site + size_t{row} * hidden + i), streams + of_row, hidden, gates + size_t{row} * gates_width, i,
                        rounded, out + of_row);
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_hyper_post(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const uint32_t m = std::get<HyperSpec>(op.spec).streams;
  const auto launch = [&]<uint32_t kMost>() {
    cuda::launch_elements(on, step, op, op.in_width,
                          cuda::Post<kMost>{op.in, op.in2, op.in3, op.out, m, op.in_width, op.in3_width, op.rounded});
  };
  m <= 4 ? launch.operator()<4>() : launch.operator()<kMaxStreams>();
}

}  // namespace stet
