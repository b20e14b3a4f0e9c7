// The recorded tokens once more: each of them is what the target gives here, or the first that is not is named.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/packet/packet.h"
#include "stet/engine.h"

namespace stet {

struct RerunRequest {
  enum class Outcome {
    confirmed,
    differs,        // `why` names the position
    not_confirmed,  // `why` says what is missing
  };
  std::string id, arm, step;
  Outcome outcome = Outcome::not_confirmed;
  uint32_t tokens = 0;     // of the answer
  uint32_t confirmed = 0;  // leading ones that are the same here
  bool tokenised_here =
      false;  // the packet has no prompt ids: they were made from the recorded messages with this model's template
  std::string why;
};

struct RerunReport {
  std::vector<RerunRequest> requests;
  uint32_t count(RerunRequest::Outcome outcome) const;
  uint64_t confirmed_tokens() const;
};

// Called before each request, and now and then.
using RerunProgress = std::function<void(size_t done, size_t total)>;

// Feeds prompt and output ids of every request through the engine's target (teacher-forced: no draft plays a part), and
// has each row of logits sampled with the recorded parameters, seed and position. Requests that are the same are run
// once. A request is not confirmed when it has no output ids, no or unknown sampling parameters, noise of another
// program, or was answered with another KV format or other activations than this engine's.
RerunReport rerun(Engine& engine, const Packet& packet, const RerunProgress& progress = nullptr);

// Whether the packet's answers came from this engine's model file: "same", "other", or "unproven" where neither or one
// of them says. what: both hashes.
struct ModelMatch {
  std::string state, what;
};
ModelMatch match_model(const Packet& packet, const std::string& engine_identity);

}  // namespace stet
