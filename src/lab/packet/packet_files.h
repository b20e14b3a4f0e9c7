// Between the writer and the reader of a packet.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/packet/packet.h"
#include "lab/record/event_lines.h"

namespace stet {

// identity.json: {"client": ..., "starts": [{"arm", "start", "fresh", "identity"}]}, the starts as the events have
// them.
std::string identity_file_text(std::string_view client_json, std::span<const StartRecord> starts);

// The events, and the plan's hash that they name.
Packet packet_of_events(EventLog log);

}  // namespace stet
