// What both kinds of wide product share. A block of threads makes a group of weight tiles times all rows of x; where
// that leaves processors idle, the blocks of a cluster share the segments of K, and their partial sums join through
// shared memory, by the tree.
#pragma once

#include <array>

#include "kernels/matvec/matvec_shape.cuh"

namespace stet::cuda {

// How a launch is cut, worked out on the host.
struct WideCut {
  uint32_t tiles, groups;  // of the launch; of kTiles tiles each
  uint32_t parts;          // blocks of a cluster
  uint32_t segments, chunks, k;
};

// The blocks of a cluster come one after the other in a grid.
struct WidePart {
  uint32_t rank, cluster, clusters;
  uint32_t first, count;  // segments
  uint32_t begin, end;    // chunks
  __device__ explicit WidePart(const WideCut& cut)
      : rank(blockIdx.x % cut.parts),
        cluster(blockIdx.x / cut.parts),
        clusters(gridDim.x / cut.parts),
        first(rank * (cut.segments / cut.parts)),
        count(cut.segments / cut.parts),
        begin(segment_start(first, cut.segments, cut.chunks)),
        end(segment_start(first + count, cut.segments, cut.chunks)) {}
};

__device__ __forceinline__ float4 add4(float4 left, float4 right) {
  return {__fadd_rn(left.x, right.x), __fadd_rn(left.y, right.y), __fadd_rn(left.z, right.z),
          __fadd_rn(left.w, right.w)};
}

template <uint32_t kCount>
__device__ __forceinline__ float4 tree_of_peers(const float4* mine, uint32_t first) {
  if constexpr (kCount == 1) {
    return of_peer(mine, first);
  } else {
    return add4(tree_of_peers<kCount / 2>(mine, first), tree_of_peers<kCount / 2>(mine, first + kCount / 2));
  }
}
__device__ __forceinline__ float4 join_parts_of(const float4* mine, uint32_t parts) {
  switch (parts) {
    case 1:
      return *mine;
    case 2:
      return tree_of_peers<2>(mine, 0);
    case 4:
      return tree_of_peers<4>(mine, 0);
    default:
      return tree_of_peers<8>(mine, 0);
  }
}

// Partial sums of a block as its cluster sees them: [slot][thread] of four floats. A block joins and stores a run of
// the slots.
template <uint32_t kSlots, uint32_t kThreads>
class Exchange {
 public:
  static constexpr uint32_t kBytes = kSlots * kThreads * sizeof(float4);
  __device__ Exchange(const WideCut& cut, const WidePart& part, void* shared)
      : parts_(cut.parts), rank_(part.rank), mine_(static_cast<float4*>(shared) + threadIdx.x) {}
  // Before the first put() of a group: the others have read the last one.
  __device__ void open() {
    if (parts_ > 1 && read_) cluster_wait();
  }
  __device__ void put(uint32_t slot, float4 v) { mine_[slot * kThreads] = v; }
  __device__ void close() {
    if (parts_ == 1) return;
    __syncwarp();
    cluster_arrive();
    cluster_wait();
  }
  __device__ uint32_t begin() const { return rank_ * (kSlots / parts_); }
  __device__ uint32_t end() const { return (rank_ + 1) * (kSlots / parts_); }
  __device__ float4 get(uint32_t slot) const { return join_parts_of(mine_ + slot * kThreads, parts_); }
  __device__ void done() {
    if (parts_ > 1) {
      __syncwarp();
      cluster_arrive();
    }
    read_ = true;
  }
  // A block must not end while others read from it.
  __device__ void leave() { open(); }

 private:
  uint32_t parts_, rank_;
  bool read_ = false;
  float4* mine_;
};

// Sums of runs of 2^l segments of a part that wait for their right neighbours: of l < kShared in shared memory as
// [l][slot][thread], of the others in local memory. The memory is that of Exchange, which is free until a group ends.
template <uint32_t kShared, uint32_t kLevels, uint32_t kSlots, uint32_t kThreads>
class WaitingSums {
 public:
  static constexpr uint32_t kBytes = kShared * Exchange<kSlots, kThreads>::kBytes;
  __device__ explicit WaitingSums(void* shared) : shared_(static_cast<float4*>(shared) + threadIdx.x) {}
  // After segment i of `count`.
  template <typename Sums>
  __device__ __forceinline__ void join(Sums& sums, uint32_t i, uint32_t count) {
    uint32_t l = 0;
    for (; (i >> l & 1u) != 0; ++l) {
      if (l < kShared) {
        add<kThreads>(shared_ + l * (kSlots * kThreads), sums);
      } else {
        add<1>(local_[l - kShared], sums);
      }
    }
    if (i + 1 == count) return;
    if (l < kShared) {
      leave<kThreads>(shared_ + l * (kSlots * kThreads), sums);
    } else {
      leave<1>(local_[l - kShared], sums);
    }
  }

