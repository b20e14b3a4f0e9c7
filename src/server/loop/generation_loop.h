// One model, one active generation: the only thread that touches the engine, and the queue in front of it.
//
// A request goes through QUEUED -> PREFILL -> DECODE -> DONE, or from any of the first three to CANCELLED or FAILED. Each that gets its
// turn has an epoch (64 bits, from 1), and what a job hears after its end, or of another epoch, is an internal error. Between two
// requests the session is at a boundary: nothing of one can reach the next.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stet/engine.h"

namespace stet {

enum class JobStage : uint8_t { queued, prefill, decode, done, cancelled, failed };
std::string_view stage_name(JobStage stage);

// What wants an answer. All functions but wanted() are called on a thread of the loop (the one that generates; while it is busy, a
// second one that watches the queue), never two at once for one job, in the order of the stages; they must not block. The last call
// is one of done, cancelled and failed.
class Job {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Job() = default;
  // The request, asked for once, when its turn comes. Error means FAILED.
  virtual Request prepare(Engine& engine) = 0;
  virtual std::optional<Clock::time_point> deadline() const { return std::nullopt; }
  // False: nobody waits for the answer any more. Asked between cycles and passes; any thread.
  virtual bool wanted() const = 0;
  // Where it stands: position in the queue (done = requests before it), or prompt tokens done of total. Also called about every 5
  // seconds while nothing changes, so that a stream can be kept alive. Stages: queued, prefill.
  virtual void progress(JobStage stage, uint32_t done, uint32_t total) = 0;
  virtual void cycle(const CycleEvent& cycle) = 0;
  // Exactly one of these ends it. `why` of cancelled: "disconnected", "deadline", "stopping".
  virtual void done(const Generation& answer) = 0;
  virtual void cancelled(std::string_view why, const Generation& so_far) = 0;
  virtual void failed(const std::exception& error) = 0;
};

struct LoopOptions {
  Options engine;
  uint32_t queue_limit = 16;  // requests waiting behind the active one
  std::chrono::milliseconds keep_alive{5000};  // Job::progress is called at least so often
  uint64_t first_epoch = 1;                    // epochs count up from here; after the last one comes 1
  // Told once, on the loop's thread, when loading has ended; null: the engine is ready. The loop takes no jobs after an error.
  std::function<void(std::exception_ptr error)> on_loaded = nullptr;
};

struct LoadStatus {
  bool ready = false, failed = false;
  std::string phase, error;
  uint64_t done = 0, total = 0;
};

// What is going on, copied out under a lock.
struct LoopStatus {
  LoadStatus load;
  bool stopping = false;
  uint64_t epoch = 0;  // of the active or last request
  std::optional<JobStage> active;
  uint32_t active_prompt_tokens = 0, active_output_tokens = 0;
  double active_seconds = 0;
  uint32_t waiting = 0, queue_limit = 0;
  uint32_t cached_tokens = 0, context = 0;  // of the session's KV cache
  uint64_t finished = 0, cancelled = 0, failed = 0, refused = 0;
  uint64_t prompt_tokens = 0, cached_prompt_tokens = 0, output_tokens = 0, cycles = 0, proposed = 0, accepted = 0;
  std::optional<Generation> last;  // without its text and ids: rates, cycles
};

class GenerationLoop {
 public:
  // Starts the thread, which loads the engine first.
  explicit GenerationLoop(LoopOptions options);
  ~GenerationLoop();  // stop(false)
  GenerationLoop(const GenerationLoop&) = delete;
  GenerationLoop& operator=(const GenerationLoop&) = delete;

  enum class Submit : uint8_t { accepted, full, loading, stopping };
  Submit submit(std::shared_ptr<Job> job);

  LoopStatus status() const;
  // The engine once it is loaded, for functions that are const and safe beside a generation (tokenize, detokenize, info); else null.
  const Engine* engine() const;

  // Takes no new requests from here on, and returns at once: stop() waits for those that it has.
  void close();
  // close(), and the end of those that it has. finish: those in the queue and the active one are answered; else they are cancelled within one cycle.
  // Loading is given up either way. Returns when the threads have ended; a second call, from another thread, may turn the first
  // one's true into false.
  void stop(bool finish);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stet
