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
#include <utility>

#include "device/topology.h"

namespace stet {
namespace {

// Round to nearest even, subnormals kept, every exception masked (docs/numerics.md section 1).
constexpr unsigned kDefaultMxcsr = 0x1f80;

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

void set_affinity_of_this_thread(const std::vector<int>& cpus) {
  const int limit = *std::max_element(cpus.begin(), cpus.end()) + 1;
  const size_t bytes = CPU_ALLOC_SIZE(limit);
  cpu_set_t* set = CPU_ALLOC(limit);
  if (set == nullptr) return;
  CPU_ZERO_S(bytes, set);
  for (int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

}  // namespace

void WaitCounter::wait_slowly(uint32_t target, uint32_t spin_us) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(spin_us);
  do {
    for (int i = 0; i < 16; ++i) {
      if (reached(target)) return;
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
  }
  launch_.reset(options.first_count & ~1u);
  if (options.pin) saved_affinity_ = pin_order(allowed_processors());
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
  open_launch();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::worker_main(unsigned index) {
  pthread_setname_np(pthread_self(), ("stet-" + std::to_string(index)).c_str());
  if (!saved_affinity_.empty()) set_affinity_of_this_thread({saved_affinity_[index % saved_affinity_.size()]});
  uint32_t next = (options_.first_count & ~1u) + 1;  // the first launch that this worker has not looked at
  for (;;) {
    launch_.wait(next, options_.launch_spin_us);
    outside_.advance(0u - 1u, 0);
    const uint32_t launch = launch_.value();
    const bool open = (launch & 1) != 0;
    const bool stop = open && stop_;
    if (open && !stop) {
      _mm_setcsr(kDefaultMxcsr);
      run_body(workers_[index]);
    }
    outside_.advance(1, 0);
    if (stop) return;
    next = (launch | 1) + (open ? 2 : 0);
  }
}

void WorkerPool::open_launch() {
  done_.reset(options_.first_count);
  for (unsigned i = 0; i < options_.threads; ++i)
    workers_[i].cursor_.store(uint64_t{options_.first_count} << 32, std::memory_order_relaxed);
  launch_.advance(1, launch_.value() + 1);
}

void WorkerPool::close_launch() {
  launch_.advance(1, launch_.value() + 2);
  if (outside_.value() != 0) outside_.wait(0, options_.phase_spin_us);
}

void WorkerPool::run(Body body, void* context) {
  if (running_.exchange(true, std::memory_order_acquire))
    fail(Code::kInternal, "internal error: a launch was started while another one runs on the same pool");
  const unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(kDefaultMxcsr);
  body_ = body;
  context_ = context;
  if (options_.threads > 1) open_launch();
  run_body(workers_[0]);
  if (options_.threads > 1) close_launch();
  std::exception_ptr failure;
  if (failed_.load(std::memory_order_relaxed)) {
    failure = std::exchange(failure_, nullptr);
    failed_.store(false, std::memory_order_relaxed);
  }
  _mm_setcsr(mxcsr);
  running_.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

void WorkerPool::run_body(Worker& worker) {
  worker.phase_ = worker.done_target_ = options_.first_count;
  try {
    body_(context_, worker);
  } catch (...) {
    record_failure();  // nobody waits for this worker: the others claim what it did not
  }
}

void WorkerPool::record_failure() {
  if (!failed_.exchange(true, std::memory_order_acq_rel)) failure_ = std::current_exception();
}

}  // namespace stet
