// The life of a decoder's command lists (docs/design.md):
//
//   COLD -> LOADED -> WARMED -> BUILT -> QUALIFIED -> ARMED
//     ^       any state but COLD, on a failure -> RETIRING -> DRAINED --+
//     +-----------------------------------------------------------------+
//
// Lists run for a caller in ARMED only. A failure ends the life: nothing is repaired in place.
#pragma once

#include <cstdint>
#include <string_view>

namespace stet {

enum class LifeState : uint8_t {
  cold,       // no lists
  loaded,     // lists are recorded over planned buffers and packed weights
  warmed,     // every kernel of every list ran once
  built,      // addresses are frozen: no buffer can be added
  qualified,  // kernels and lists were compared with the reference
  armed,      // lists may run
  retiring,   // no run begins any more
  drained,    // no run is in flight
};

std::string_view life_state_name(LifeState state);  // "COLD", "LOADED", ...

class Life {
 public:
  LifeState state() const { return state_; }
  bool armed() const { return state_ == LifeState::armed; }
  // Whether the lists that are armed were compared, or skipped it.
  bool qualified() const { return qualified_; }

  // To the next state. Throws Error(kInternal) that names both states when that is not where this one leads.
  void advance(LifeState next);
  // BUILT to ARMED without a comparison: only where the caller asked for that by name (Options.qualify).
  void arm_unqualified();
  // From any state through RETIRING and DRAINED to COLD. drain() waits for runs in flight, and is called between the two; it must
  // not throw.
  template <typename Drain>
  void retire(const Drain& drain) noexcept {
    if (state_ == LifeState::cold) return;
    state_ = LifeState::retiring;
    drain();
    state_ = LifeState::drained;
    qualified_ = false;
    state_ = LifeState::cold;
  }
  // Throws Error(kInternal) unless ARMED.
  void require_armed() const;

 private:
  LifeState state_ = LifeState::cold;
  bool qualified_ = false;
};

}  // namespace stet
