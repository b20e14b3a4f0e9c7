#include "device/pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace stet {
namespace {

using Worker = WorkerPool::Worker;

WorkerPool::Options threads(unsigned n) {
  WorkerPool::Options options;
  options.threads = n;
  return options;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// A launch does not wait for workers that come late; some tests do.
void wait_for_all(const Worker& worker, std::atomic<unsigned>& inside) {
  ++inside;
  while (inside < worker.count()) std::this_thread::yield();
}

struct Phase {
  uint32_t tiles, grain;
};

std::vector<Phase> random_phases(unsigned seed, size_t count, uint32_t max_tiles) {
  std::mt19937 rng(seed);
  const auto below = [&rng](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
  std::vector<Phase> phases(count);
  for (Phase& p : phases) {
    p.tiles = below(4) == 0 ? below(3) : below(max_tiles + 1);
    p.grain = 1 + (below(4) == 0 ? below(2 * max_tiles) : below(9));
  }
  return phases;
}

// Runs the phases in launches of `per_launch` and checks that every tile of phase i ran once and saw all of phase i
// - 1. The marks are plain integers: a missing barrier is a wrong sum here, and a data race under ThreadSanitizer.
void check_phases(WorkerPool& pool, const std::vector<Phase>& phases, size_t per_launch) {
  uint32_t max_tiles = 1;
  for (const Phase& p : phases) max_tiles = std::max(max_tiles, p.tiles);
  std::vector<uint32_t> marks[2] = {std::vector<uint32_t>(max_tiles), std::vector<uint32_t>(max_tiles)};
  std::vector<uint32_t> runs(phases.size() * max_tiles);
  std::atomic<uint64_t> wrong{0};
  for (size_t begin = 0; begin < phases.size(); begin += per_launch) {
    const size_t end = std::min(phases.size(), begin + per_launch);
    const bool together = begin / per_launch % 2 == 0;
    std::atomic<unsigned> inside{0};
    pool.run([&](Worker& worker) {
      if (together) wait_for_all(worker, inside);
      for (size_t i = begin; i < end; ++i) {
        const uint32_t before = i == 0 ? 0 : phases[i - 1].tiles;
        worker.for_tiles(phases[i].tiles, phases[i].grain, [&](uint32_t tile) {
          ++runs[i * max_tiles + tile];
          if (before != 0 && marks[(i + 1) & 1][(tile * 7) % before] != static_cast<uint32_t>(i)) ++wrong;
          marks[i & 1][tile] = static_cast<uint32_t>(i) + 1;
        });
      }
    });
  }
  EXPECT_EQ(wrong, 0u) << "tiles ran before the phase ahead of theirs was done";
  for (size_t i = 0; i < phases.size(); ++i)
    for (uint32_t t = 0; t < max_tiles; ++t)
      ASSERT_EQ(runs[i * max_tiles + t], t < phases[i].tiles ? 1u : 0u)
          << "phase " << i << " tile " << t << " of " << phases[i].tiles << ", grain " << phases[i].grain;
}

TEST(WorkerPool, RunsEveryTileOnceInOrderOfPhases) {
  for (unsigned n : {1u, 2u, 3u, 4u, 9u}) {
    SCOPED_TRACE(n);
    WorkerPool pool(threads(n));
    check_phases(pool, random_phases(n, n > 2 ? 300 : 3000, 40), 17);
  }
}

TEST(WorkerPool, CountersWrap) {
  for (unsigned n : {2u, 3u}) {
    for (uint32_t before_wrap = 0; before_wrap < 9; ++before_wrap) {
      WorkerPool::Options options = threads(n);
      options.first_count = 0u - before_wrap;
      WorkerPool pool(options);
      check_phases(pool, random_phases(before_wrap, 40, 12), 3);
    }
    WorkerPool::Options options = threads(n);
    options.first_count = 0x7fffffffu - 50;  // the sign of a difference must not matter either
    WorkerPool pool(options);
    check_phases(pool, random_phases(77, 200, 12), 3);
  }
}

TEST(WorkerPool, LateWorkersChangeNothing) {
  for (unsigned late = 0; late < 3; ++late) {
    WorkerPool::Options options = threads(3);
    std::mt19937 rngs[3] = {std::mt19937(1), std::mt19937(2), std::mt19937(3)};
    options.test_delay = [&](unsigned worker) {
      const auto draw = rngs[worker]() % 4;
      if (worker == late && draw == 0) std::this_thread::sleep_for(std::chrono::microseconds(150));  // past the spin
      if (draw == 1) std::this_thread::yield();
    };
    WorkerPool pool(options);
    check_phases(pool, random_phases(late, 120, 30), 11);
  }
}

// The worker that comes late finds its share done by the others.
TEST(WorkerPool, SharesOfALateWorkerAreTakenByTheOthers) {
  WorkerPool::Options options = threads(2);
  std::atomic<uint32_t> done{0};
  options.test_delay = [&](unsigned worker) {
    while (worker == 1 && done < 64) std::this_thread::yield();
  };
  WorkerPool pool(options);
  std::vector<unsigned> who(64, 99);
  pool.run([&](Worker& worker) {
    worker.for_tiles(64, 4, [&](uint32_t tile) {
      who[tile] = worker.index();
      ++done;
    });
  });
  for (unsigned w : who) EXPECT_EQ(w, 0u);
}

// A worker that never gets a core holds up neither a phase nor the launch, and comes back to the launch of the day.
TEST(WorkerPool, WorkerWithoutACoreHoldsUpNothing) {
  WorkerPool::Options options = threads(2);
  std::atomic<bool> stuck{true};
  std::atomic<int> stuck_phases{0};
  options.test_delay = [&](unsigned worker) {
    if (worker == 0) return;
    ++stuck_phases;
    while (stuck) sleep_ms(1);
  };
  WorkerPool pool(options);
  std::atomic<uint32_t> sum{0};
  std::atomic<bool> all_phases_done{false};
  pool.run([&](Worker& worker) {
    if (worker.index() == 0)
      while (stuck_phases == 0) std::this_thread::yield();
    for (uint32_t i = 0; i < 1000; ++i) worker.for_tiles(5, 1, [&](uint32_t) { ++sum; });
    if (worker.index() == 0) {
      all_phases_done = true;
      stuck = false;
    } else {
      EXPECT_TRUE(all_phases_done) << "worker 1 was not late";
    }
  });
  EXPECT_EQ(sum, 5000u);
  check_phases(pool, random_phases(3, 200, 20), 4);
}

TEST(WorkerPool, RangesAreAtMostOneGrainLong) {
  for (unsigned n : {1u, 2u}) {
    WorkerPool pool(threads(n));
    std::atomic<uint32_t> sum{0}, longest{0};
    pool.run([&](Worker& worker) {
      worker.for_ranges(103, 8, [&](uint32_t begin, uint32_t end) {
        EXPECT_EQ(begin % 8, 0u);
        sum += end - begin;
        uint32_t seen = longest;
        while (seen < end - begin && !longest.compare_exchange_weak(seen, end - begin)) {
        }
      });
    });
    EXPECT_EQ(sum, 103u);
    EXPECT_EQ(longest, 8u);
  }
}

TEST(WorkerPool, LargestTileCountDoesNotOverflow) {
  WorkerPool pool(threads(2));
  std::atomic<uint64_t> sum{0};
  pool.run([&](Worker& worker) {
    worker.for_ranges(0xffffffffu, 0x10000000u, [&](uint32_t begin, uint32_t end) { sum += end - begin; });
  });
  EXPECT_EQ(sum, 0xffffffffu);
}

TEST(WorkerPool, ExceptionOfATileReachesTheCallerAndThePoolGoesOn) {
  for (unsigned n : {1u, 2u, 4u}) {
    WorkerPool pool(threads(n));
    for (int round = 0; round < 20; ++round) {
      std::vector<int> ran(64);
      std::atomic<int> later{0};
      try {
        pool.run([&](Worker& worker) {
          worker.for_tiles(64, 1, [&](uint32_t tile) {
            if (tile % 20 == 13) throw std::runtime_error("tile " + std::to_string(tile));
            ran[tile] = 1;
          });
          worker.for_tiles(64, 1, [&](uint32_t) { ++later; });
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(std::string(error.what()).substr(0, 5), "tile ");
      }
      for (uint32_t t = 13; t < 64; t += 20) EXPECT_EQ(ran[t], 0) << t;
      EXPECT_EQ(later, 0) << "a phase behind a failed one ran";
      check_phases(pool, random_phases(static_cast<unsigned>(round), 10, 20), 4);
    }
  }
}

// A worker that leaves a launch between its phases must not leave the others at the barrier.
TEST(WorkerPool, ExceptionOutsideAPhaseReachesTheCaller) {
  for (unsigned n : {1u, 2u, 4u}) {
    WorkerPool pool(threads(n));
    for (unsigned thrower = 0; thrower <= n; ++thrower) {  // thrower == n: all of them
      std::atomic<unsigned> inside{0};
      EXPECT_THROW(pool.run([&](Worker& worker) {
        wait_for_all(worker, inside);
        worker.for_tiles(9, 1, [](uint32_t) {});
        if (worker.index() == thrower || thrower == n) fail(Code::kInput, "worker {}", worker.index());
        for (int i = 0; i < 5; ++i) worker.for_tiles(9, 1, [](uint32_t) {});
      }),
                   Error);
      check_phases(pool, random_phases(thrower, 20, 20), 4);
    }
  }
}

TEST(WorkerPool, EveryWorkerHasTheDefaultFloatingPointEnvironment) {
  constexpr unsigned kFlushToZero = 0x8040, kRoundUp = 0x4000;
  WorkerPool pool(threads(3));
  const unsigned before = _mm_getcsr();
  for (int launch = 0; launch < 3; ++launch) {
    _mm_setcsr(0x1f80 | kFlushToZero | kRoundUp);
    std::vector<unsigned> seen(3);
    std::atomic<unsigned> inside{0};
    pool.run([&](Worker& worker) {
      seen[worker.index()] = _mm_getcsr();
      wait_for_all(worker, inside);
      // Spoils it for the next launch, as a library called from a worker might.
      _mm_setcsr(0x1f80 | kFlushToZero);
    });
    EXPECT_EQ(_mm_getcsr(), 0x1f80 | kFlushToZero | kRoundUp) << "the caller's environment was not restored";
    _mm_setcsr(before);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(seen[i], 0x1f80u) << "worker " << i;
  }
}

TEST(WorkerPool, NestedLaunchIsRefused) {
  WorkerPool pool(threads(2));
  EXPECT_THROW(pool.run([&](Worker&) { pool.run([](Worker&) {}); }), Error);
  check_phases(pool, random_phases(1, 20, 20), 4);
}

TEST(WorkerPool, AbsurdThreadCountsAreRefused) {
  EXPECT_THROW(WorkerPool{threads(0)}, Error);
  EXPECT_THROW(WorkerPool{threads(WorkerPool::kMaxThreads + 1)}, Error);
}

TEST(WorkerPool, IdlePoolUsesNoProcessor) {
  WorkerPool pool(threads(4));
  pool.run([](Worker& worker) { worker.for_tiles(100, 1, [](uint32_t) {}); });
  sleep_ms(20);  // past the spin
  const double before = cpu_seconds();
  sleep_ms(300);
  EXPECT_LT(cpu_seconds() - before, 0.004);
}

// Workers that wait inside a launch for a late one stop spinning too.
TEST(WorkerPool, WaitingWorkersSleep) {
  WorkerPool pool(threads(4));
  const double before = cpu_seconds();
  pool.run([](Worker& worker) {
    worker.for_tiles(1, 1, [](uint32_t) { sleep_ms(200); });
    worker.for_tiles(8, 1, [](uint32_t) {});
  });
  EXPECT_LT(cpu_seconds() - before, 0.02);
}

TEST(WorkerPool, PinnedPoolRestoresTheAffinityOfItsMaker) {
  cpu_set_t before, during, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  {
    WorkerPool::Options options = threads(3);
    options.pin = true;
    WorkerPool pool(options);
    ASSERT_EQ(sched_getaffinity(0, sizeof during, &during), 0);
    EXPECT_EQ(CPU_COUNT(&during), 1);
    std::atomic<int> pinned{0};
    std::atomic<unsigned> inside{0};
    pool.run([&](Worker& worker) {
      wait_for_all(worker, inside);
      cpu_set_t mine;
      if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) == 1) ++pinned;
    });
    EXPECT_EQ(pinned, 3);
    check_phases(pool, random_phases(5, 50, 20), 4);
  }
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace stet
