// Worker threads that run one list of commands at a time. A launch wakes every worker once; inside it all workers
// execute the same sequence of phases, a phase being one command: its tiles are claimed dynamically, then one barrier
// ends it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"

namespace stet {

// A counter that threads wait on: they spin for a while, then sleep in the kernel. The counter is 32 bits wide and only
// its difference from a target counts, so it may wrap as long as waiters are less than 2^31 behind.
class alignas(128) WaitCounter {
 public:
  void reset(uint32_t value) { value_.store(value, std::memory_order_relaxed); }
  uint32_t value() const { return value_.load(std::memory_order_relaxed); }

  // Adds n; wakes the sleepers when the sum has reached `target`. What happened before is visible to whoever sees the
  // sum.
  void advance(uint32_t n, uint32_t target) {
    const uint32_t sum = value_.fetch_add(n, std::memory_order_seq_cst) + n;
    if (static_cast<int32_t>(sum - target) >= 0 && sleepers_.load(std::memory_order_seq_cst) != 0) wake();
  }
  // Returns when the counter has reached `target`; spins for about spin_us microseconds before it sleeps.
  void wait(uint32_t target, uint32_t spin_us) {
    for (int i = 0; i < kBusyPolls; ++i)
      if (reached(target, std::memory_order_acquire)) return;
    wait_slowly(target, spin_us);
  }

 private:
  static constexpr int kBusyPolls = 64;  // before the first pause instruction, which costs 40 to 140 cycles

  bool reached(uint32_t target, std::memory_order order) const {
    return static_cast<int32_t>(value_.load(order) - target) >= 0;
  }
  void wait_slowly(uint32_t target, uint32_t spin_us);
  void wake();

  // One cache line for both: whoever advances the counter owns the line and reads the sleepers for nothing.
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

// The threads and their barrier. Not copyable, not movable; one launch at a time.
class WorkerPool {
 public:
  struct Options {
    unsigned threads = 1;  // the caller of run() is one of them
    bool pin = false;      // worker i runs on the i-th processor of this thread's affinity mask, whole cores first
    // How long a worker that waits for the others in a launch spins before it sleeps. Longer than the usual imbalance
    // of a command, shorter than a time slice: a worker that lost its core gets it back when the one that waits for it
    // sleeps.
    uint32_t barrier_spin_us = 30;
    // How long a worker spins for the next launch. Longer than what the host does between two steps of a decode.
    uint32_t launch_spin_us = 200;
    // For tests: all counters start here, so that they wrap soon.
    uint32_t first_count = 0;
    // For tests: called by each worker at the start of every phase and before it arrives at the barrier.
    std::function<void(unsigned worker)> test_delay;
  };

  // One worker's part of a launch. Every worker of a launch must call the same phases with the same arguments.
  class alignas(128) Worker {
   public:
    unsigned index() const { return index_; }
    unsigned count() const { return count_; }

    // One phase: calls f(begin, end) so that the ranges cover [0, tiles) exactly once over all workers; a range is at
    // most `grain` tiles long. Returns when all of them are done, and everything they wrote is visible. A worker takes
    // from its own contiguous share first, then from those of the others. When f throws, the rest of that range is
    // dropped, the phase completes, later phases of the launch do nothing, and run() throws the first exception.
    // REQUIRES: grain > 0.
    template <typename F>
    void for_ranges(uint32_t tiles, uint32_t grain, F&& f) {
      if (count_ == 1) {
        for_ranges_alone(tiles, grain, f);
        return;
      }
      begin_phase();
      const uint32_t chunks = tiles / grain + (tiles % grain != 0 ? 1u : 0u);
      if (!pool_->failed_.load(std::memory_order_relaxed)) {
        for (unsigned i = 0; i < count_; ++i) {
          const unsigned owner = index_ + i < count_ ? index_ + i : index_ + i - count_;
          take_share(owner, chunks, tiles, grain, f);
        }
      }
      end_phase();
    }

    // The same, one call f(tile) a tile.
    template <typename F>
    void for_tiles(uint32_t tiles, uint32_t grain, F&& f) {
      for_ranges(tiles, grain, [&f](uint32_t begin, uint32_t end) {
        for (uint32_t t = begin; t < end; ++t) f(t);
      });
    }

   private:
    friend class WorkerPool;

