// Where a value lies in a picture, and which values are named beside it.
#pragma once

#include <string>
#include <vector>

namespace stet {

class Axis {
 public:
  // Covers low .. high with round ends, about `ticks` named values; from pixel `from` to pixel `to` (which may be
  // less). low and high in any order, and equal ones are spread. Both finite.
  Axis(double low, double high, double from, double to, int ticks = 5);

  double at(double value) const;  // pixel; values outside lie outside
  const std::vector<double>& ticks() const { return ticks_; }
  std::string label(double tick) const;  // as many decimals as the ticks need
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_, high_, from_, to_;
  int decimals_ = 0;
  std::vector<double> ticks_;
};

}  // namespace stet
