// Constants of the one exp polynomial (docs/numerics.md section 5), shared by every backend.
#pragma once

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

}  // namespace stet
