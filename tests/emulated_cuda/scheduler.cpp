#include "scheduler.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fiber.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace stet::emulated {
namespace {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kFirstAddress = 1024;  // of shared memory: 0 is never a place

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "emulated GPU: %s (block %u,%u,%u thread %u)\n", what, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x);
  abort();
}

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  void run() const { std::memcpy(to, from, bytes); }
};

// Threads that wait for each other; the last to arrive begins the next round.
struct Meeting {
  uint32_t arrived = 0, round = 0;
};

struct LaneMeeting : Meeting {
  std::array<LaneValues, 2> values = {};  // of this round and of the one before, which slow lanes still read
};

struct VotedMeeting : Meeting {
  std::array<bool, 2> vote = {};
};

struct Warp {
  uint32_t alive = 0;
  LaneMeeting all;
  std::map<uint32_t, LaneMeeting> others;  // by mask
  LaneMeeting& of(uint32_t mask) { return mask == 0xffffffffu ? all : others[mask]; }
};

struct BulkCopy {
  uint32_t barrier;
  Copy copy;
};

struct Block {
  uint3 index = {};
  uint32_t alive = 0;
  std::unique_ptr<uint8_t, decltype(&std::free)> shared{nullptr, &std::free};
  std::vector<Warp> warps;
  std::array<VotedMeeting, 16> barriers;
  std::vector<BulkCopy> bulk;
};

struct Cluster {
  std::vector<Block> blocks;
  uint32_t alive = 0;
  Meeting meeting;
};

struct Thread {
  Fiber fiber;
  Cluster* cluster = nullptr;
  Block* block = nullptr;
  uint3 index = {};
  uint32_t cluster_round = 0;             // of the arrival that cluster_wait() waits for
  std::vector<Copy> open;                 // copies of no group yet
  std::vector<std::vector<Copy>> groups;  // in flight, the oldest first
  const std::function<void()>* kernel = nullptr;
  bool ended = false;

  Warp& warp() const { return block->warps[index.x / kLanes]; }
  uint32_t lane() const { return index.x % kLanes; }
};

struct MBarrier {
  uint32_t count : 12, pending : 12, phase : 1;
  int32_t bytes;
};
static_assert(sizeof(MBarrier) == 8);

Thread* running = nullptr;
bool progress = false;

// Waits until condition() holds; what makes it hold is progress of somebody else.
template <typename Condition>
void wait_until(const Condition& condition) {
  while (!condition()) yield();
  progress = true;
}

// Whether the round is over; who finds that all are there ends it.
bool is_over(Meeting& m, uint32_t round, uint32_t wanted) {
  if (m.round == round && m.arrived >= wanted) {
    m.arrived = 0;
    ++m.round;
  }
  return m.round != round;
}

// `wanted` is asked again and again: threads that end are waited for no longer.
template <typename Wanted>
void meet(Meeting& m, const Wanted& wanted) {
  const uint32_t round = m.round;
  ++m.arrived;
  progress = true;
  wait_until([&] { return is_over(m, round, wanted()); });
}

void end_thread(Thread& t) {
  for (const auto& group : t.groups)
    for (const Copy& c : group) c.run();
  for (const Copy& c : t.open) c.run();
  t.warp().alive &= ~(1u << t.lane());
  --t.block->alive;
  --t.cluster->alive;
  if (t.block->alive == 0 && !t.block->bulk.empty()) die("a block ended with a bulk copy on its way");
  t.ended = progress = true;
}

void body_of_thread(void* argument) {
  auto& t = *static_cast<Thread*>(argument);
  (*t.kernel)();
  end_thread(t);
  t.fiber.suspend_last();
}

void resume(Thread& t) {
  running = &t;
  threadIdx = t.index;
  blockIdx = t.block->index;
  t.fiber.resume();
}

// The blocks of a cluster, again and again: stacks and memories are made once for a grid.
class ClusterRun {
 public:
  ClusterRun(uint32_t blocks, uint32_t threads, size_t shared_bytes, const std::function<void()>& kernel)
      : shared_bytes_((shared_bytes + 127) / 128 * 128), threads_(size_t{blocks} * threads) {
    cluster_.blocks.resize(blocks);
    for (Block& b : cluster_.blocks)
      if (shared_bytes_ != 0) b.shared.reset(static_cast<uint8_t*>(std::aligned_alloc(128, shared_bytes_)));
    for (size_t i = 0; i < threads_.size(); ++i) {
      Thread& t = threads_[i];
      t.cluster = &cluster_;
      t.block = &cluster_.blocks[i / threads];
      t.index = {static_cast<uint32_t>(i % threads), 0, 0};
      t.kernel = &kernel;
    }
  }
  void run(uint3 first) {
    begin(first);
    while (cluster_.alive > 0) {
      progress = false;
      for (Thread& t : threads_)
        if (!t.ended) resume(t);
      if (!progress) die("no thread goes on: a barrier is not reached by all, or a copy was not made");
    }
  }

