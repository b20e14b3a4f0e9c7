#include "server/loop/ticket.h"

#include "base/error.h"

namespace stet {

Ticket::Ticket(std::shared_ptr<Job> job, Clock::duration keep_alive)
    : job_(std::move(job)), keep_alive_(keep_alive), deadline_(job_->deadline()), heard_(Clock::now()) {}

std::string_view Ticket::unwanted(Clock::time_point now) const {
  if (!job_->wanted()) return "disconnected";
  if (deadline_ && now >= *deadline_) return "deadline";
  return "";
}

void Ticket::move(JobStage to) {
  state_.move(to);
  shown_.store(to);
}

void Ticket::say_progress(uint32_t done, uint32_t total) {
  progress_ = {done, total};
  heard_ = Clock::now();
  job_->progress(state_.stage(), done, total);
}

Request Ticket::prepare(Engine& engine) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  Request request = job_->prepare(engine);
  move(JobStage::prefill);
  say_progress(0, static_cast<uint32_t>(request.prompt.size()));
  return request;
}

void Ticket::prefill(uint32_t done, uint32_t total) {
  const std::lock_guard lock(mutex_);
  STET_CHECK(state_.stage() == JobStage::prefill);
  if (broken_) std::rethrow_exception(broken_);
  if (progress_ != std::pair(done, total)) say_progress(done, total);
}

void Ticket::cycle(const CycleEvent& cycle) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  if (state_.stage() != JobStage::decode) move(JobStage::decode);
  job_->cycle(cycle);
}

template <typename Tell>
void Ticket::end(JobStage stage, Tell tell) noexcept {
  const std::lock_guard lock(mutex_);
  if (state_.ended()) return;
  state_.move(stage);
  shown_.store(stage);
  try {
    tell();
  } catch (...) {  // NOLINT: the job is over either way
  }
}

void Ticket::done(const Generation& answer) noexcept {
  end(JobStage::done, [&] { job_->done(answer); });
}

void Ticket::cancelled(std::string_view why, const Generation& so_far) noexcept {
  end(JobStage::cancelled, [&] { job_->cancelled(why, so_far); });
}

void Ticket::failed(const std::exception& error) noexcept {
  end(JobStage::failed, [&] { job_->failed(error); });
}

void Ticket::wait_on(uint32_t before, uint32_t total) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || broken_ || state_.stage() != JobStage::queued) return;
  if (progress_ && progress_->first == before && !silent_for_long()) return;
  try {
    say_progress(before, total);
  } catch (...) {
    broken_ = std::current_exception();
  }
}

void Ticket::stay_alive() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || broken_ || state_.stage() != JobStage::prefill || !silent_for_long()) return;
  try {
    say_progress(progress_->first, progress_->second);
  } catch (...) {
    broken_ = std::current_exception();
  }
}

}  // namespace stet
