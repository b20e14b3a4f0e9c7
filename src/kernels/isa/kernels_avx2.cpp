#define STET_ISA avx2
#include "base/simd/simd_256.h"
#include "base/simd/dot_avx2.h"
#include "kernels/isa/table_cpu.h"

namespace stet {

Kernels kernels_avx2() { return STET_ISA::table(Isa::avx2); }

}  // namespace stet
