#include "models/rope_table.h"

#include "base/dmath.h"
#include "base/error.h"
#include "base/hash.h"

namespace stet {

namespace {

double angle(const RopeSpec& spec, uint32_t position, size_t pair) {
  if (!spec.single) return static_cast<double>(position) * spec.frequency[pair];
  return static_cast<double>(static_cast<float>(position) * static_cast<float>(spec.frequency[pair]));
}

}  // namespace

RopeTable::RopeTable(const RopeSpec& spec, uint32_t positions)
    : spec_(spec), rows_(uint64_t{positions} * spec.frequency.size() * 4 * sizeof(float), Reservation::Pages::kSmall) {}

void RopeTable::ensure(uint32_t positions) {
  if (positions <= ready_) return;
  rows_.commit(positions * row_bytes());
  const size_t pairs = spec_.frequency.size();
  for (; ready_ < positions; ++ready_) {
    float* cosines = reinterpret_cast<float*>(rows_.data()) + ready_ * row_floats();
    float* sines = cosines + 2 * pairs;
    for (size_t i = 0; i < pairs; ++i) {
      const SinCos sc = sincos64(angle(spec_, ready_, i));
      cosines[2 * i] = cosines[2 * i + 1] = static_cast<float>(sc.cos * spec_.factor);
      sines[2 * i + 1] = static_cast<float>(sc.sin * spec_.factor);
      sines[2 * i] = -sines[2 * i + 1];
    }
  }
}

uint64_t RopeTable::hash(uint32_t positions) {
  ensure(positions);
  return xxh3(data(), positions * row_bytes());
}

}  // namespace stet
