// Finds where a step first left the finite numbers, and says so.
#pragma once

#include <cstdint>
#include <span>

#include "state/decoder.h"

namespace stet {

// Runs the step again, command by command, and throws Error(kInput) naming the first command whose output holds NaN or infinity.
[[noreturn]] void report_nonfinite(Decoder& decoder, std::span<const int32_t> timeline, uint32_t cached, uint32_t logit_rows,
                                   uint32_t position);

}  // namespace stet
