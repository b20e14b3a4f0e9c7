#include "replay/cuda/launches.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/activations.h"
#include "replay/cuda/row_ops_cuda.h"

namespace stet {
namespace {

bool integer(const Command& c) { return c.matrix.input == ActKind::i8; }

void check_weights(const Command& c) {
  if (!has_cuda_weights(c.matrix.format) || c.matrix.input == ActKind::e4m3)
    fail(Code::kUnsupported, "command {} multiplies {} by {}, for which there is no CUDA kernel: use --device cpu",
         c.name, traits(c.matrix.format).name, act_name(c.matrix.input));
}

class StageCompiler {
 public:
  StageCompiler(const LoweredList& list, const Stage& stage, const Twins& twins, const CudaScratch& scratch)
      : list_(*list.list), stage_(stage), twins_(twins), scratch_(scratch), head_(list.list->rows == RowSet::head) {}

  std::vector<CudaLaunchFn> run() {
    switch (stage_.kind) {
      case Stage::Kind::rows:
        row_op(*stage_.commands[0]);
        break;
      case Stage::Kind::prepare:
        prepare();
        break;
      case Stage::Kind::project:
        project();
        break;
      case Stage::Kind::gated:
        gated();
        break;
      case Stage::Kind::store:
        store(*stage_.commands[0]);
        break;
      case Stage::Kind::attend_rows:
        attend_rows(*stage_.commands[0]);
        break;
      case Stage::Kind::attend_runs:
        attend_runs();
        break;
    }
    return std::move(out_);
  }

 private:
  void add(CudaLaunchFn launch) { out_.push_back(std::move(launch)); }
  float* twin(const Buffer* buffer) const { return twins_.of(buffer->data); }

  void row_op(const Command& c) {
    const CudaStep* step = scratch_.step;
    if (c.op == Op::embed) {
      check_weights(c);
      const CudaEmbed e = {c.matrix.format, twins_.of(c.matrix.data), c.matrix.cols, c.matrix.tile_bytes(), twin(c.out),
                           list_.width};
      return add([=](const CudaLaunch& on) { launch_embed(on, step, e); });
    }
    if (c.op == Op::rmsnorm) {
      CudaPrepare p = norm(c);
      p.out = twin(c.out);
      return add([=](const CudaLaunch& on) { launch_prepare(on, step, p); });
    }
    if (c.op != Op::swiglu) fail(Code::kUnsupported, "command {} has no CUDA kernel: use --device cpu", c.name);
    const float *gate = twin(c.in), *up = twin(c.in2);
    float* out = twin(c.out);
    const uint32_t width = c.in->width, rows = list_.width;
    add([=](const CudaLaunch& on) { launch_swiglu(on, step, gate, up, width, rows, out); });
  }

  CudaPrepare rows_of(const Buffer* in) const {
    CudaPrepare p;
    p.in = twin(in);
    p.width = in->width;
    p.rows = list_.width;
    p.head = head_;
    return p;
  }
  CudaPrepare norm(const Command& c) const {
    CudaPrepare p = rows_of(c.in);
    p.weight = twins_.of(c.weight);
    p.eps = c.eps;
    p.from_head = c.from_head;
    return p;
  }
  CudaPrepare joined(const Command& attend) const {
    CudaPrepare p = rows_of(attend.out);
    p.parts = scratch_.parts;
    p.heads = attend.shape->heads;
    p.head_dim = attend.shape->layout.head_dim;
    p.part_chunks = scratch_.chunks;
    return p;
  }

  void prepare() {
    CudaPrepare p = stage_.source == Stage::Source::norm   ? norm(*stage_.norm)
                    : stage_.source == Stage::Source::join ? joined(*stage_.attend)
                                                           : rows_of(stage_.input);
    for (const Command* c : stage_.commands) {
      if (c->op != Op::matvec) continue;
      if (integer(*c)) {
        p.i8 = scratch_.i8;
      } else {
        p.f32 = scratch_.f32;
      }
    }
    const CudaStep* step = scratch_.step;
    add([=](const CudaLaunch& on) { launch_prepare(on, step, p); });
  }

  CudaProduct product_of(const Command& c) const {
    check_weights(c);
    CudaProduct p;
    p.format = c.matrix.format;
    p.k = c.matrix.cols;
    p.tile_bytes = c.matrix.tile_bytes();
    if (stage_.prepared) {
      p.x = integer(c) ? scratch_.i8 : scratch_.f32;
    } else {
      p.source = source();
    }
    p.rows = list_.width;
    p.head = head_;
    p.accumulate = c.accumulate;
    return p;
  }
  CudaRowSource source() const {
    CudaRowSource s;
    switch (stage_.source) {
      case Stage::Source::buffer:
        s.in = twin(stage_.input);
        break;
      case Stage::Source::join:
        s.in = twin(stage_.attend->out);
        break;
      case Stage::Source::norm:
        s.in = twin(stage_.norm->in);
        s.weight = twins_.of(stage_.norm->weight);
        s.eps = stage_.norm->eps;
        s.from_head = stage_.norm->from_head;
        break;
    }
    return s;
  }
  CudaMatrix matrix_of(const Command& c, const Buffer* out) const {
    return {twins_.of(c.matrix.data), c.matrix.rows, twin(out), out->width};
  }

