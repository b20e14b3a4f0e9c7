#include "kernels/kernels.h"

#include <array>

#include "base/error.h"

namespace stet {

// src/kernels/isa, one file each. vl256 is avxvnni in the encoding that AVX-512 processors have.
Kernels kernels_avx2();
Kernels kernels_avxvnni();
Kernels kernels_vl256();
Kernels kernels_avx512();

namespace {

constexpr std::array<std::string_view, 4> kNames = {"scalar", "avx2", "avxvnni", "avx512"};

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
bool has_vex_vnni() { return has_avx2() && __builtin_cpu_supports("avxvnni"); }
bool has_vl_vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
bool has_avx512() {
  return has_vl_vnni() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq");
}

bool available(Isa isa) {
  switch (isa) {
    case Isa::scalar: return true;
    case Isa::avx2: return has_avx2();
    case Isa::avxvnni: return has_vex_vnni() || has_vl_vnni();
    case Isa::avx512: return has_avx512();
  }
  return false;
}

Kernels make(Isa isa) {
  switch (isa) {
    case Isa::avx2: return kernels_avx2();
    case Isa::avxvnni: return has_vex_vnni() ? kernels_avxvnni() : kernels_vl256();
    case Isa::avx512: return kernels_avx512();
    case Isa::scalar: break;
  }
  return {Isa::scalar,
#define KERNEL(folder, name, Fn) name##_ref,
#include "kernels/kernels.def"
#undef KERNEL
          sample_ref()};
}

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Isa>(i);
  return std::nullopt;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> out;
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512})
    if (available(isa)) out.push_back(isa);
  return out;
}

const Kernels& kernels(Isa isa) {
  if (!available(isa)) {
    std::string have;
    for (Isa i : available_isas()) have += fmt::format("{}{}", have.empty() ? "" : ", ", isa_name(i));
    fail(Code::kUsage, "this processor has no {}; choose one of: {}", isa_name(isa), have);
  }
  static const Kernels scalar = make(Isa::scalar);
  if (isa == Isa::scalar) return scalar;
  static const std::array<Kernels, 3> tables = [] {
    std::array<Kernels, 3> t = {};
    for (Isa i : available_isas())
      if (i != Isa::scalar) t[static_cast<size_t>(i) - 1] = make(i);
    return t;
  }();
  return tables[static_cast<size_t>(isa) - 1];
}

}  // namespace stet
