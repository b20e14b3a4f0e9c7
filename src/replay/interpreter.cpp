#include "replay/interpreter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "kernels/rounding/rounding.h"
#include "replay/interpreter_detail.h"
#include "replay/row_ops.h"

namespace stet {

using detail::kMaxRuns;
using detail::round64;

CpuInterpreter::CpuInterpreter(const Kernels& kernels, WorkerPool& pool, const std::vector<const CommandList*>& lists)
    : kernels_(kernels), pool_(pool), scratch_(pool.threads()) {
  const detail::Sizes sizes = detail::scratch_sizes(lists, pool.threads());
  for (Scratch& s : scratch_) {
    s.rows = AlignedBuffer(sizes.row_bytes);
    s.activations = AlignedBuffer(sizes.narrow_activations);
    s.tile = AlignedBuffer(2 * size_t{sizes.width} * kTileRows * 4);
    s.q = AlignedBuffer(sizes.q_bytes);
  }
  shared_activations_ = AlignedBuffer(sizes.shared_activations);
  parts_ = AlignedBuffer(sizes.parts);
}

void CpuInterpreter::run(const LoweredList& list, const StepParams& params, ReplayMode mode, const StageObserver& observer) {
  const uint32_t rows = list.list->rows == RowSet::head ? params.head_rows : params.rows;
  STET_CHECK(rows >= 1 && rows <= list.list->width);
  if (mode == ReplayMode::replayed) {
    STET_CHECK(!observer);
    pool_.run([&](WorkerPool::Worker& worker) {
      StageMarks* marks = worker.index() == 0 ? marks_ : nullptr;
      if (marks != nullptr) marks->add(list, nullptr);
      for (const Stage& stage : list.stages) {
        run_stage(list, stage, params, worker);
        if (marks != nullptr) marks->add(list, &stage);
      }
    });
    return;
  }
  for (const Stage& stage : list.stages) {
    pool_.run([&](WorkerPool::Worker& worker) { run_stage(list, stage, params, worker); });
    if (observer) observer(stage, params, rows);
  }
}

void CpuInterpreter::run_stage(const LoweredList& list, const Stage& stage, const StepParams& params,
                               WorkerPool::Worker& worker) {
  const uint32_t rows = list.list->rows == RowSet::head ? params.head_rows : params.rows;
  switch (stage.kind) {
    case Stage::Kind::rows: return run_rows(stage, params, rows, worker);
    case Stage::Kind::prepare: return run_prepare(stage, params, rows, worker);
    case Stage::Kind::project: return run_project(stage, params, rows, worker);
    case Stage::Kind::gated: return run_gated(stage, params, rows, worker);
    case Stage::Kind::store: return run_store(stage, params, worker);
    case Stage::Kind::attend_rows: return run_attend_rows(stage, params, worker);
    case Stage::Kind::attend_runs: return run_attend_runs(stage, params, worker);
  }
}

void CpuInterpreter::run_rows(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker) {
  const Command& c = *stage.commands[0];
  const RowOp op = row_op(c.op);
  // Rows of one part follow each other: its weights stay in the cache.
  worker.for_tiles(rows * c.parts, 1, [&](uint32_t t) { op(kernels_, c, params, t % rows, t / rows); });
}

CpuInterpreter::Prepared CpuInterpreter::activations(const Stage& stage, uint32_t rows, uint8_t* memory) const {
  const uint32_t k = stage.commands[0]->matrix.cols;
  Prepared p;
  size_t offset = 0;
  for (const Command* c : stage.commands) {
    if (c->op != Op::matvec) continue;
    Activations& a = p[c->matrix.input];
    if (a.data != nullptr) continue;
    a = {c->matrix.input, rows, k, memory + offset};
    offset += round64(activation_bytes(a.kind, rows, k));
  }
  return p;
}

// Row `row` of the stage's activations, made from its source. scratch: one row of floats.
void CpuInterpreter::prepare_row(const Stage& stage, const StepParams& params, uint32_t row, const Prepared& out,
                                 float* scratch) const {
  const float* x = nullptr;
  if (stage.source == Stage::Source::buffer) {
    x = stage.input->row(row);
  } else if (stage.source == Stage::Source::norm) {
    const Command& norm = *stage.norm;
    kernels_.rmsnorm(norm.in->row(norm.first_row(params) + row), norm.weight, norm.eps, norm.in->width, scratch);
    if (norm.rounded) round_bf16(scratch, norm.in->width);
    x = scratch;
  } else {
    const AttendShape& shape = *stage.attend->shape;
    const detail::Runs runs = detail::runs_of(params);
    const AttendPart* parts = parts_.as<AttendPart>().data() + size_t{row} * shape.heads * kMaxRuns;
    for (uint32_t h = 0; h < shape.heads; ++h)
      kernels_.join(parts + h * kMaxRuns, runs.count(params.position + row), shape.layout.head_dim,
                    scratch + h * shape.layout.head_dim);
    x = scratch;
  }
  for (const Activations& a : out.kinds)
    if (a.data != nullptr) kernels_.quantize(x, row, a);
}

void CpuInterpreter::run_prepare(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker) {
  const Prepared out = activations(stage, rows, reinterpret_cast<uint8_t*>(shared_activations_.data()));
  float* scratch = scratch_[worker.index()].rows.as<float>().data();
  // A tile is a group: its rows share the records.
  worker.for_tiles((rows + kGroup - 1) / kGroup, 1, [&](uint32_t g) {
    for (uint32_t r = g * kGroup; r < std::min(rows, (g + 1) * kGroup); ++r) prepare_row(stage, params, r, out, scratch);
  });
}

CpuInterpreter::Prepared CpuInterpreter::stage_input(const Stage& stage, const StepParams& params, uint32_t rows,
                                                     WorkerPool::Worker& worker) {
  if (stage.prepared) return activations(stage, rows, reinterpret_cast<uint8_t*>(shared_activations_.data()));
  Scratch& s = scratch_[worker.index()];
  const Prepared out = activations(stage, rows, reinterpret_cast<uint8_t*>(s.activations.data()));
  for (uint32_t r = 0; r < rows; ++r) prepare_row(stage, params, r, out, s.rows.as<float>().data());
  return out;
}

void CpuInterpreter::project_tile(const Command& c, uint32_t tile, const Prepared& x, float* out) const {
  kernels_.matvec(c.matrix, tile, x[c.matrix.input], out);
}

void CpuInterpreter::run_project(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker) {
  // Made inside the first tile: only while it holds a tile may a worker read what the phase before wrote.
  std::optional<Prepared> x;
  float* tmp = scratch_[worker.index()].tile.as<float>().data();
  uint32_t tiles = 0;
  for (const Command* c : stage.commands) tiles += c->matrix.tiles();
  const uint32_t grain = detail::grain(tiles, stage.commands[0]->matrix.tile_bytes(), worker.count());
  worker.for_tiles(tiles, grain, [&](uint32_t t) {
    size_t i = 0;
    while (t >= stage.commands[i]->matrix.tiles()) t -= stage.commands[i++]->matrix.tiles();
    const Command& c = *stage.commands[i];
    if (!x) {
      detail::request(c.matrix, t);
      x = stage_input(stage, params, rows, worker);
    }
    project_tile(c, t, *x, tmp);
    const uint32_t n = std::min(kTileRows, c.matrix.rows - t * kTileRows);
    for (uint32_t r = 0; r < rows; ++r) detail::emit(tmp + r * kTileRows, n, c, c.out->row(r) + t * kTileRows);
  });
}

void CpuInterpreter::run_gated(const Stage& stage, const StepParams& params, uint32_t rows, WorkerPool::Worker& worker) {
  std::optional<Prepared> x;  // as in run_project
  const Command &gate = *stage.commands[0], &up = *stage.commands[1], &act = *stage.commands[2];
  float* tmp = scratch_[worker.index()].tile.as<float>().data();
  float* tmp_up = tmp + size_t{rows} * kTileRows;
  const uint32_t grain = detail::grain(gate.matrix.tiles(), gate.matrix.tile_bytes() + up.matrix.tile_bytes(), worker.count());
  worker.for_tiles(gate.matrix.tiles(), grain, [&](uint32_t t) {
    if (!x) {
      detail::request(gate.matrix, t);
      x = stage_input(stage, params, rows, worker);
    }
    project_tile(gate, t, *x, tmp);
    project_tile(up, t, *x, tmp_up);
    kernels_.swiglu(tmp, tmp_up, rows * kTileRows, tmp);
    const uint32_t n = std::min(kTileRows, gate.matrix.rows - t * kTileRows);
    for (uint32_t r = 0; r < rows; ++r) detail::emit(tmp + r * kTileRows, n, act, act.out->row(r) + t * kTileRows);
  });
}

void CpuInterpreter::run_store(const Stage& stage, const StepParams& params, WorkerPool::Worker& worker) {
  const Command& c = *stage.commands[0];
  const AttendShape& shape = *c.shape;
  const uint32_t dim = shape.layout.head_dim;
  // A tile is one KV head: rows of a group of 16 slots share cache lines.
  worker.for_tiles(shape.layout.heads, 1, [&](uint32_t h) {
    float key[kMaxHeadDim];
    for (uint32_t r = 0; r < params.rows; ++r) {
      const uint32_t position = params.position + r;
      const RopeRow rope = shape.rope_row(position);
      for (uint32_t i = h * shape.queries(); i < (h + 1) * shape.queries(); ++i)
        kernels_.rope(c.in->row(r) + i * dim, rope, shape.rope_dim, dim, c.out->row(r) + i * dim);
      kernels_.rope(c.in2->row(r) + h * dim, rope, shape.rope_dim, dim, key);
      kernels_.store_kv(shape.layout, shape.layer, h, position, key, c.in3->row(r) + h * dim);
    }
  });
}

void CpuInterpreter::run_attend_rows(const Stage& stage, const StepParams& params, WorkerPool::Worker& worker) {
  const Command& c = *stage.commands[0];
  const AttendShape& shape = *c.shape;
  const uint32_t dim = shape.layout.head_dim, queries = shape.queries();
  worker.for_tiles(params.rows * shape.layout.heads, 1, [&](uint32_t t) {
    // Rows of one KV head follow each other: its keys stay in the cache.
    const uint32_t h = t / params.rows, r = t % params.rows, position = params.position + r;
    const uint32_t chunks = std::bit_ceil(position / kSlots + 1);
    AttendPart* parts = detail::row_parts(parts_, worker.index() + kNarrowRows * kMaxRuns, shape.heads);
    kernels_.attend({shape.layout, shape.layer, h, queries, position, 0, chunks, shape.scale, c.in->row(r) + h * queries * dim},
                    parts);
    for (uint32_t i = 0; i < queries; ++i) kernels_.join(parts + i, 1, dim, c.out->row(r) + (h * queries + i) * dim);
  });
}

void CpuInterpreter::run_attend_runs(const Stage& stage, const StepParams& params, WorkerPool::Worker& worker) {
  const Command& store = *stage.commands[0];
  const AttendShape& shape = *store.shape;
  const uint32_t dim = shape.layout.head_dim, queries = shape.queries();
  const detail::Runs runs = detail::runs_of(params);
  Scratch& s = scratch_[worker.index()];
  float* q = s.q.as<float>().data();
  AttendPart* local = detail::row_parts(parts_, worker.index() + kNarrowRows * kMaxRuns, shape.heads);
  worker.for_tiles(shape.layout.heads * runs.total(), 1, [&](uint32_t t) {
    const uint32_t h = t / runs.total(), run = t % runs.total();
    const uint32_t begin = run * runs.chunks * kSlots, end = begin + runs.chunks * kSlots;
    float key[kMaxHeadDim];
    // The positions of this pass that lie in the run: no other tile of this head reads or writes them.
    for (uint32_t r = 0; r < params.rows; ++r) {
      const uint32_t position = params.position + r;
      if (position < begin || position >= end) continue;
      kernels_.rope(store.in2->row(r) + h * dim, shape.rope_row(position), shape.rope_dim, dim, key);
      kernels_.store_kv(shape.layout, shape.layer, h, position, key, store.in3->row(r) + h * dim);
    }
    for (uint32_t r = 0; r < params.rows; ++r) {
      const uint32_t position = params.position + r;
      if (position < begin) continue;
      for (uint32_t i = 0; i < queries; ++i)
        kernels_.rope(store.in->row(r) + (h * queries + i) * dim, shape.rope_row(position), shape.rope_dim, dim, q + i * dim);
      kernels_.attend({shape.layout, shape.layer, h, queries, position, run * runs.chunks, runs.chunks, shape.scale, q}, local);
      AttendPart* parts = parts_.as<AttendPart>().data() + (size_t{r} * shape.heads + h * queries) * kMaxRuns + run;
      for (uint32_t i = 0; i < queries; ++i) detail::copy_part(local[i], dim, parts[i * kMaxRuns]);
    }
  });
}

}  // namespace stet
