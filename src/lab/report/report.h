// A packet as one page: HTML without scripts and without outside requests, for people who do not take a number on
// trust.
//
// What the page says comes from the packet's results, which were recomputed from its raw events before; what a packet
// lacks is said
// ("not in this packet"), and never guessed.
#pragma once

#include <string>

#include "lab/packet/packet.h"

namespace stet {

struct ReportOptions {
  std::string request;  // the id of a request to draw chunk by chunk; empty: none
};

// Reads a packet, checks its manifest, and recomputes its results. Throws Error(kInput) that says what does not
// hold, and whatever verify_packet() throws.
Packet read_packet_for_report(const std::string& path);

// The page. Deterministic: the same packet gives the same bytes. Throws Error(kUsage) when there is no such request.
std::string report_html(const Packet& packet, const ReportOptions& options);

}  // namespace stet
