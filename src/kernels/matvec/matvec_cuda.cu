#include "kernels/matvec/matvec_cuda.h"

namespace stet {

void launch_integer_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);
void launch_float_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);
void launch_row_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);

void launch_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product) {
  if (product.x == nullptr) return launch_row_product(on, step, product);
  if (traits(product.format).integer_block) return launch_integer_product(on, step, product);
  launch_float_product(on, step, product);
}

}  // namespace stet
