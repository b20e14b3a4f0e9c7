// The host's clock, for profiles.
#pragma once

#include <chrono>

namespace stet {

using ProfileClock = std::chrono::steady_clock;

inline double seconds_between(ProfileClock::time_point a, ProfileClock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace stet
