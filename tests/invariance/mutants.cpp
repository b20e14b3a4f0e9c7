#include "mutants.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/fp.h"
#include "kernels/attend/kv_element.h"
#include "kernels/common/math_ref.h"
#include "kernels/common/segments.h"

namespace stet::test::mutants {
namespace {

const Kernels& right() { return kernels(available_isas().back()); }

// The reference of the matrix-vector product, with one thing wrong.
enum class Sum { contract, two_accumulators, by_threads, without_fma };

std::atomic<uint32_t> threads_of_pool{1};

float multiply_add(Sum sum, float a, float b, float acc) { return sum == Sum::without_fma ? acc + a * b : fma32(a, b, acc); }

float block_sum(Sum sum, const PackedMatrix& w, uint32_t tile, uint32_t r, const Activations& x, uint32_t m, uint32_t block,
                float acc) {
  const ActRecord record = act_record(x, m, block);
  const float dx = record.d()[m % kGroup];
  const PackTraits& format = pack_traits(w.format);
  const BlockTerm term = format.block_term(w.tile(tile), w.cols, r, block, record.q(m % kGroup));
  acc = multiply_add(sum, term.scale * dx, static_cast<float>(term.isum), acc);
  return format.has_minimum ? multiply_add(sum, term.minimum, record.scaled_sum()[m % kGroup], acc) : acc;
}

float element_sum(Sum sum, const PackedMatrix& w, uint32_t tile, uint32_t r, const Activations& x, uint32_t m, uint32_t k,
                  float acc) {
  const float* group = reinterpret_cast<const float*>(x.group(m / kGroup));
  const float element = group[size_t{k} * x.group_cols(m / kGroup) + m % kGroup];
  return multiply_add(sum, pack_traits(w.format).element(w.tile(tile), w.cols, r, k), element, acc);
}

// Steps: blocks of integer formats, elements of float ones.
float wrong_sum(Sum sum, const PackedMatrix& w, uint32_t tile, uint32_t r, const Activations& x, uint32_t m) {
  const bool integer = traits(w.format).integer_block;
  const uint32_t steps = integer ? w.cols / kBlock : w.cols;
  const uint32_t segments = sum == Sum::by_threads ? threads_of_pool.load() : segment_count(w.cols, integer);
  const uint32_t chunks = sum == Sum::by_threads ? steps : chunk_count(w.cols);
  const uint32_t unit = sum == Sum::by_threads ? 1 : integer ? kChunkBlocks : kChunk;
  float partial[kMaxSegments][2] = {};
  for (uint32_t s = 0; s < segments; ++s) {
    const uint32_t end = std::min(segment_begin(s + 1, segments, chunks) * unit, steps);
    for (uint32_t i = segment_begin(s, segments, chunks) * unit; i < end; ++i) {
      float& acc = partial[s][sum == Sum::two_accumulators && x.rows > 1 ? i % 2 : 0];
      acc = integer ? block_sum(sum, w, tile, r, x, m, i, acc) : element_sum(sum, w, tile, r, x, m, i, acc);
    }
  }
  for (uint32_t s = 0; s < segments; ++s) partial[s][0] = partial[s][0] + partial[s][1];
  for (uint32_t width = 1; width < segments; width *= 2)
    for (uint32_t s = 0; s + width < segments; s += 2 * width) partial[s][0] = partial[s][0] + partial[s + width][0];
  return partial[0][0];
}

template <Sum kSum>
void wrong_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  for (uint32_t m = 0; m < x.rows; ++m)
    for (uint32_t r = 0; r < kTileRows; ++r) out[m * kTileRows + r] = wrong_sum(kSum, w, tile, r, x, m);
}

Kernels with_matvec(MatvecFn matvec) {
  Kernels k = right();
  k.matvec = matvec;
  return k;
}

void attend_in_line(const AttendRun& run, AttendPart* parts) {
  AttendRun one = run;
  one.run_chunks = 1;
  right().attend(one, parts);
  std::vector<AttendPart> next(run.queries);
  const uint32_t dim = run.layout.head_dim;
  for (uint32_t c = run.first_chunk + 1; c < run.first_chunk + run.run_chunks && c * kSlots <= run.position; ++c) {
    one.first_chunk = c;
    right().attend(one, next.data());
    for (uint32_t i = 0; i < run.queries; ++i) {
      AttendPart &a = parts[i], &b = next[i];
      const float m = std::max(a.m, b.m), wa = exp_ref(a.m - m), wb = exp_ref(b.m - m);
      a.m = m;
      a.l = a.l * wa + b.l * wb;
      for (uint32_t d = 0; d < dim; ++d) a.o[d] = a.o[d] * wa + b.o[d] * wb;
    }
  }
}

void attend_beyond(const AttendRun& run, AttendPart* parts) {
  AttendRun longer = run;
  if ((run.position + 1) % kSlots != 0) ++longer.position;  // the next chunk may not be there
  right().attend(longer, parts);
}

void attend_times_zero(const AttendRun& run, AttendPart* parts) {
  right().attend(run, parts);
  const uint32_t last_chunk = run.position / kSlots;
  if (last_chunk >= run.first_chunk + run.run_chunks) return;
  for (uint32_t i = 0; i < run.queries; ++i)
    for (uint32_t p = run.position + 1; p < (last_chunk + 1) * kSlots; ++p)
      for (uint32_t d = 0; d < run.layout.head_dim; ++d)
        parts[i].o[d] = fma32(0.0f, value_element(run.layout, run.layer, run.kv_head, p, d), parts[i].o[d]);
}

void rope_fused(const float* x, RopeRow row, uint32_t rope_dim, uint32_t head_dim, float* y) {
  for (uint32_t d = 0; d < rope_dim; ++d) y[d] = fma32(x[d], row.cos[d], x[d ^ 1u] * row.sin[d]);
  std::copy(x + rope_dim, x + head_dim, y + rope_dim);
}

std::atomic<const float*> first_cos{nullptr}, first_sin{nullptr};
std::atomic<uint32_t> stores{0};

void rope_frozen(const float* x, RopeRow row, uint32_t rope_dim, uint32_t head_dim, float* y) {
  const float* none = nullptr;
  if (first_cos.compare_exchange_strong(none, row.cos)) first_sin = row.sin;
  right().rope(x, {first_cos, first_sin}, rope_dim, head_dim, y);
}

void store_but_one(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position, const float* key, const float* value) {
  if ((++stores & 0x7ffu) != 0) right().store_kv(layout, layer, head, position, key, value);
}

Argmax argmax_last(const float* logits, uint32_t n) {
  Argmax best = right().sample.argmax(logits, n);
  for (uint32_t i = best.id; best.first_bad == n && i < n; ++i)
    if (logits[i] == logits[best.id]) best.id = i;
  return best;
}

}  // namespace

