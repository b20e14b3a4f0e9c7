// Top-k and top-p of a row: one block of threads finds the last key that is kept by its digits, highest first, and of
// equals the last id.
#include "kernels/sample/sample_cuda.cuh"

namespace stet::cuda {
namespace {

constexpr uint32_t kThreads = 1024;
constexpr uint32_t kDigits = 3, kBins = 2048;
constexpr uint32_t kListed = 2048;  // keys that a list in shared memory holds

struct Shared {
  Wide bins[kBins];
  Wide of_warps[kThreads / kWarp];
  uint32_t largest[kThreads];  // of each thread
  uint32_t keys[kListed], ids[kListed];
  uint32_t listed, digit;
  Wide above, equal;
};

// What the keys that are kept must reach: a count, or a sum of keys.
struct Goal {
  bool sums;
  Wide value;
  __device__ Wide share(uint32_t key) const { return sums ? key : 1; }
};

// The keys that are chosen from; ids: null means 0 .. n - 1.
struct Work {
  uint32_t* keys;
  const uint32_t* ids;
  uint32_t n;
  __device__ uint32_t id(uint32_t i) const { return ids != nullptr ? ids[i] : i; }
};

// By the whole block: the sum of x of threads 0 .. this one, and of all.
__device__ Wide running_sum(Shared& sh, Wide x, Wide& total) {
  const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
  for (uint32_t width = 1; width < kWarp; width *= 2) {
    const Wide before = __shfl_up_sync(kAll, x, width);
    if (lane >= width) x += before;
  }
  __syncthreads();
  if (lane == kWarp - 1) sh.of_warps[warp] = x;
  __syncthreads();
  Wide base = 0;
  total = 0;
  for (uint32_t w = 0; w < kThreads / kWarp; ++w) {
    if (w == warp) base = total;
    total += sh.of_warps[w];
  }
  return base + x;
}
__device__ Wide block_sum(Shared& sh, Wide x) {
  Wide total = 0;
  running_sum(sh, x, total);
  return total;
}

// By the whole block: use(i, load(i)) for each i below n. Several loads are on their way at a time.
template <typename Load, typename Use>
__device__ __forceinline__ void for_each(uint32_t n, const Load& load, const Use& use) {
  constexpr uint32_t kBatch = 8;
  for (uint32_t first = threadIdx.x; first < n; first += kThreads * kBatch) {
    decltype(load(0u)) x[kBatch];
#pragma unroll
    for (uint32_t j = 0; j < kBatch; ++j) x[j] = load(min(first + j * kThreads, n - 1));
#pragma unroll
    for (uint32_t j = 0; j < kBatch; ++j)
      if (first + j * kThreads < n) use(first + j * kThreads, x[j]);
  }
}

struct Cut {
  uint32_t key;
  Wide above, equal;  // what the keys above it come to, and those equal to it
};

// A share into the bin of its digit. Where a whole warp has the same digit, which is how rows of flat weights are, one
// lane adds for all.
__device__ __forceinline__ void count_digit(Shared& sh, const Goal& goal, bool in, uint32_t key, uint32_t digit) {
  int same = 0;
  __match_all_sync(kAll, in ? digit : kBins, &same);
  if (same == 0) {
    if (in) atomicAdd(&sh.bins[digit], goal.share(key));
  } else if (in) {
    const Wide low = __reduce_add_sync(kAll, goal.sums ? key & 0xffffu : 1),
               high = __reduce_add_sync(kAll, goal.sums ? key >> 16 : 0);
    if (threadIdx.x % kWarp == 0) atomicAdd(&sh.bins[digit], (high << 16) + low);
  }
}

// The bin in which the sum from the highest bin down reaches what is missing.
__device__ void find_digit(Shared& sh, uint32_t bins, Wide missing) {
  Wide two[2];
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t from_top = threadIdx.x * 2 + i;
    two[i] = from_top < bins ? sh.bins[bins - 1 - from_top] : 0;
  }
  Wide total = 0, before = running_sum(sh, two[0] + two[1], total) - two[0] - two[1];
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) {
    if (before < missing && missing <= before + two[i]) {
      sh.digit = bins - 1 - (threadIdx.x * 2 + i);
      sh.above = before;
      sh.equal = two[i];
    }
    before += two[i];
  }
  __syncthreads();
}

// By the whole block: the largest key such that the keys that are that or more reach the goal. All of them together
// reach it. read(i, key): whether key i counts, and the key.
template <typename Read>
__device__ Cut largest_key(Shared& sh, uint32_t n, const Goal& goal, const Read& read) {
  uint32_t prefix = 0;
  Wide above = 0;
  for (uint32_t d = 0; d < kDigits; ++d) {
    const uint32_t shift = d == 0 ? 21 : d == 1 ? 10 : 0, bits = d == 2 ? 10 : 11;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kBins; i += kThreads) sh.bins[i] = 0;
    __syncthreads();
    for (uint32_t first = threadIdx.x / kWarp * kWarp; first < n; first += kThreads) {
      const uint32_t i = first + threadIdx.x % kWarp;
      uint32_t key = 0;
      const bool in = i < n && read(i, key) && (d == 0 || key >> (shift + bits) == prefix >> (shift + bits));
      count_digit(sh, goal, in, key, key >> shift & ((1u << bits) - 1));
    }
    __syncthreads();
    find_digit(sh, 1u << bits, goal.value - above);
    above += sh.above;
    prefix |= sh.digit << shift;
  }
  return {prefix, above, sh.equal};
}

