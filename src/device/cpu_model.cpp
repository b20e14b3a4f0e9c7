#include "device/cpu_model.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace stet {
namespace {

// 48 characters in the registers of three leaves, padded with spaces or zeros.
std::string brand() {
  uint32_t words[12] = {};
  for (uint32_t i = 0; i < 3; ++i)
    if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3])) return "x86-64";
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string name(text);
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name;
}

}  // namespace

std::string cpu_model() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(1, &a, &b, &c, &d);
  // The extended fields count where the maker's manual says so: families of 15, and models of families 6 and 15.
  const uint32_t base = a >> 8 & 15, family = base == 15 ? base + (a >> 20 & 255) : base;
  const uint32_t model = (a >> 4 & 15) | (base == 6 || base == 15 ? (a >> 16 & 15) << 4 : 0);
  return fmt::format("{} family {} model {} stepping {}", brand(), family, model, a & 15);
}

}  // namespace stet