Kernels nothing_wrong() { return with_matvec(wrong_matvec<Sum::contract>); }
Kernels two_accumulators_when_wide() { return with_matvec(wrong_matvec<Sum::two_accumulators>); }
Kernels product_without_fma() { return with_matvec(wrong_matvec<Sum::without_fma>); }

Kernels segments_by_threads(unsigned threads) {
  threads_of_pool = threads;
  return with_matvec(wrong_matvec<Sum::by_threads>);
}

Kernels chunks_joined_in_line() {
  Kernels k = right();
  k.attend = attend_in_line;
  return k;
}

Kernels reads_one_slot_beyond() {
  Kernels k = right();
  k.attend = attend_beyond;
  return k;
}

Kernels masked_times_zero() {
  Kernels k = right();
  k.attend = attend_times_zero;
  return k;
}

Kernels rotation_with_fma() {
  Kernels k = right();
  k.rope = rope_fused;
  return k;
}

Kernels rotation_of_first_call() {
  Kernels k = right();
  k.rope = rope_frozen;
  return k;
}

Kernels loses_store_2048() {
  Kernels k = right();
  k.store_kv = store_but_one;
  return k;
}

void forget() {
  first_cos = first_sin = nullptr;
  stores = 0;
}

Kernels last_of_equals() {
  Kernels k = right();
  k.sample.argmax = argmax_last;
  return k;
}

void flush_to_zero_in_worker_0(unsigned worker) {
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  if (worker == 0) {
    _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Trace speculate(Machine& machine, const Ask& ask, const Help& help, Fault fault, uint32_t cached) {
  Decoder& decoder = machine.decoder();
  const uint32_t vocab = decoder.desc().vocab, prompt = static_cast<uint32_t>(ask.prompt.size());
  Sampler sampler(machine.kernels(), ask.sampling, vocab);
  std::vector<int32_t> timeline = ask.prompt;
  Trace trace;
  if (help.draft != nullptr) help.draft->begin(ask.sampling);
  int32_t rejected = -1;  // the proposal whose row was rolled back in the step before
  for (bool ended = false; !ended && timeline.size() < prompt + ask.max_tokens;) {
    const uint32_t old = static_cast<uint32_t>(timeline.size()), left = prompt + ask.max_tokens - old;
    const uint32_t depth = fault == Fault::past_limit ? help.depth : std::min(help.depth, left - 1);
    std::vector<int32_t> proposals;
    if (help.draft != nullptr && depth > 0) help.draft->propose({timeline, prompt}, depth, proposals);
    std::vector<int32_t> all = timeline;
    all.insert(all.end(), proposals.begin(), proposals.end());
    const uint32_t rows = static_cast<uint32_t>(proposals.size()) + 1;
    const float* logits = decoder.forward(std::span(all).subspan(cached), cached, rows);
    for (uint32_t i = 0; i < rows; ++i) {
      const float* row = logits + size_t{i} * vocab;
      const uint32_t counted = fault == Fault::counts_without_draft ? old : old + i;
      int32_t token = sampler.sample(row, ask.prompt, std::span<const int32_t>(all).first(counted).subspan(prompt),
                                     fault == Fault::noise_by_row ? i : old + i).token;
      if (fault == Fault::draft_as_target && i + 1 < rows) token = proposals[i];
      trace.logits.resize(old - 1 + i);
      trace.logits.emplace_back(row, row + vocab);
      timeline.push_back(token);
      ended = ended || ask.stop(token);
      if (i + 1 == rows || token != proposals[i] || (ended && fault != Fault::past_stop)) break;
    }
    const uint32_t added = static_cast<uint32_t>(timeline.size()) - old;
    if (rejected >= 0 && fault == Fault::stale_row) decoder.forward(std::span(&rejected, 1), old - 1, 0);
    rejected = added < rows ? proposals[added - 1] : -1;
    cached = old + added - 1;
  }
  trace.tokens.assign(timeline.begin() + prompt, timeline.end());
  trace.kv = decoder.kv_hash(cached);
  return trace;
}

}  // namespace stet::test::mutants
