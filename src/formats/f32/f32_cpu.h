// F32 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::f32> {
  static constexpr uint32_t kBytes = 4;
  static F decode(const uint8_t* p) { return load(reinterpret_cast<const float*>(p)); }
};

}  // namespace stet::STET_ISA
