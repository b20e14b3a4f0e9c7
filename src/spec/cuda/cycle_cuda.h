// The kernels of a whole cycle on a CUDA device (draft, set-up, acceptance) and the memory that they share with the
// host.
#pragma once

#include <cstdint>

#include "kernels/sample/sample_cuda.h"

namespace stet {

// A generation on the device. The host writes it before the first cycle and never reads it.
struct CudaCycle {
  CudaTimeline timeline = {};
  uint32_t end = 0;           // tokens at which the generation ends: prompt and limit, or the context
  uint32_t depth = 0;         // proposals at most
  uint32_t finished = 1;      // nothing more is done, and nothing reported
  uint32_t stops = 0;         // stop tokens that count, of CudaCycleMemory::stop_tokens
  uint32_t request = 0;       // what the host's stop flag names
  uint32_t index = 0;         // of the next record
  uint32_t draft_cached = 0;  // leading tokens that have KV rows in the model draft
  uint32_t draft_held = 0;    // the same inside a cycle, proposals included
  uint64_t begin_ns = 0, verify_ns = 0;
};

enum class CycleState : uint32_t { running, finished, nonfinite };

// What a cycle did, in pinned memory of the host. `number` is written last.
struct CycleRecord {
  uint64_t number;  // request << 32 | index of the cycle
  CycleState state;
  uint32_t proposed, accepted, emitted;
  uint32_t draft_cached;
  int32_t tokens[kCudaSampleRows];
  // The device's clock: when the draft, the verify pass and the acceptance began, and when all was done.
  uint64_t begin_ns, verify_ns, accept_ns, end_ns;
};

constexpr uint32_t kCycleRecords = 8;  // of a ring; more than cycles in flight

// The part of pinned memory that both sides see.
struct CycleMailbox {
  CycleRecord records[kCycleRecords];
  uint32_t stop_request;  // written by the host: the cycles of this request end
};

// Addresses of what cycles work on.
struct CudaCycleMemory {
  CudaCycle* cycle = nullptr;
  int32_t* tokens = nullptr;  // the timeline; room for the context and kCudaSampleRows more
  const int32_t* stop_tokens = nullptr;
  uint32_t* counts = nullptr;  // CudaSample::counts
  const CudaSampling* sampling = nullptr;
  CycleMailbox* mailbox = nullptr;  // of the host
};

// Begins a cycle: proposes (n-gram: as spec/drafts/ngram.cpp) and sets up the verify pass. rows is 0 there when the
// generation is over.
enum class CudaDraft : uint32_t { none, ngram };
void launch_begin_cycle(const CudaLaunch& on, const CudaCycleMemory& m, CudaStep* step, CudaDraft draft);

// The same with a draft model: sets up its pass over what it has not seen yet (at most kCatchUpRows tokens) ...
constexpr uint32_t kCatchUpRows = 2;
void launch_begin_model_draft(const CudaLaunch& on, const CudaCycleMemory& m, CudaStep* draft_step);
// ... and, behind the sampling of pass s.first, adds the proposal and sets up the next pass, or behind the last one the
// verify pass.
void launch_draft_proposal(const CudaLaunch& on, const CudaCycleMemory& m, CudaStep* draft_step, const CudaSample& s,
                           bool last, CudaStep* step);

// Ends a cycle: accepts what was sampled, as Txn::verify and step() do, and reports it.
void launch_accept(const CudaLaunch& on, const CudaCycleMemory& m, const CudaStep* step, const CudaSample& s);

}  // namespace stet
