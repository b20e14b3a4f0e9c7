#define STET_ISA avx512
#include "base/simd/simd_512.h"
#include "base/simd/dot_vnni.h"
#include "kernels/isa/table_cpu.h"

namespace stet {

Kernels kernels_avx512() { return STET_ISA::table(Isa::avx512); }

}  // namespace stet
