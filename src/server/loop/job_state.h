// The stages of a request and its epoch: what may follow what.
#pragma once

#include <cstdint>

#include "server/loop/generation_loop.h"

namespace stet {

// QUEUED -> PREFILL -> DECODE -> DONE; from any of the first three to CANCELLED or FAILED. (An answer may be complete
// without a cycle: the prompt left no room.)
bool may_follow(JobStage from, JobStage to);
bool is_end(JobStage stage);

// Where one request stands.
class JobState {
 public:
  JobStage stage() const { return stage_; }
  bool ended() const { return is_end(stage_); }
  // Throws Error(kInternal) for a step that may_follow forbids; staying is none.
  void move(JobStage to);

 private:
  JobStage stage_ = JobStage::queued;
};

// The boundary between requests: at most one epoch is open, and what belongs to another one is refused. 64 bits; after
// the last comes 1, because 0 stands for none.
class Boundary {
 public:
  explicit Boundary(uint64_t first_epoch) : next_(first_epoch == 0 ? 1 : first_epoch) {}
  // Throws Error(kInternal) while an epoch is open.
  uint64_t open();
  // Throws Error(kInternal) unless this epoch is open.
  void require(uint64_t epoch) const;
  void close(uint64_t epoch);

 private:
  uint64_t next_;
  uint64_t open_ = 0;
};

}  // namespace stet
