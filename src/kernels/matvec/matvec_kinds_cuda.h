// The kernels that launch_product (matvec_cuda.h) chooses from. Same bits.
#pragma once

#include "kernels/matvec/matvec_cuda.h"

namespace stet {

// For one row, made from its source by the product itself.
void launch_row_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);

// For up to kFewProductRows prepared rows and integer weights, where the rows fit into shared memory; false: launched nothing.
constexpr uint32_t kFewProductRows = 8;
bool launch_few_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);

// For up to 16 rows of x; more are groups that read the weights once each.
void launch_integer_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);
void launch_float_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);

// For 17 to kWideProductRows rows of x, on devices that have_wide_products.
constexpr uint32_t kNarrowProductRows = 16, kWideProductRows = 128;
bool have_wide_products();
void launch_wide_integer_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);
void launch_wide_float_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);

}  // namespace stet
