// Worker threads that run one list of commands at a time. A launch wakes the sleeping workers once; inside it all
// workers go through the same sequence of phases, a phase being one command: its tiles are claimed dynamically, and it
// ends when all of them are done. No step waits for a particular worker, only for tiles that somebody has claimed: a
// worker whose core was taken away holds up at most the range that it was computing, and catches up without running
// anything when it is back.
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
  uint32_t value() const { return value_.load(std::memory_order_seq_cst); }

  // What happened before an advance is visible to whoever sees its effect here.
  bool reached(uint32_t target) const {
    return static_cast<int32_t>(value_.load(std::memory_order_acquire) - target) >= 0;
  }
  // Adds n; wakes the sleepers when the sum has reached `target`.
  void advance(uint32_t n, uint32_t target) {
    const uint32_t sum = value_.fetch_add(n, std::memory_order_seq_cst) + n;
    if (static_cast<int32_t>(sum - target) >= 0 && sleepers_.load(std::memory_order_seq_cst) != 0) wake();
  }
  // Returns when the counter has reached `target`. Spins for about spin_us microseconds before it sleeps.
  void wait(uint32_t target, uint32_t spin_us) {
    for (int i = 0; i < kBusyPolls; ++i)
      if (reached(target)) return;
    wait_slowly(target, spin_us);
  }

 private:
  static constexpr int kBusyPolls = 64;  // before the first pause instruction, which costs 40 to 140 cycles

  void wait_slowly(uint32_t target, uint32_t spin_us);
  void wake();

  // One cache line for both: whoever advances the counter owns the line and reads the sleepers for nothing.
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

// The threads. Not copyable, not movable; one launch at a time.
class WorkerPool {
 public:
  struct Options {
    unsigned threads = 1;  // the caller of run() is one of them
    bool pin = false;      // worker i runs on the i-th processor of this thread's affinity mask, whole cores first
    // How long a worker that waits for the others' tiles spins before it sleeps. Longer than the usual imbalance of a
    // command, shorter than a time slice: a worker that lost its core gets it back when the one that waits for it
    // sleeps.
    uint32_t phase_spin_us = 30;
    // How long a worker spins for the next launch. Longer than what the host does between two steps of a decode.
    uint32_t launch_spin_us = 200;
    // For tests: the counters of a launch start here, so that they wrap soon.
    uint32_t first_count = 0;
    // For tests: called by each worker at the start of every phase and before it reports its tiles.
    std::function<void(unsigned worker)> test_delay;
  };

  // One worker's part of a launch. Every worker must go through the same phases with the same arguments. What stands
  // between the phases may run at any time up to the end of the launch, also after later phases of other workers: it
  // must not read what tiles write.
  class alignas(128) Worker {
   public:
    unsigned index() const { return index_; }
    unsigned count() const { return count_; }

