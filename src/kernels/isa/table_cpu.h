// The table of one instruction set. A file of this folder defines STET_ISA, includes the vector vocabulary, then this.
#pragma once

#include "kernels/attend/attend_cpu.h"
#include "kernels/kernels.h"
#include "kernels/matvec/matvec_cpu.h"
#include "kernels/quantize/quantize_cpu.h"
#include "kernels/rmsnorm/rmsnorm_cpu.h"
#include "kernels/sample/sample_cpu.h"
#include "kernels/swiglu/swiglu_cpu.h"

namespace stet::STET_ISA {

static Kernels table(Isa isa) {
  return {isa, matvec, quantize, rmsnorm, swiglu, rope, store_kv, attend, join, sample_table()};
}

}  // namespace stet::STET_ISA
