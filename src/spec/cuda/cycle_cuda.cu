#include "kernels/sample/sample_cuda.cuh"
#include "spec/cuda/cycle_cuda.h"

namespace stet::cuda {
namespace {

constexpr uint32_t kDraftThreads = 1024;
constexpr uint32_t kAcceptThreads = kCudaSampleRows * kWarp;

// As in spec/drafts/ngram.cpp.
constexpr uint32_t kLongest = 4, kShortest = 2;
constexpr uint32_t kWindow = 1u << 14;

// Proposals that may be made: the last verified token needs room, but no KV row.
__device__ __forceinline__ uint32_t proposal_limit(const CudaCycle& c) {
  return min(c.depth, c.end - c.timeline.committed - 1);
}

// By one thread: the verify pass of the last token and the proposals.
__device__ void set_up(CudaCycle& c, const int32_t* tokens, CudaStep* step) {
  const uint32_t rows = c.timeline.proposals + 1;
  step->rows = rows;
  step->position = c.timeline.committed - 1;
  step->head_first = 0;
  step->head_rows = rows;
  step->tokens[0] = tokens[c.timeline.committed - 1];
  for (uint32_t i = 0; i + 1 < rows; ++i) step->tokens[i + 1] = c.timeline.proposed[i];
  c.verify_ns = clock_ns();
}
__device__ void set_up_nothing(CudaStep* step) { step->rows = step->head_rows = 0; }

// By the whole block: where the latest earlier place of the longest pattern ends; 0: there is none. Tokens that end at
// `end` are compared with the last ones backwards, so that all lengths are found in one sweep.
__device__ uint32_t ngram_end(const int32_t* tokens, uint32_t size) {
  __shared__ uint32_t of_warps[kDraftThreads / kWarp];
  uint32_t best = 0;  // length, then place
  const uint32_t oldest = max(kShortest, size > kWindow ? size - kWindow : 0u);
  for (uint32_t end = oldest + threadIdx.x; end < size; end += kDraftThreads) {
    uint32_t n = 0;
    while (n < kLongest && n < end && tokens[end - 1 - n] == tokens[size - 1 - n]) ++n;
    if (n >= kShortest) best = max(best, n << 28 | end);
  }
  best = __reduce_max_sync(kAll, best);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = best;
  __syncthreads();
  return __reduce_max_sync(kAll, of_warps[threadIdx.x % kWarp]) & 0x0fffffffu;
}

__global__ void __launch_bounds__(kDraftThreads, 1)
    begin_cycle(const __grid_constant__ CudaCycleMemory m, CudaStep* step, CudaDraft draft) {
  release_next();
  wait_for_previous();
  CudaCycle& c = *m.cycle;
  if (c.finished != 0) {
    if (threadIdx.x == 0) set_up_nothing(step);
    return;
  }
  const uint64_t begin = clock_ns();
  const uint32_t size = c.timeline.committed, limit = proposal_limit(c);
  uint32_t proposals = 0;
  if (draft == CudaDraft::ngram && limit > 0) {
    const uint32_t end = ngram_end(m.tokens, size);
    if (end != 0) proposals = min(limit, size - end);
    if (threadIdx.x < proposals) c.timeline.proposed[threadIdx.x] = m.tokens[end + threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  c.timeline.proposals = proposals;
  c.begin_ns = begin;
  set_up(c, m.tokens, step);
}

__global__ void begin_model_draft(const __grid_constant__ CudaCycleMemory m, CudaStep* step) {
  release_next();
  wait_for_previous();
  CudaCycle& c = *m.cycle;
  if (threadIdx.x != 0) return;
  c.timeline.proposals = 0;
  if (c.finished != 0) return set_up_nothing(step);
  c.begin_ns = clock_ns();
  c.draft_held = c.draft_cached;
  if (proposal_limit(c) == 0) return set_up_nothing(step);
  const uint32_t rows = c.timeline.committed - c.draft_cached;
  for (uint32_t i = 0; i < rows; ++i) step->tokens[i] = m.tokens[c.draft_cached + i];
  step->rows = rows;
  step->position = c.draft_cached;
  step->head_first = rows - 1;
  step->head_rows = 1;
  c.draft_held = c.timeline.committed;
}

// A draft that leaves the finite numbers has nothing more to propose.
__global__ void draft_proposal(const __grid_constant__ CudaCycleMemory m, CudaStep* draft_step,
                               const __grid_constant__ CudaSample s, bool last, CudaStep* step) {
  release_next();
  wait_for_previous();
  CudaCycle& c = *m.cycle;
  const bool ran = draft_step->head_rows != 0;
  const int32_t token = ran ? join_row(s, 1, 0) : -1;
  __syncwarp();
  if (threadIdx.x != 0) return;
  if (token >= 0) c.timeline.proposed[c.timeline.proposals++] = token;
  if (token >= 0 && !last && c.timeline.proposals < proposal_limit(c)) {
    draft_step->rows = 1;
    draft_step->position = c.draft_held;
    draft_step->head_first = 0;
    draft_step->head_rows = 1;
    draft_step->tokens[0] = token;
    ++c.draft_held;
  } else {
    set_up_nothing(draft_step);
  }
  if (!last) return;
  if (c.finished != 0) return set_up_nothing(step);
  set_up(c, m.tokens, step);
}

// By one thread: the tokens that the plain decoder would have written, until the first that was not proposed. -1: not
// finite.
struct Accepted {
  uint32_t accepted, emitted;
  bool finite, stopped;
};
__device__ Accepted accept_rows(const CudaCycle& c, const int32_t* sampled, const bool* stops) {
  Accepted a = {0, 0, true, false};
  for (uint32_t i = 0; i <= c.timeline.proposals; ++i) {
    const int32_t token = sampled[i];
    if (token < 0) {
      a.finite = false;
      return a;
    }
    ++a.emitted;
    a.stopped = stops[i];
    if (i == c.timeline.proposals || token != c.timeline.proposed[i]) return a;
    ++a.accepted;
    if (a.stopped) return a;
  }
  return a;
}

__device__ void report(const CudaCycle& c, const Accepted& a, const int32_t* sampled, uint64_t accept_ns,
                       CycleMailbox* mailbox) {
  CycleRecord& r = mailbox->records[c.index % kCycleRecords];
  r.state = !a.finite ? CycleState::nonfinite : c.finished != 0 ? CycleState::finished : CycleState::running;
  r.proposed = c.timeline.proposals;
  r.accepted = a.finite ? a.accepted : 0;
  r.emitted = a.finite ? a.emitted : 0;
  r.draft_cached = c.draft_cached;
  for (uint32_t i = 0; i < r.emitted; ++i) r.tokens[i] = sampled[i];
  r.begin_ns = c.begin_ns;
  r.verify_ns = c.verify_ns;
  r.accept_ns = accept_ns;
  r.end_ns = clock_ns();
  __threadfence_system();
  *reinterpret_cast<volatile uint64_t*>(&r.number) = static_cast<uint64_t>(c.request) << 32 | c.index;
}

__global__ void __launch_bounds__(kAcceptThreads, 1)
    accept_cycle(const __grid_constant__ CudaCycleMemory m, const CudaStep* step,
                 const __grid_constant__ CudaSample s) {
  __shared__ int32_t sampled[kCudaSampleRows];
  __shared__ bool stops[kCudaSampleRows];
  // Asked before the wait: the way to the host's memory takes as long as a kernel.
  const uint32_t stop_request = threadIdx.x == 0 ? *reinterpret_cast<volatile uint32_t*>(&m.mailbox->stop_request) : 0;
  release_next();
  wait_for_previous();
  CudaCycle& c = *m.cycle;
  if (c.finished != 0) return;
  const uint64_t accept_ns = clock_ns();
  const uint32_t rows = step->head_rows, row = threadIdx.x / kWarp;
  if (row < rows) {
    const int32_t token = join_row(s, rows, row);
    bool stop = false;
    for (uint32_t i = threadIdx.x % kWarp; i < c.stops; i += kWarp) stop |= m.stop_tokens[i] == token;
    stop = __any_sync(kAll, stop);
    if (threadIdx.x % kWarp == 0) sampled[row] = token, stops[row] = stop;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const Accepted a = accept_rows(c, sampled, stops);
  const uint32_t before = c.timeline.committed;
  if (a.finite) {
    for (uint32_t i = 0; i < a.emitted; ++i) {
      m.tokens[before + i] = sampled[i];
      if (m.sampling->penalised != 0) ++m.counts[sampled[i]];
    }
    c.timeline.committed = before + a.emitted;
    c.draft_cached = min(c.draft_held, before + a.accepted);
  }
  if (!a.finite || a.stopped || c.timeline.committed >= c.end || stop_request == c.request) c.finished = 1;
  report(c, a, sampled, accept_ns, m.mailbox);
  ++c.index;
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_begin_cycle(const CudaLaunch& on, const CudaCycleMemory& m, CudaStep* step, CudaDraft draft) {
  cuda::launch(on, cuda::begin_cycle, dim3(1), draft == CudaDraft::none ? cuda::kWarp : cuda::kDraftThreads, 0, m, step,
               draft);
}

void launch_begin_model_draft(const CudaLaunch& on, const CudaCycleMemory& m, CudaStep* draft_step) {
  cuda::launch(on, cuda::begin_model_draft, dim3(1), cuda::kWarp, 0, m, draft_step);
}

void launch_draft_proposal(const CudaLaunch& on, const CudaCycleMemory& m, CudaStep* draft_step, const CudaSample& s,
                           bool last, CudaStep* step) {
  cuda::launch(on, cuda::draft_proposal, dim3(1), cuda::kWarp, 0, m, draft_step, s, last, step);
}

void launch_accept(const CudaLaunch& on, const CudaCycleMemory& m, const CudaStep* step, const CudaSample& s) {
  cuda::launch(on, cuda::accept_cycle, dim3(1), cuda::kAcceptThreads, 0, m, step, s);
}

}  // namespace stet