    template <typename F>
    void for_ranges_alone(uint32_t tiles, uint32_t grain, F& f) {
      if (pool_->failed_.load(std::memory_order_relaxed)) return;
      if (pool_->options_.test_delay) pool_->options_.test_delay(index_);
      for (uint32_t begin = 0; begin < tiles;) {
        const uint32_t end = begin + std::min(grain, tiles - begin);
        call(f, begin, end);
        begin = end;
      }
    }

    // Claims the chunks that are left of a share. Chunks [ceil(chunks * owner / count), ceil(chunks * (owner + 1) /
    // count)) belong to an owner: a single chunk goes to worker 0.
    template <typename F>
    void take_share(unsigned owner, uint32_t chunks, uint32_t tiles, uint32_t grain, F& f) {
      const uint64_t last = count_ - 1;
      const uint32_t first = static_cast<uint32_t>((uint64_t{chunks} * owner + last) / count_);
      const uint32_t size = static_cast<uint32_t>((uint64_t{chunks} * (owner + 1) + last) / count_) - first;
      std::atomic<uint32_t>& next = pool_->workers_[owner].next_[phase_ & 1];
      // The load keeps workers that find nothing from taking the line away from those that do.
      while (next.load(std::memory_order_relaxed) < size) {
        const uint32_t chunk = next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= size) return;
        const uint32_t begin = (first + chunk) * grain;
        call(f, begin, begin + std::min(grain, tiles - begin));
      }
    }

    template <typename F>
    void call(F& f, uint32_t begin, uint32_t end) {
      try {
        f(begin, end);
      } catch (...) {
        pool_->record_failure();
      }
    }

    void begin_phase() {
      if (pool_->options_.test_delay) pool_->options_.test_delay(index_);
      // The cursors of the next phase were last used in the phase before this one, which the barrier ended, and will be
      // used behind this phase's barrier: so their owner may clear them now, and one barrier a phase is enough.
      next_[(phase_ + 1) & 1].store(0, std::memory_order_relaxed);
    }
    void end_phase() {
      if (pool_->options_.test_delay) pool_->options_.test_delay(index_);
      ++phase_;
      barrier_ += count_;
      pool_->arrived_.advance(1, barrier_);
      pool_->arrived_.wait(barrier_, pool_->options_.barrier_spin_us);
    }

    WorkerPool* pool_ = nullptr;
    unsigned index_ = 0;
    unsigned count_ = 1;
    uint32_t phase_ = 0;    // 32 bits, only its parity counts: wraps freely
    uint32_t barrier_ = 0;  // arrived_ when the last barrier was complete
    // Chunks claimed of this worker's share, by parity of the phase; at most chunks + count, each.
    alignas(128) std::atomic<uint32_t> next_[2] = {};
  };

  using Body = void (*)(void* context, Worker& worker);

  // Throws Error(kUsage) when threads is 0 or above kMaxThreads, and Error(kResource) when the system has no more
  // threads.
  explicit WorkerPool(const Options& options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  static constexpr unsigned kMaxThreads = 1024;
  unsigned threads() const { return options_.threads; }

  // Calls body(context, worker) on every worker, the caller being worker 0, and returns when all are done. Every worker
  // runs it with the default floating-point environment (round to nearest, subnormals kept, no traps); the caller's is
  // restored. Throws what a body or a phase threw first. A launch inside a launch, or from a second thread, is an
  // internal error.
  void run(Body body, void* context);

  // The same for a callable f(Worker&), which is not copied.
  template <typename F>
  void run(F&& f) {
    auto* callable = &f;
    run([](void* context, Worker& worker) { (*static_cast<decltype(callable)>(context))(worker); },
        const_cast<void*>(static_cast<const volatile void*>(callable)));
  }

 private:
  void start_threads();
  void stop_threads();
  void worker_main(unsigned index);
  void run_body(Worker& worker);
  void record_failure();
  void recover();

  const Options options_;
  std::unique_ptr<Worker[]> workers_;
  std::vector<std::thread> threads_;
  std::vector<int> saved_affinity_;  // of the thread that made a pinned pool

  WaitCounter launched_;  // launches so far
  WaitCounter arrived_;   // arrivals at barriers, of all workers
  WaitCounter finished_;  // bodies ended by workers other than 0

  // Written by worker 0 between launches, read by all.
  alignas(128) Body body_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  uint32_t finish_target_ = 0;

  alignas(128) std::atomic<bool> failed_{false};  // a phase or a body threw in this launch
  std::atomic<bool> abandoned_{false};            // a worker left the launch without its barriers
  std::atomic<bool> running_{false};
  std::exception_ptr failure_;
};

}  // namespace stet
