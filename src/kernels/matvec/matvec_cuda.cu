#include "base/cuda/device.cuh"
#include "formats/each_cuda.cuh"  // generated: <id>/<id>_cuda.cuh of every format
#include "kernels/matvec/matvec_cuda.h"
#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/plane_products_cuda.h"

namespace stet {
namespace {

// The largest of the wide kernels asks for all that sm_90 has. The device is one for the whole process.
bool device_is_wide() {
  int device = 0, clusters = 0, shared = 0;
  cuda::check(cudaGetDevice(&device), "the device");
  cuda::check(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device), "clusters of the device");
  cuda::check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
              "shared memory of the device");
  return clusters != 0 && shared >= static_cast<int>(cuda::kMostShared);
}

// Whether the rows of x are those of a wide list.
bool is_wide(const CudaProduct& p) { return p.rows > kNarrowProductRows && p.rows <= kWideProductRows; }

}  // namespace

bool have_wide_products() {
  static const bool have = device_is_wide();
  return have;
}

bool has_cuda_weights(Format format) {
  switch (format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::kBlockWeights<Format::id> || cuda::kFloatWeights<Format::id>;
#include "formats/formats.def"
#undef FORMAT
  }
  return false;
}

void launch_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product) {
  if (has_plane_products(product.format)) return launch_plane_product(on, step, product);
  if (product.x == nullptr) return launch_row_product(on, step, product);
  if (launch_few_product(on, step, product)) return;
  const bool integer = traits(product.format).integer_block;
  if (is_wide(product) && have_wide_products())
    return integer ? launch_wide_integer_product(on, step, product) : launch_wide_float_product(on, step, product);
  integer ? launch_integer_product(on, step, product) : launch_float_product(on, step, product);
}

}  // namespace stet
