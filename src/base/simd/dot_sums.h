// What dot products of either kind add up in. Included by dot_vnni.h and dot_avx2.h.
#pragma once

namespace stet::STET_ISA {

// Of kRows rows of x with kVectors vectors of rows of weights; they start at zero.
template <int kRows, int kVectors>
struct DotSums {
  I sum[kRows][kVectors];

  DotSums() {
    STET_UNROLL
    for (auto& row : sum)
      STET_UNROLL
      for (I& s : row) s = izero();
  }
};

}  // namespace stet::STET_ISA
