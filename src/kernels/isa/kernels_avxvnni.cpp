#define STET_ISA avxvnni
#define STET_VNNI 1
#include "base/simd/simd_256.h"
#include "base/simd/dot_vnni.h"
#include "kernels/isa/table_cpu.h"

namespace stet {

Kernels kernels_avxvnni() { return STET_ISA::table(Isa::avxvnni); }

}  // namespace stet
