// The cycles of an evaluation, one JSON object each, derived from the raw events of its packet.
#pragma once

#include <functional>
#include <string>

#include "lab/packet/packet.h"

namespace stet {

// Each line: request_id, arm, pack, step, cycle, context_length, generated_position, proposed_depth,
// accepted_prefix_length, emitted_tokens, emitted_token_ids, rejection_or_bonus, policy_inputs, draft_and_policy_ms,
// cycle_ms, target_cycles, verifier_width; null for what the packet does not say. Throws Error(kUsage) for a packet of
// another kind.
void write_traces(const Packet& packet, const std::function<void(const std::string& line)>& sink);

}  // namespace stet
