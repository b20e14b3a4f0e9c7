// Constants of the one exp and the one log polynomial (docs/numerics.md section 5), shared by every backend.
#pragma once

#include <cstdint>

namespace stet {

constexpr float kRintMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, ties to even
constexpr float kLog2e = 0x1.715476p+0f;
constexpr float kLn2High = 0x1.62e400p-1f;   // 16 bits: n * kLn2High is exact for |n| < 256
constexpr float kLn2Low = 0x1.7f7d1cp-20f;   // ln 2 - kLn2High
// exp overflows above 88.73 and is below half the least subnormal under -103.98: clamped there, the formula itself gives
// infinity and zero.
constexpr float kExpHigh = 89.0f;
constexpr float kExpLow = -104.0f;
// exp(r) on |r| <= ln(2)/2: Taylor terms 1/7! .. 1, highest first; the next term is below 2^-27 of the result.
constexpr int kExpTerms = 8;
constexpr float kExp[kExpTerms] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
// log(x) = e ln 2 + log(m), x = 2^e m with m in [sqrt(1/2), sqrt(2)): subtracting these bits, those of sqrt(1/2), leaves e above
// the 23 bits of the mantissa.
constexpr int32_t kSqrtHalfBits = 0x3f3504f3;
constexpr float kSqrtHalf = 0x1.6a09e6p-1f;
// log(m) = 2 atanh(z), z = (m - 1) / (m + 1), |z| <= 0.1716: 2z (1 + z^2 (1/3 + z^2 (1/5 + ..))), highest first; the next term,
// z^10 / 11, is below 2^-28 of the result.
constexpr int kLogTerms = 4;
constexpr float kLog[kLogTerms] = {1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3};

}  // namespace stet
