// The payload that the board LocalMaxxing takes, built from a packet that was verified, and what the packet does not
// prove of it.
#pragma once

#include <string>
#include <vector>

#include "lab/packet/packet.h"
#include "base/strict_json.h"

namespace stet {

// What a packet cannot know: where its weights can be fetched, and how people call the row.
struct SubmitterWords {
  std::string arm;       // empty: the only candidate, or the only arm
  std::string hf_id;     // "owner/name"
  std::string revision;  // of that repository: 40 hex digits
  std::string label;     // empty: the plan's
};

struct Submission {
  std::string arm, label;
  std::vector<std::string> refused;  // each begins with what it is about and a colon; empty: everything is proved
  Json payload;                      // null where anything is refused
};

// packet: verified, so that its results are what its events give. manifest_sha256: of its MANIFEST. Throws
// Error(kUsage) for a packet of another kind than "bench", and for an arm that is not there or has to be named.
Submission build_submission(const Packet& packet, const std::string& manifest_sha256, const SubmitterWords& words);

// The queue that the board's own helper reads: a list of {label, payload}.
std::string queue_text(const Submission& submission);

}  // namespace stet
