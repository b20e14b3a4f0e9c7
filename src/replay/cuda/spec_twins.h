// The addresses that a command holds beside its buffers: which of them are weights, and what becomes of its spec on the device.
#pragma once

#include <functional>

#include "replay/command.h"

namespace stet {

class Twins;

// Calls f(host, bytes) for everything that the command reads and that never changes. State and rotations are not among it.
void each_weight(const Command& command, const std::function<void(const void* host, uint64_t bytes)>& f);

// The spec with addresses of the device. The matrices of experts keep theirs: launches have tables of them (expert_tables.h).
OpSpec on_device(const OpSpec& spec, const Twins& twins);

}  // namespace stet
