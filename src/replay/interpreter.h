// Interpreters of lowered lists, and that of the CPU: one pool, one table of kernels, one set of scratch buffers at fixed addresses.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "device/memory.h"
#include "device/pool.h"
#include "kernels/kernels.h"
#include "replay/lowered.h"

namespace stet {

// How a list is run. All give the same bits.
enum class ReplayMode : uint8_t {
  eager,     // unfused, one launch a command
  recorded,  // fused, one launch a stage
  replayed,  // fused, one launch a list
};

// Called after each stage, on the caller's thread, when set: only in eager and recorded mode.
using StageObserver = std::function<void(const Stage& stage, const StepParams& params, uint32_t rows)>;

// When the stages of replayed runs ended, by the clock of the thread that runs them; for profiles. A stage ends for that thread when
// all its tiles are done, so marks are in order, and the time between two of them belongs to the later one.
struct StageMarks {
  struct Mark {
    const LoweredList* list;
    const Stage* stage;  // null: the list begins
    std::chrono::steady_clock::time_point when;
  };
  std::vector<Mark> marks;  // give it room: growing costs time inside a stage
  void add(const LoweredList& list, const Stage* stage) { marks.push_back({&list, stage, std::chrono::steady_clock::now()}); }
};

// Runs lowered lists on a device. Lists, buffers, weights and state are named by their addresses on the host, whatever the device.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  // Runs every stage; may return before they are done. Throws what a kernel check throws.
  virtual void run(const LoweredList& list, const StepParams& params, ReplayMode mode, const StageObserver& observer = nullptr) = 0;
  // The first `rows` rows of a buffer that a run has written are there on the host when this returns.
  virtual void fetch(const Buffer& buffer, uint32_t rows) = 0;
};

class CpuInterpreter : public Interpreter {
 public:
  // Scratch is sized for `lists`.
  CpuInterpreter(const Kernels& kernels, WorkerPool& pool, const std::vector<const CommandList*>& lists);

  void run(const LoweredList& list, const StepParams& params, ReplayMode mode, const StageObserver& observer = nullptr) override;
  void fetch(const Buffer&, uint32_t) override {}

  const Kernels& kernels() const { return kernels_; }
  WorkerPool& pool() const { return pool_; }
  // Replayed runs write down when their stages end; null: no more.
  void set_marks(StageMarks* marks) { marks_ = marks; }

 private:
  struct Scratch {
    AlignedBuffer rows;         // one norm output or one joined row
    AlignedBuffer activations;  // all kinds, of all rows of a narrow pass
    AlignedBuffer tile;         // outputs of one or two tiles
    AlignedBuffer q;            // rotated query heads of one row
  };
  // The input of a stage's products, in each kind that one of them reads; others have no data.
  struct Prepared {
    std::array<Activations, kActKinds> kinds;
    Activations& operator[](ActKind kind) { return kinds[static_cast<size_t>(kind)]; }
    const Activations& operator[](ActKind kind) const { return kinds[static_cast<size_t>(kind)]; }
  };

  void run_stage(const LoweredList& list, const Stage& stage, const StepParams& params, WorkerPool::Worker& worker);
  void run_rows(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker);
  void run_prepare(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker);
  void run_project(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker);
  void run_gated(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker);
  void run_store(const Stage& stage, const StepParams& params, WorkerPool::Worker& worker);
  void run_attend_rows(const Stage& stage, const StepParams& params, WorkerPool::Worker& worker);
  void run_attend_runs(const Stage& stage, const StepParams& params, WorkerPool::Worker& worker);

  Prepared activations(const Stage& stage, uint32_t rows, uint8_t* memory) const;
  void prepare_row(const Stage& stage, const StepParams& params, uint32_t row, const Prepared& out, float* scratch) const;
  Prepared stage_input(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker);
  void project_tile(const Command& command, uint32_t tile, const Prepared& x, float* out) const;

  const Kernels& kernels_;
  WorkerPool& pool_;
  std::vector<Scratch> scratch_;     // one a worker
  AlignedBuffer shared_activations_;  // of wide and eager passes
  AlignedBuffer parts_;              // AttendPart[row][head][kMaxRuns]
  StageMarks* marks_ = nullptr;
};

}  // namespace stet
