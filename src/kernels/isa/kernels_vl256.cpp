#define STET_ISA vl256
#define STET_VNNI 2
#include "base/simd/simd_256.h"
#include "base/simd/dot_vnni.h"
#include "kernels/isa/table_cpu.h"

namespace stet {

Kernels kernels_vl256() { return STET_ISA::table(Isa::avxvnni); }

}  // namespace stet
