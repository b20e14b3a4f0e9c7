// F16 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::f16> {
  static constexpr uint32_t kBytes = 2;
  static F decode(const uint8_t* p) { return load_f16(reinterpret_cast<const uint16_t*>(p)); }
};

}  // namespace stet::STET_ISA
