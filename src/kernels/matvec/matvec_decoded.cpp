#include <vector>

#include "kernels/matvec/matvec.h"

namespace stet {

// In a file of its own: what is compiled for one instruction set may hold no code that others could be linked to.
const float* decoded_tile(const PackedMatrix& w, uint32_t tile) {
  thread_local std::vector<float> decoded;
  decoded.resize(size_t{w.cols} * kTileRows);
  const auto element = pack_traits(w.format).element;
  const uint8_t* codes = w.tile(tile);
  for (uint32_t k = 0; k < w.cols; ++k)
    for (uint32_t r = 0; r < kTileRows; ++r) decoded[size_t{k} * kTileRows + r] = element(codes, w.cols, r, k);
  return decoded.data();
}

}  // namespace stet
