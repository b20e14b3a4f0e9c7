// One arm of a packet as a submission sees it.
#pragma once

#include <string>
#include <vector>

#include "lab/packet/bench_plan.h"
#include "lab/packet/packet.h"
#include "base/strict_json.h"

namespace stet {

inline constexpr const char* kPrimaryMetric = "median_tok_s_1_100_after_ttft";
inline constexpr uint32_t kMetricWindow = 100;

struct SubmittedArm {
  const Packet* packet = nullptr;
  BenchPlan plan;
  BenchArm planned;
  Json results;                                // of the whole packet
  Json arm;                                    // its entry in the results
  std::vector<Json> identities;                // of its starts
  std::vector<const RequestRecord*> requests;  // of all its starts
  uint32_t lowest = 0;                         // the start whose median is the headline

  // What every start says of itself; null where one says nothing, "unproven", or another thing.
  Json identity(const std::string& member) const;
  // The same for a text; empty where it is none.
  std::string text(const std::string& member) const;
  // The figures of the lowest start; null: there is none.
  const Json& start_figures() const;
  // Of the lowest start, in the order in which they were asked.
  std::vector<const RequestRecord*> lowest_requests() const;
};

// Throws Error(kUsage), see build_submission().
SubmittedArm submitted_arm(const Packet& packet, const std::string& name);

// What of the board's contract this arm does not prove. Each begins with its name and a colon.
std::vector<std::string> unproved(const SubmittedArm& arm);

// What must not stand in the label, the notes or a flag of a row that is a headline: "history", "n-gram",
// "non-headline" and their spellings. Empty: nothing.
std::string forbidden_marker(std::string_view text);

// The payload of an arm of which nothing is unproved.
Json payload_of(const SubmittedArm& arm, const std::string& manifest_sha256, const std::string& hf_id,
                const std::string& revision);

}  // namespace stet
