// How the results of a kind of plan are computed: one function a kind, in judges.def. plan.json names its kind.
#pragma once

#include <string>
#include <string_view>

#include "lab/packet/packet.h"

namespace stet {

// Of all judges together: another number whenever one of them computes anything in another way. results.json carries
// it.
inline constexpr int kRulesVersion = 1;

struct Judge {
  std::string_view kind;  // "bench", "compare", "spec-eval"
  // results.json without its envelope: a JSON object, deterministic. Throws Error(kInput) for a plan that it does not
  // understand; a packet without any event has results too.
  std::string (*results)(const Packet& packet);
};

#define JUDGE(kind, function) std::string function(const Packet& packet);
#include "lab/packet/judges.def"
#undef JUDGE

// Throws Error(kUnsupported) naming the kinds there are.
const Judge& judge_of(std::string_view kind);

}  // namespace stet
