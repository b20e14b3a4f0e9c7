// What every start of every arm is asked of a pack, and how a packet says which pack that was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/bench/planned_request.h"
#include "lab/packet/packet.h"
#include "lab/spec_eval/manifest.h"
#include "lab/spec_eval/pack.h"

namespace stet {

// timed: each repetition of the whole pack, every second one backwards, so that a request follows another one each
// time. Behind them, without a part in any speed: a request that its client leaves (cancelled), a request that was
// answered before (after_cancel), and requests with the target's log-probabilities (logprobs).
enum class StepKind : uint8_t { timed, cancelled, after_cancel, logprobs };

struct EvalStep {
  StepKind kind = StepKind::timed;
  size_t request = 0;       // index into the pack
  uint32_t repetition = 0;  // of timed ones
  std::string id;           // "A-07", "A-07#2", "A-07/cancelled": for the record, never sent
};

// In the order in which they are sent; a function of the contract and the sizes of the pack.
std::vector<EvalStep> eval_steps(const SpecEvalContract& contract, const std::vector<PackRequest>& pack);

// The step as it is sent: greedy, nothing out of a cache, and under an id that says nothing.
PlannedRequest planned_step(const EvalStep& step, const PackRequest& request, const std::string& random_id);

inline constexpr uint32_t kCancelAfterTokens = 2;

// Tokens of the longest prompt and answer together, and some for a chat template: what a context must hold.
uint32_t tokens_needed(const SpecEvalContract& contract, double scale);

// 32 hexadecimal digits that nobody chose.
std::string draw_request_id();
bool is_request_id(std::string_view id);

// A pack whose prompts have been made.
struct RevealedPack {
  std::string name;
  uint64_t seed = 0;
  bool drawn = false;  // by this program when the pack was revealed; else the operator gave the seed
  std::string sha256;  // pack_sha256(), as the note has it; of a new pack: empty
  std::vector<PackRequest> requests;
};

inline constexpr std::string_view kPackNote = "pack";
// The body of the note: sizes and hashes; the prompts stand in the requests.
std::string pack_note(const RevealedPack& pack);
// The packs of a packet, in the order in which they were revealed, with the prompts that were sent. Throws
// Error(kInput) for a note that is not understood; a prompt that was never sent, or is not the one of the note, stays
// empty.
std::vector<RevealedPack> revealed_packs(const Packet& packet);

// "code", or "long" for a long one of any source.
std::string class_of(const PackRequest& request);

}  // namespace stet
