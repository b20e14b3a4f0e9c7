#include "server/loop/job_state.h"

#include "base/error.h"

namespace stet {

std::string_view stage_name(JobStage stage) {
  switch (stage) {
    case JobStage::queued:
      return "queued";
    case JobStage::prefill:
      return "prefill";
    case JobStage::decode:
      return "decode";
    case JobStage::done:
      return "done";
    case JobStage::cancelled:
      return "cancelled";
    case JobStage::failed:
      return "failed";
  }
  return "";
}

bool is_end(JobStage stage) { return stage >= JobStage::done; }

bool may_follow(JobStage from, JobStage to) {
  if (is_end(from)) return false;
  if (to == JobStage::cancelled || to == JobStage::failed) return true;
  switch (from) {
    case JobStage::queued:
      return to == JobStage::prefill;
    case JobStage::prefill:
      return to == JobStage::decode || to == JobStage::done;
    case JobStage::decode:
      return to == JobStage::done;
    default:
      return false;
  }
}

void JobState::move(JobStage to) {
  if (!may_follow(stage_, to))
    fail(Code::kInternal, "internal error: a request went from {} to {}", stage_name(stage_), stage_name(to));
  stage_ = to;
}

uint64_t Boundary::open() {
  STET_CHECK(open_ == 0);
  open_ = next_;
  next_ = next_ == UINT64_MAX ? 1 : next_ + 1;
  return open_;
}

void Boundary::require(uint64_t epoch) const {
  if (epoch == 0 || epoch != open_)
    fail(Code::kInternal, "internal error: something of request epoch {} in epoch {}", epoch, open_);
}

void Boundary::close(uint64_t epoch) {
  require(epoch);
  open_ = 0;
}

}  // namespace stet