 private:
  template <uint32_t kApart, typename Sums>
  __device__ __forceinline__ static void add(const float4* left, Sums& sums) {
#pragma unroll
    for (uint32_t s = 0; s < kSlots; ++s) sums.set(s, add4(left[s * kApart], sums.get(s)));
  }
  template <uint32_t kApart, typename Sums>
  __device__ __forceinline__ static void leave(float4* to, const Sums& sums) {
#pragma unroll
    for (uint32_t s = 0; s < kSlots; ++s) to[s * kApart] = sums.get(s);
  }

  float4* shared_;
  float4 local_[kLevels - kShared][kSlots];
};

// Stages of `stage` bytes in a ring, three at most, that fit beside `other` bytes where `blocks` blocks share a
// processor.
constexpr uint32_t stages_that_fit(uint32_t stage, uint32_t other, uint32_t blocks) {
  constexpr uint32_t kProcessorBytes = 228 * 1024, kReserved = 1024;  // the latter of each block
  const uint32_t fit = (kProcessorBytes / blocks - kReserved - other) / stage;
  return fit < 3 ? fit : 3;
}

__device__ __forceinline__ float gated(float gate, float up) { return __fmul_rn(silu(gate), up); }

// Whether this device has clusters.
inline bool has_clusters() {
  int device = 0, yes = 0;
  check(cudaGetDevice(&device), "the device");
  check(cudaDeviceGetAttribute(&yes, cudaDevAttrClusterLaunch, device), "clusters of the device");
  return yes != 0;
}

// How many clusters of 1, 2, 4 and 8 blocks the device runs at once; 0 where it has none of that size.
using ClustersAtOnce = std::array<uint32_t, 4>;
template <typename Kernel>
ClustersAtOnce clusters_at_once(Kernel kernel, uint32_t threads, size_t shared, uint32_t processors) {
  allow_shared(kernel, shared);
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads), shared),
        "blocks of a processor");
  ClustersAtOnce at_once = {static_cast<uint32_t>(blocks) * processors};
  for (uint32_t i = 1; i < at_once.size() && has_clusters(); ++i) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {1u << i, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(at_once[0] >> i << i);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config), "clusters at once");
    at_once[i] = static_cast<uint32_t>(clusters);
  }
  return at_once;
}

// Blocks of a cluster: few rounds over the groups, each short; joining a group costs as much as kJoinChunks chunks of
// K.
constexpr double kJoinChunks = 1.0;
inline uint32_t choose_parts(const WideCut& cut, uint32_t most, const ClustersAtOnce& at_once) {
  uint32_t best = 1;
  double best_cost = 1e30;
  for (uint32_t i = 0; i < at_once.size(); ++i) {
    const uint32_t parts = 1u << i;
    if (at_once[i] == 0 || parts > cut.segments || parts > most) continue;
    const uint32_t rounds = (cut.groups + at_once[i] - 1) / at_once[i];
    const double cost = rounds * (static_cast<double>(cut.chunks) / parts + kJoinChunks);
    if (cost < best_cost) best_cost = cost, best = parts;
  }
  return best;
}

// Of a kernel with groups of `group` tiles and clusters of at most `most` blocks. at_once: clusters_at_once() of the
// kernel.
inline WideCut wide_cut(const CudaProduct& p, bool integer, uint32_t group, uint32_t most,
                        const ClustersAtOnce& at_once) {
  WideCut cut = {};
  cut.segments = segment_count(p.k, integer);
  cut.chunks = chunk_count(p.k);
  cut.k = p.k;
  cut.tiles = tile_count(p);
  cut.groups = (cut.tiles + group - 1) / group;
  cut.parts = choose_parts(cut, most, at_once);
  return cut;
}

inline uint32_t wide_blocks(const WideCut& cut, const ClustersAtOnce& at_once) {
  return std::min(cut.groups, at_once[static_cast<size_t>(__builtin_ctz(cut.parts))]) * cut.parts;
}

}  // namespace stet::cuda
