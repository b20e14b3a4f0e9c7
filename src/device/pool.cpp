#include "device/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <chrono>
#include <climits>
#include <string>
#include <system_error>

namespace stet {
namespace {

// Round to nearest even, subnormals kept, every exception masked (docs/numerics.md section 1).
constexpr unsigned kDefaultMxcsr = 0x1f80;

// Added to the barrier's counter when a worker leaves a launch early: every barrier of that launch counts as complete.
constexpr uint32_t kAbandon = 1u << 30;

// The futex call directly and not std::atomic::wait: that one spins by itself, and keeps its count of waiters in a
// table that unrelated counters share.
long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

// Signals that a fault of the thread itself raises stay open; all others go to the threads that the program made.
void block_signals(sigset_t* before) {
  sigset_t blocked;
  sigfillset(&blocked);
  for (int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, before);
}

std::vector<int> affinity_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void set_affinity_of_this_thread(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

void WaitCounter::wait_slowly(uint32_t target, uint32_t spin_us) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(spin_us);
  do {
    for (int i = 0; i < 16; ++i) {
      if (reached(target, std::memory_order_acquire)) return;
      _mm_pause();
    }
  } while (Clock::now() < end);
  // Either the one who advances sees this sleeper, or the load below sees the advance: both are sequentially
  // consistent.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t seen = value_.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(seen - target) >= 0) break;
    futex(value_, FUTEX_WAIT_PRIVATE, seen);  // returns at once when the counter moved on
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void WaitCounter::wake() { futex(value_, FUTEX_WAKE_PRIVATE, INT_MAX); }

WorkerPool::WorkerPool(const Options& options) : options_(options) {
  if (options.threads == 0 || options.threads > kMaxThreads)
    fail(Code::kUsage, "{} threads asked for; choose between 1 and {}", options.threads, kMaxThreads);
  workers_ = std::make_unique<Worker[]>(options.threads);
  for (unsigned i = 0; i < options.threads; ++i) {
    workers_[i].pool_ = this;
    workers_[i].index_ = i;
    workers_[i].count_ = options.threads;
    workers_[i].phase_ = workers_[i].barrier_ = options.first_count;
  }
  launched_.reset(options.first_count);
  arrived_.reset(options.first_count);
  finished_.reset(options.first_count);
  finish_target_ = options.first_count;
  if (options.pin) saved_affinity_ = affinity_of_this_thread();
  start_threads();
}

WorkerPool::~WorkerPool() {
  stop_threads();
  if (!saved_affinity_.empty()) set_affinity_of_this_thread(saved_affinity_);
}

void WorkerPool::start_threads() {
  sigset_t before;
  block_signals(&before);
  try {
    for (unsigned i = 1; i < options_.threads; ++i) threads_.emplace_back([this, i] { worker_main(i); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const size_t started = threads_.size() + 1;
    stop_threads();
    fail(Code::kResource, "the system started {} of {} threads ({}); ask for fewer with --threads", started,
         options_.threads, error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!saved_affinity_.empty()) set_affinity_of_this_thread({saved_affinity_[0]});
}

void WorkerPool::stop_threads() {
  stop_ = true;
  launched_.advance(1, launched_.value() + 1);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::worker_main(unsigned index) {
  pthread_setname_np(pthread_self(), ("stet-" + std::to_string(index)).c_str());
  if (!saved_affinity_.empty()) set_affinity_of_this_thread({saved_affinity_[index % saved_affinity_.size()]});
  for (uint32_t launch = options_.first_count + 1;; ++launch) {
    launched_.wait(launch, options_.launch_spin_us);
    if (stop_) return;
    _mm_setcsr(kDefaultMxcsr);
    const uint32_t target = finish_target_;
    run_body(workers_[index]);
    finished_.advance(1, target);
  }
}

void WorkerPool::run(Body body, void* context) {
  if (running_.exchange(true, std::memory_order_acquire))
    fail(Code::kInternal, "internal error: a launch was started while another one runs on the same pool");
  const unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(kDefaultMxcsr);
  body_ = body;
  context_ = context;
  if (options_.threads > 1) {
    finish_target_ += options_.threads - 1;
    launched_.advance(1, launched_.value() + 1);
  }
  run_body(workers_[0]);
  if (options_.threads > 1) finished_.wait(finish_target_, options_.barrier_spin_us);
  std::exception_ptr failure;
  if (failed_.load(std::memory_order_relaxed)) {
    failure = std::move(failure_);
    recover();
  }
  _mm_setcsr(mxcsr);
  running_.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

void WorkerPool::run_body(Worker& worker) {
  try {
    body_(context_, worker);
  } catch (...) {
    // Nobody may wait for a worker that will not come. The failure is recorded first: whoever passes a barrier because
    // of kAbandon sees it, and claims nothing more.
    record_failure();
    if (!abandoned_.exchange(true, std::memory_order_acq_rel)) arrived_.advance(kAbandon, worker.barrier_);
  }
}

void WorkerPool::record_failure() {
  if (!failed_.exchange(true, std::memory_order_acq_rel)) failure_ = std::current_exception();
}

// Makes counters and cursors consistent again after a failure. All other workers wait for the next launch.
void WorkerPool::recover() {
  failure_ = nullptr;
  for (unsigned i = 0; i < options_.threads; ++i) {
    workers_[i].phase_ = 0;
    workers_[i].barrier_ = arrived_.value();
    for (std::atomic<uint32_t>& next : workers_[i].next_) next.store(0, std::memory_order_relaxed);
  }
  abandoned_.store(false, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
}

}  // namespace stet