// Few keys instead of all, where that is possible: what is at least the bound that the largest keys of the threads give
// reaches the goal.
__device__ Work narrowed(Shared& sh, const Work& all, const Goal& goal, uint32_t largest) {
  sh.largest[threadIdx.x] = largest;
  if (threadIdx.x == 0) sh.listed = 0;
  if (block_sum(sh, goal.share(largest)) < goal.value) return all;
  const Cut bound = largest_key(sh, kThreads, goal, [&](uint32_t i, uint32_t& key) {
    key = sh.largest[i];
    return true;
  });
  for_each(
      all.n, [&](uint32_t i) { return all.keys[i]; },
      [&](uint32_t i, uint32_t key) {
        if (key < bound.key) return;
        const uint32_t at = atomicAdd(&sh.listed, 1u);
        if (at < kListed) sh.keys[at] = key, sh.ids[at] = i;
      });
  __syncthreads();
  return sh.listed <= kListed ? Work{sh.keys, sh.ids, sh.listed} : all;
}

// Of the tokens equal to the cut, the id of the last that is needed.
__device__ uint32_t last_id(Shared& sh, const Work& work, const Goal& goal, const Cut& cut) {
  const Wide share = goal.share(cut.key), needed = (goal.value - cut.above + share - 1) / share;
  if (needed * share >= cut.equal) return 0xffffffffu;
  const Cut id = largest_key(sh, work.n, {false, needed}, [&](uint32_t i, uint32_t& key) {
    key = ~work.id(i);
    return work.keys[i] == cut.key;
  });
  return ~id.key;
}

__device__ __forceinline__ Wide top_p_goal(uint64_t p, Wide total) {
  const Wide low = p * total, high = __umul64hi(p, total), rounded = low + 0xffffffffu;
  return (high + (rounded < low)) << 32 | rounded >> 32;
}

__global__ void __launch_bounds__(kThreads, 1) cut_rows(const CudaStep* step, const __grid_constant__ CudaSample s) {
  __shared__ Shared sh;
  release_next();
  wait_for_previous();
  const CudaSampling p = *s.sampling;
  const bool by_key = p.top_k != 0 && p.top_k < s.vocab;
  const uint32_t rows = step->head_rows, r = blockIdx.x;
  if (p.temperature == 0.0f || (!by_key && p.top_p == 0) || r >= rows) return;
  const AdjustedRow row(s, p, r);
  const float largest_logit = value_of_key(key_of_ranked(join_slices(s.best, slices_of(s, rows), r)));
  Work work = {s.keys + size_t{r} * s.vocab, nullptr, s.vocab};
  uint32_t largest = 0;
  Wide sum = 0;
  for_each(
      s.vocab, [&](uint32_t i) { return row[i]; },
      [&](uint32_t i, float l) {
        const uint32_t key = by_key ? key_of(l) : weight_of(tempered(l, largest_logit, p.temperature));
        work.keys[i] = key;
        largest = max(largest, key);
        sum += key;
      });
  __syncthreads();
  CudaKept kept = {0, 0xffffffffu, 0, 0xffffffffu};
  if (by_key) {
    const Goal goal = {false, p.top_k};
    work = narrowed(sh, work, goal, largest);
    const Cut cut = largest_key(sh, work.n, goal, [&](uint32_t i, uint32_t& key) {
      key = work.keys[i];
      return true;
    });
    kept.key = cut.key;
    kept.key_id = last_id(sh, work, goal, cut);
    // From here on the weights of what is kept.
    __syncthreads();
    sum = 0;
    for (uint32_t i = threadIdx.x; i < work.n; i += kThreads) {
      const uint32_t key = work.keys[i];
      const bool in = ranked(key, work.id(i)) >= ranked(kept.key, kept.key_id);
      work.keys[i] = in ? weight_of(tempered(value_of_key(key), largest_logit, p.temperature)) : 0;
      sum += work.keys[i];
    }
    __syncthreads();
  }
  // (Without a weight there is an infinity or a NaN, and no token.)
  if (const Wide total = p.top_p != 0 ? block_sum(sh, sum) : 0; total != 0) {
    const Goal goal = {true, top_p_goal(p.top_p, total)};
    if (!by_key) work = narrowed(sh, work, goal, largest);
    const Cut cut = largest_key(sh, work.n, goal, [&](uint32_t i, uint32_t& key) {
      key = work.keys[i];
      return true;
    });
    kept.weight = cut.key;
    kept.weight_id = last_id(sh, work, goal, cut);
  }
  if (threadIdx.x == 0) s.kept[r] = kept;
}

}  // namespace

void launch_cut(const CudaLaunch& on, const CudaStep* step, const CudaSample& s, uint32_t rows) {
  launch(on, cut_rows, dim3(rows), kThreads, 0, step, s);
}

}  // namespace stet::cuda
