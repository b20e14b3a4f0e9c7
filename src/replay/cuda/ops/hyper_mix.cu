#include "kernels/hyper/hyper_cuda.cuh"
#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

template <uint32_t kMost>
struct Mix {
  const float *streams, *gates;
  float* out;
  uint32_t m, hidden, gates_width;
  bool rounded;
  __device__ void operator()(const CudaStep&, uint32_t row, uint32_t i) const {
    const float y = hyper_mixed<kMost>(m, streams + size_t{row} * m * hidden, hidden, gates + size_t{row} * gates_width, i);
    out[size_t{row} * hidden + i] = rounded_if(rounded, y);
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_hyper_mix(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const uint32_t m = std::get<HyperSpec>(op.spec).streams;
  const auto launch = [&]<uint32_t kMost>() {
    cuda::launch_elements(on, step, op, op.out_width,
                          cuda::Mix<kMost>{op.in, op.in2, op.out, m, op.out_width, op.in2_width, op.rounded});
  };
  m <= 4 ? launch.operator()<4>() : launch.operator()<kMaxStreams>();
}

}  // namespace stet
