// Cosines and sines of rotary embeddings, computed once on the host in double and rounded once, as every backend reads them.
#pragma once

#include <cstdint>

#include "device/memory.h"
#include "models/model_desc.h"

namespace stet {

// Row p: rope_dim cosines (pair i at 2i and 2i + 1), then rope_dim signed sines (RopeRow). Rows appear as the context grows; their
// addresses never change.
class RopeTable {
 public:
  RopeTable(const RopeSpec& spec, uint32_t positions);

  uint32_t dim() const { return static_cast<uint32_t>(spec_.frequency.size()) * 2; }
  const float* data() const { return reinterpret_cast<const float*>(rows_.data()); }
  uint64_t row_bytes() const { return row_floats() * sizeof(float); }
  // Rows 0 .. positions - 1 are there afterwards.
  void ensure(uint32_t positions);
  // XXH3-64 of rows 0 .. positions - 1.
  uint64_t hash(uint32_t positions);

 private:
  size_t row_floats() const { return spec_.frequency.size() * 4; }

  RopeSpec spec_;
  Reservation rows_;
  uint32_t ready_ = 0;
};

}  // namespace stet
