// Everything that can be checked of a packet without its model.
#pragma once

#include <string>
#include <vector>

#include "lab/packet/packet.h"
#include "lab/packet/signature.h"

namespace stet {

struct VerifyReport {
  Packet packet;
  uint64_t frames = 0, tokens = 0;  // of all answers
  uint64_t values = 0;              // figures and verdicts of results.json that were computed again
  std::string kind, verdict;        // verdict: "" where its kind has none
  std::string mismatch;             // the first value that the events do not give, both values; empty: none
  std::vector<SignatureCheck> signatures;
};

// Reads the packet (read_packet), computes its results again and compares them byte by byte. Throws what read_packet
// throws, and Error(kUnsupported) for results of other rules than this program's.
VerifyReport verify_packet(const std::string& path, const std::string& signers = "");

// "results/arms/0/verdict is "valid", and the events give "invalid"": where two JSON texts differ first; empty:
// nowhere.
std::string first_json_difference(const std::string& stored, const std::string& computed);

}  // namespace stet