    // One phase: calls f(begin, end) so that the ranges cover [0, tiles) exactly once over all workers; a range is at
    // most `grain` tiles long. Returns when all of them are done, and everything they wrote is visible. A worker takes
    // from its own contiguous share first, then from those of the others. When f throws, tiles that were not claimed
    // yet are dropped, here and in later phases of the launch, and run() throws the first exception. REQUIRES: grain >
    // 0.
    template <typename F>
    void for_ranges(uint32_t tiles, uint32_t grain, F&& f) {
      const uint32_t chunks = tiles / grain + (tiles % grain != 0 ? 1u : 0u);
      if (pool_->options_.test_delay) pool_->options_.test_delay(index_);
      if (count_ == 1) {
        for (uint32_t i = 0; i < chunks; ++i) call(f, i * grain, tiles, grain);
        return;
      }
      ++phase_;
      done_target_ += chunks;
      if (pool_->done_.reached(done_target_)) return;  // this worker comes late
      uint32_t mine = 0;
      for (unsigned i = 0; i < count_; ++i) {
        const unsigned owner = index_ + i < count_ ? index_ + i : index_ + i - count_;
        mine += take_share(owner, chunks, tiles, grain, f);
      }
      if (pool_->options_.test_delay) pool_->options_.test_delay(index_);
      if (mine != 0) pool_->done_.advance(mine, done_target_);
      pool_->done_.wait(done_target_, pool_->options_.phase_spin_us);
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

    // Claims what is left of a share; returns the number of chunks. Chunks [ceil(chunks * owner / count),
    // ceil(chunks * (owner + 1) / count)) belong to an owner: a single chunk is worker 0's.
    template <typename F>
    uint32_t take_share(unsigned owner, uint32_t chunks, uint32_t tiles, uint32_t grain, F& f) {
      const uint64_t last = count_ - 1;
      const auto first = static_cast<uint32_t>((uint64_t{chunks} * owner + last) / count_);
      const uint32_t size = static_cast<uint32_t>((uint64_t{chunks} * (owner + 1) + last) / count_) - first;
      uint32_t taken = 0;
      for (uint32_t chunk; size != 0 && claim(pool_->workers_[owner].cursor_, size, chunk); ++taken)
        call(f, (first + chunk) * grain, tiles, grain);
      return taken;
    }

    // Takes the next chunk of a share in this worker's phase. A cursor of an earlier phase stands for the start of the
    // share: whoever is first moves it on, so nobody has to clear it between two phases. One of a later phase: this one
    // is over.
    bool claim(std::atomic<uint64_t>& cursor, uint32_t size, uint32_t& chunk) const {
      uint64_t seen = cursor.load(std::memory_order_relaxed);
      for (;;) {
        const auto ahead = static_cast<int32_t>(static_cast<uint32_t>(seen >> 32) - phase_);
        chunk = ahead < 0 ? 0 : static_cast<uint32_t>(seen);
        if (ahead > 0 || chunk >= size) return false;
        const uint64_t next = uint64_t{phase_} << 32 | (chunk + 1);
        if (cursor.compare_exchange_weak(seen, next, std::memory_order_relaxed)) return true;
      }
    }

    template <typename F>
    void call(F& f, uint32_t begin, uint32_t tiles, uint32_t grain) {
      if (pool_->failed_.load(std::memory_order_relaxed)) return;
      try {
        f(begin, begin + std::min(grain, tiles - begin));
      } catch (...) {
        pool_->record_failure();
      }
    }

    WorkerPool* pool_ = nullptr;
    unsigned index_ = 0;
    unsigned count_ = 1;
    // Both count from first_count in every launch, which has fewer than 2^31 phases; the second may wrap.
    uint32_t phase_ = 0;
    uint32_t done_target_ = 0;  // done_ when this phase is complete
    // Of this worker's share: phase in the upper half, chunks claimed in the lower.
    alignas(128) std::atomic<uint64_t> cursor_{0};
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

  // Calls body(context, worker) on the caller as worker 0 and on every other worker that comes before worker 0 is done,
  // and returns when all of these are done. Every worker runs it with the default floating-point environment (round to
  // nearest, subnormals kept, no traps); the caller's is restored. Throws what a body or a tile threw first. A launch
  // inside a launch, or from a second thread, is an internal error.
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
  void open_launch();
  void close_launch();
  void run_body(Worker& worker);
  void record_failure();

  const Options options_;
  std::unique_ptr<Worker[]> workers_;
  std::vector<std::thread> threads_;
  std::vector<int> saved_affinity_;  // of the thread that made a pinned pool, in pin_order()

  // Counts up when a launch opens (odd: open) and when it closes (even). A worker goes inside, looks whether the launch
  // is open, and leaves; worker 0 closes, then waits until nobody is inside. Both orders are sequentially consistent:
  // either worker 0 sees the worker inside, or the worker sees the launch closed.
  WaitCounter launch_;
  WaitCounter outside_;  // 0, less one for every worker that is inside
  WaitCounter done_;     // chunks done in this launch

  // Written by worker 0 while no launch is open.
  alignas(128) Body body_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;

  alignas(128) std::atomic<bool> failed_{false};  // something threw in this launch
  std::atomic<bool> running_{false};
  std::exception_ptr failure_;
};

}  // namespace stet
