// What the parts of the qualification share.
#pragma once

#include <span>
#include <string>

#include "replay/qualify.h"

namespace stet::detail {

struct Qualifier {
  const Kernels& kernels;    // under test
  const Kernels& reference;  // scalar
  const QualifyScope& scope;
  uint64_t rows = 0;         // compared so far

  void matvecs();
  void row_ops();
  void attention();
  void sampling();

  // Compares n floats, all NaN being one; `where` is called only to name a difference.
  template <typename Where>
  void same_floats(std::string_view kernel, const float* got, const float* want, size_t n, const Where& where) {
    ++rows;
    const size_t i = first_difference(got, want, n);
    if (i < n) diverged(kernel, where(i), bits(got[i]), bits(want[i]));
  }
  template <typename Where>
  void same_bytes(std::string_view kernel, const uint8_t* got, const uint8_t* want, size_t n, const Where& where) {
    ++rows;
    for (size_t i = 0; i < n; ++i)
      if (got[i] != want[i]) diverged(kernel, where(i), got[i], want[i]);
  }
  template <typename Where>
  void same_words(std::string_view kernel, uint64_t got, uint64_t want, const Where& where) {
    ++rows;
    if (got != want) diverged(kernel, where(), got, want);
  }

 private:
  static size_t first_difference(const float* a, const float* b, size_t n);
  static uint64_t bits(float x);
  [[noreturn]] void diverged(std::string_view kernel, const std::string& where, uint64_t got, uint64_t want) const;
};

constexpr uint32_t kRounds = 2;
// Fixed pseudo-random inputs. Round 0: uniform in (-1, 1), every 61st 32 times as large. Round 1: 1 or -1, so that every int8 code
// is extreme. salt: another sequence.
void fill_sample(std::span<float> x, uint32_t round, uint32_t salt);

}  // namespace stet::detail
