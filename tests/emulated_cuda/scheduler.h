// A GPU that is emulated on the processor: the threads of a grid are fibers, and run one after the other until each has to wait for others.
//
// What it shows: the bits of a kernel, reads and writes beyond memory (the memories are separate allocations, so AddressSanitizer sees
// them), values that nobody wrote (memories begin as NaNs), copies that nobody waited for (they happen as late as they may), barriers that
// not all threads reach. What it does not show: races between two barriers, and any time.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

// Of the thread that runs.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace stet::emulated {

constexpr int kUnwritten = 0xff;  // of every byte of memory that nobody wrote: NaNs

// Runs every thread of a grid. cluster: blocks along x that run together.
void run_grid(dim3 grid, uint32_t cluster, dim3 block, size_t dynamic_shared, const std::function<void()>& kernel);

// What follows is called by the thread that runs. -----------------------------------------------------------------------------------------

// Other threads run, and this one again when they had their turn.
void yield();

// Gives a value to the lanes of `mask` in this thread's warp, and returns what each of them gave. Lanes that have ended give 0.
using LaneValues = std::array<uint64_t, 32>;
const LaneValues& exchange(uint32_t mask, uint64_t mine);

// Barrier `id` of the block, of `threads` threads; 0: of all that have not ended. Returns whether `vote` was true in one of them.
bool block_barrier(uint32_t id, uint32_t threads, bool vote = false);
void cluster_arrive();
void cluster_wait();

// The block's dynamic shared memory; numbers of places in it; the same place in the memory of another block of the cluster.
uint8_t* dynamic_shared();
uint32_t shared_address(const void* p);
uint8_t* shared_pointer(uint32_t address);
const void* peer_pointer(const void* mine, uint32_t rank);

// Asynchronous copies of this thread, in groups.
void copy_later(void* to, const void* from, size_t bytes);
void commit_copies();
void wait_for_copies(uint32_t pending_groups);

// Barriers in shared memory, with arrivals and bytes that are to come.
void mbarrier_init(uint32_t address, uint32_t count);
void mbarrier_arrive(uint32_t address, uint32_t bytes_expected);
bool mbarrier_passed(uint32_t address, uint32_t parity);
void mbarrier_copy(uint32_t address, uint32_t to, const void* from, uint32_t bytes);

}  // namespace stet::emulated
