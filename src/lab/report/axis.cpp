#include "lab/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stet {
namespace {

// 1, 2 or 5 times a power of ten, at least `rough`.
double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10.0 * power;
}

}  // namespace

Axis::Axis(double low, double high, double from, double to, int ticks) : from_(from), to_(to) {
  STET_CHECK(std::isfinite(low) && std::isfinite(high) && ticks > 0);
  if (low > high) std::swap(low, high);
  const double size = std::max(std::abs(low), std::abs(high));
  // Equal, or so near that the ticks between could not be told apart.
  if (!(high - low > size * 1e-9)) {
    const double spread = size > 0 ? size * 0.05 : 1.0;
    low -= low >= 0 ? std::min(spread, low) : spread;
    high += spread;
  }
  const double step = round_step((high - low) / ticks);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  low_ = first * step;
  high_ = last * step;
  decimals_ = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 12);
  for (double i = first; i <= last && ticks_.size() < 64; ++i) ticks_.push_back(i * step);
}

double Axis::at(double value) const { return from_ + (value - low_) / (high_ - low_) * (to_ - from_); }

std::string Axis::label(double tick) const {
  if (std::abs(tick) >= 1e7) return fmt::format("{:g}", tick);
  const std::string text = fmt::format("{:.{}f}", tick, decimals_);
  return text.find_first_of("123456789") == std::string::npos && text.starts_with('-') ? text.substr(1) : text;
}

}  // namespace stet
