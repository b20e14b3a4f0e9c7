// The kernels of one instruction set, as a table of functions. Every table computes the same bits (docs/numerics.md): the scalar one
// is the reference that the others are compared with. Tests build wrong tables (mutants) from right ones.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "kernels/each_contract.h"  // generated: <folder>/<folder>.h of every kernel
#include "kernels/sample/sample.h"

namespace stet {

enum class Isa : uint8_t { scalar, avx2, avxvnni, avx512 };

struct Kernels {
  Isa isa;
#define KERNEL(folder, name, Fn) Fn name;
#include "kernels/kernels.def"
#undef KERNEL
  SampleKernels sample;
};

std::string_view isa_name(Isa isa);
std::optional<Isa> isa_from_name(std::string_view name);
// What this processor and operating system can run, slowest first; always begins with scalar.
std::vector<Isa> available_isas();
// Throws Error(kUsage), naming what there is, when the processor lacks it.
const Kernels& kernels(Isa isa);

}  // namespace stet