 private:
  void begin(uint3 first) {
    const auto threads = static_cast<uint32_t>(threads_.size() / cluster_.blocks.size());
    cluster_.alive = static_cast<uint32_t>(threads_.size());
    cluster_.meeting = {};
    for (Block& b : cluster_.blocks) {
      b.index = {first.x++, first.y, first.z};
      b.alive = threads;
      b.barriers = {};
      b.warps.assign((threads + kLanes - 1) / kLanes, {});
      for (uint32_t i = 0; i < threads; ++i) b.warps[i / kLanes].alive |= 1u << i % kLanes;
      if (b.shared != nullptr) std::memset(b.shared.get(), kUnwritten, shared_bytes_);
    }
    for (Thread& t : threads_) {
      t.ended = false;
      t.open.clear();
      t.groups.clear();
      t.fiber.start(body_of_thread, &t);
    }
  }

  size_t shared_bytes_;
  Cluster cluster_;
  std::vector<Thread> threads_;
};

const MBarrier& at(uint32_t address) { return *reinterpret_cast<MBarrier*>(shared_pointer(address)); }

void set(uint32_t address, MBarrier b) {
  if (b.pending == 0 && b.bytes == 0) {
    b.pending = b.count;
    b.phase ^= 1u;
  }
  std::memcpy(shared_pointer(address), &b, sizeof b);
  progress = true;
}

}  // namespace

void run_grid(dim3 grid, uint32_t cluster, dim3 block, size_t dynamic_shared_bytes, const std::function<void()>& kernel) {
  static std::mutex one_grid_at_a_time;
  const std::lock_guard lock(one_grid_at_a_time);
  if (block.y != 1 || block.z != 1 || grid.x % cluster != 0) die("a launch of a shape that nothing uses");
  blockDim = block;
  gridDim = grid;
  ClusterRun run(cluster, block.x, dynamic_shared_bytes, kernel);
  for (uint32_t z = 0; z < grid.z; ++z)
    for (uint32_t y = 0; y < grid.y; ++y)
      for (uint32_t x = 0; x < grid.x; x += cluster) run.run({x, y, z});
}

void yield() { running->fiber.suspend(); }

const LaneValues& exchange(uint32_t mask, uint64_t mine) {
  Thread& t = *running;
  if ((mask >> t.lane() & 1u) == 0) die("a lane that is not in its own mask");
  Warp& warp = t.warp();
  LaneMeeting& m = warp.of(mask);
  const auto wanted = [&] { return static_cast<uint32_t>(__builtin_popcount(mask & warp.alive)); };
  LaneValues& values = m.values[m.round % 2];
  if (m.arrived == 0) values.fill(0);
  values[t.lane()] = mine;
  meet(m, wanted);
  return values;
}

bool block_barrier(uint32_t id, uint32_t threads, bool vote) {
  Block& block = *running->block;
  VotedMeeting& m = block.barriers.at(id);
  bool& voted = m.vote[m.round % 2];
  if (m.arrived == 0) voted = false;
  voted |= vote;
  meet(m, [&] { return threads == 0 ? block.alive : threads; });
  return voted;
}

void cluster_arrive() {
  Cluster& c = *running->cluster;
  running->cluster_round = c.meeting.round;
  ++c.meeting.arrived;
  progress = true;
}
void cluster_wait() {
  Cluster& c = *running->cluster;
  wait_until([&] { return is_over(c.meeting, running->cluster_round, c.alive); });
}

uint8_t* dynamic_shared() { return running->block->shared.get(); }
uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const uint8_t*>(p) - running->block->shared.get()) + kFirstAddress;
}
uint8_t* shared_pointer(uint32_t address) { return running->block->shared.get() + (address - kFirstAddress); }
const void* peer_pointer(const void* mine, uint32_t rank) {
  return running->cluster->blocks.at(rank).shared.get() + (static_cast<const uint8_t*>(mine) - running->block->shared.get());
}

void copy_later(void* to, const void* from, size_t bytes) { running->open.push_back({to, from, bytes}); }
void commit_copies() {
  running->groups.push_back(std::move(running->open));
  running->open.clear();
}
void wait_for_copies(uint32_t pending_groups) {
  auto& groups = running->groups;
  while (groups.size() > pending_groups) {
    for (const Copy& c : groups.front()) c.run();
    groups.erase(groups.begin());
  }
}

void mbarrier_init(uint32_t address, uint32_t count) {
  MBarrier b = {};
  b.count = b.pending = count & 0xfffu;
  std::memcpy(shared_pointer(address), &b, sizeof b);
}
void mbarrier_arrive(uint32_t address, uint32_t bytes_expected) {
  MBarrier b = at(address);
  if (b.pending == 0) die("an arrival beyond those that a barrier counts");
  --b.pending;
  b.bytes += static_cast<int32_t>(bytes_expected);
  set(address, b);
}
bool mbarrier_passed(uint32_t address, uint32_t parity) {
  Block& block = *running->block;
  if (at(address).phase == parity) {
    for (auto i = block.bulk.begin(); i != block.bulk.end(); ++i) {
      if (i->barrier != address) continue;
      i->copy.run();
      MBarrier b = at(address);
      b.bytes -= static_cast<int32_t>(i->copy.bytes);
      block.bulk.erase(i);
      set(address, b);
      break;
    }
  }
  if (at(address).phase != parity) return progress = true;
  yield();
  return false;
}
void mbarrier_copy(uint32_t address, uint32_t to, const void* from, uint32_t bytes) {
  running->block->bulk.push_back({address, {shared_pointer(to), from, bytes}});
}

}  // namespace stet::emulated
