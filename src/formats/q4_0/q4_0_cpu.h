// Q4_0 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

#include "formats/nibble_cpu.h"

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::q4_0> : NibbleWeights<false> {};

}  // namespace stet::STET_ISA
