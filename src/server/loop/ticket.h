// A job on its way through the loop: what it has heard, and what it may still hear.
//
// Two threads speak to a job, the one that generates and the one that watches the queue. A lock keeps their calls apart
// and the state keeps them in order: what comes too late for a stage is dropped, what the state forbids is an internal
// error.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>

#include "server/loop/job_state.h"

namespace stet {

class Ticket {
 public:
  using Clock = Job::Clock;
  Ticket(std::shared_ptr<Job> job, Clock::duration keep_alive);

  JobStage stage() const { return shown_.load(); }
  // Why nobody needs the answer: "disconnected", "deadline", or empty. Any thread.
  std::string_view unwanted(Clock::time_point now) const;

  // For the thread that generates. What the job throws comes out of these, and out of the generation.
  Request prepare(Engine& engine);
  void prefill(uint32_t done, uint32_t total);
  void cycle(const CycleEvent& cycle);
  // Exactly one ends it. What the job throws here is dropped: there is nobody left to tell.
  void done(const Generation& answer) noexcept;
  void cancelled(std::string_view why, const Generation& so_far) noexcept;
  void failed(const std::exception& error) noexcept;

  // For the thread that watches: they return at once when the job is just hearing something else, or is past this
  // stage.
  void wait_on(uint32_t before, uint32_t total);
  void stay_alive();

 private:
  void move(JobStage to);
  bool silent_for_long() const { return Clock::now() - heard_ >= keep_alive_; }
  void say_progress(uint32_t done, uint32_t total);
  template <typename Tell>
  void end(JobStage stage, Tell tell) noexcept;

  const std::shared_ptr<Job> job_;
  const Clock::duration keep_alive_;
  const std::optional<Clock::time_point> deadline_;
  std::mutex mutex_;  // guards all below
  JobState state_;
  std::atomic<JobStage> shown_ = JobStage::queued;
  Clock::time_point heard_;
  std::optional<std::pair<uint32_t, uint32_t>> progress_;  // last said
  std::exception_ptr broken_;                              // what the job threw at the watching thread
};

}  // namespace stet
