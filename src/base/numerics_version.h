// The version of the numerics contract (docs/numerics.md). It changes with any change of a bit of any result, and with nothing else.
#pragma once

namespace stet {

inline constexpr unsigned kNumericsVersion = 1;

}  // namespace stet
