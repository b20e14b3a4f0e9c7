// The table of one instruction set. A file of this folder defines STET_ISA, includes the vector vocabulary, then this.
#pragma once

#include "kernels/each_cpu.h"  // generated: <folder>/<folder>_cpu.h of every kernel
#include "kernels/kernels.h"
#include "kernels/sample/sample_cpu.h"

namespace stet::STET_ISA {

static Kernels table(Isa isa) {
  return {isa,
#define KERNEL(folder, name, Fn) name,
#include "kernels/kernels.def"
#undef KERNEL
          sample_table()};
}

}  // namespace stet::STET_ISA