  // One launch for neighbours of the same format.
  void project() {
    const CudaStep* step = scratch_.step;
    for (size_t i = 0; i < stage_.commands.size();) {
      CudaProduct p = product_of(*stage_.commands[i]);
      for (; i < stage_.commands.size() && p.matrices < kCudaMatrices; ++i) {
        const Command& c = *stage_.commands[i];
        if (c.matrix.format != p.format || c.accumulate != p.accumulate) break;
        p.matrix[p.matrices++] = matrix_of(c, c.out);
      }
      add([=](const CudaLaunch& on) { launch_product(on, step, p); });
    }
  }

  void gated() {
    const Command &gate = *stage_.commands[0], &up = *stage_.commands[1], &act = *stage_.commands[2];
    const CudaStep* step = scratch_.step;
    CudaProduct p = product_of(gate);
    if (gate.matrix.format == up.matrix.format) {
      p.gated = true;
      p.matrices = 2;
      p.matrix[0] = matrix_of(gate, act.out);
      p.matrix[1] = matrix_of(up, act.out);
      return add([=](const CudaLaunch& on) { launch_product(on, step, p); });
    }
    project_one(gate);
    project_one(up);
    row_op(act);
  }
  void project_one(const Command& c) {
    CudaProduct p = product_of(c);
    p.matrices = 1;
    p.matrix[0] = matrix_of(c, c.out);
    const CudaStep* step = scratch_.step;
    add([=](const CudaLaunch& on) { launch_product(on, step, p); });
  }

  CudaAttend attend_of(const AttendShape& shape) const {
    CudaAttend a;
    a.layout = shape.layout;
    a.layer = twins_.of(shape.layer);
    a.heads = shape.heads;
    a.scale = shape.scale;
    a.rope_dim = shape.rope_dim;
    a.rope = twins_.of(shape.rope);
    a.parts = scratch_.parts;
    a.part_chunks = scratch_.chunks;
    a.rows = list_.width;
    return a;
  }
  CudaAttend projected(const Command& store) const {
    CudaAttend a = attend_of(*store.shape);
    a.q = twin(store.in);
    a.k = twin(store.in2);
    a.v = twin(store.in3);
    return a;
  }
  void store(const Command& c) {
    CudaAttend a = projected(c);
    a.rotated = twin(c.out);
    const CudaStep* step = scratch_.step;
    add([=](const CudaLaunch& on) { launch_store(on, step, a); });
  }
  void attend_runs() {
    CudaAttend a = projected(*stage_.commands[0]);
    if (list_.width == 1) {
      a.joined = twin(stage_.attend->out);
      a.counters = scratch_.counters;
    }
    const CudaStep* step = scratch_.step;
    add([=](const CudaLaunch& on) { launch_attend_step(on, step, a); });
  }
  // As many rows at a time as the parts have room for, joined to the attention buffer.
  void attend_rows(const Command& c) {
    const CudaStep* step = scratch_.step;
    for (uint32_t first = 0; first < list_.width; first += static_cast<uint32_t>(scratch_.part_rows)) {
      CudaAttend a = attend_of(*c.shape);
      a.q = twin(c.in);
      a.first_row = first;
      a.rows = std::min<uint32_t>(list_.width - first, static_cast<uint32_t>(scratch_.part_rows));
      CudaPrepare p = joined(c);
      p.out = twin(c.out);
      p.first_row = first;
      p.rows = a.rows;
      add([=](const CudaLaunch& on) { launch_attend(on, step, a); });
      add([=](const CudaLaunch& on) { launch_prepare(on, step, p); });
    }
  }

  const CommandList& list_;
  const Stage& stage_;
  const Twins& twins_;
  const CudaScratch& scratch_;
  const bool head_;
  std::vector<CudaLaunchFn> out_;
};

}  // namespace

CudaScratchSizes cuda_scratch_sizes(const std::vector<const LoweredList*>& lists, uint32_t context) {
  CudaScratchSizes s;
  for (const LoweredList* list : lists) {
    // Products take two groups of rows at a time.
    const uint32_t rows = (list->list->width + 2 * kCudaGroup - 1) / (2 * kCudaGroup) * 2 * kCudaGroup;
    for (const Command& c : list->list->commands) {
      if (c.op == Op::matvec) {
        uint64_t& bytes = integer(c) ? s.i8 : s.f32;
        bytes = std::max<uint64_t>(
            bytes, integer(c) ? cuda_i8_bytes(rows, c.matrix.cols) : cuda_f32_bytes(rows, c.matrix.cols));
      }
      if (c.op == Op::attend) s.kv_heads = std::max(s.kv_heads, c.shape->layout.heads);
      if (c.op == Op::attend)
        s.part_row_bytes = std::max<uint64_t>(
            s.part_row_bytes,
            cuda_part_bytes(c.shape->heads, c.shape->layout.head_dim, (context + kSlots - 1) / kSlots));
    }
  }
  return s;
}

std::vector<CudaLaunchFn> stage_launches(const LoweredList& list, const Stage& stage, const Twins& twins,
                                         const CudaScratch& scratch) {
  return StageCompiler(list, stage, twins, scratch).run();
}

}  // namespace stet
