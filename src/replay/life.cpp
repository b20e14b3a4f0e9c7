#include "replay/life.h"

#include <array>

#include "base/error.h"

namespace stet {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"COLD",      "LOADED", "WARMED",   "BUILT",
                                                    "QUALIFIED", "ARMED",  "RETIRING", "DRAINED"};

}  // namespace

std::string_view life_state_name(LifeState state) { return kNames[static_cast<size_t>(state)]; }

void Life::advance(LifeState next) {
  // ARMED leads nowhere but to RETIRING, and that is retire()'s business.
  const bool allowed = next <= LifeState::armed && static_cast<int>(next) == static_cast<int>(state_) + 1;
  if (!allowed)
    fail(Code::kInternal, "internal error: command lists cannot go from {} to {}", life_state_name(state_), life_state_name(next));
  state_ = next;
  if (next == LifeState::qualified) qualified_ = true;
}

void Life::arm_unqualified() {
  if (state_ != LifeState::built)
    fail(Code::kInternal, "internal error: command lists that are {} cannot be armed", life_state_name(state_));
  state_ = LifeState::armed;
}

void Life::require_armed() const {
  if (!armed())
    fail(Code::kInternal, "internal error: command lists that are {} were asked to run; only ARMED ones do", life_state_name(state_));
}

}  // namespace stet
