#include "replay/cuda/launches.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/activations.h"
#include "replay/cuda/row_op_cuda.h"
#include "replay/cuda/spec_twins.h"

namespace stet {
namespace {

// Products of these formats have kernels of their own, which read planes.
bool takes_planes(const Command& c) { return pack_traits(c.matrix.format).plane_term != nullptr; }
bool integer(const Command& c) { return c.matrix.input == ActKind::i8; }

void check_product(const Command& c) {
  const bool known = takes_planes(c) ? c.matrix.input != ActKind::f32
                                     : has_cuda_weights(c.matrix.format) && c.matrix.input != ActKind::e4m3;
  if (!known)
    fail(Code::kUnsupported, "command {} multiplies {} by {}, for which there is no CUDA kernel: use --device cpu",
         c.name, traits(c.matrix.format).name, act_name(c.matrix.input));
}

using LaunchRowOp = void (*)(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op);

LaunchRowOp row_op_launch(const Command& c) {
  switch (c.op) {
#define ROW_OP(id) \
  case Op::id: return launch_##id;
#include "replay/row_ops.def"
#undef ROW_OP
    case Op::matvec:
    case Op::store:
    case Op::attend: break;
  }
  fail(Code::kInternal, "internal error: command {} is no row op", c.name);
}

class StageCompiler {
 public:
  StageCompiler(const LoweredList& list, const Stage& stage, const CudaPlaces& places)
      : list_(*list.list),
        stage_(stage),
        twins_(places.twins),
        experts_(places.experts),
        scratch_(places.scratch),
        head_(list.list->rows == RowSet::head) {}

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
  float* twin(const Buffer* buffer, uint32_t& width) const {
    if (buffer == nullptr) return nullptr;
    width = buffer->width;
    return twin(buffer);
  }

  void row_op(const Command& c) {
    const CudaStep* step = scratch_.step;
    add([=, launch = row_op_launch(c), op = row_op_of(c)](const CudaLaunch& on) { launch(on, step, op); });
  }
  CudaRowOp row_op_of(const Command& c) const {
    CudaRowOp op;
    op.in = twin(c.in, op.in_width);
    op.in2 = twin(c.in2, op.in2_width);
    op.in3 = twin(c.in3, op.in3_width);
    op.out = twin(c.out, op.out_width);
    op.rows = list_.width;
    op.head = head_;
    op.from_head = c.from_head;
    op.rounded = c.rounded;
    op.parts = c.parts;
    op.context = scratch_.context;
    op.weight = twins_.of(c.weight);
    op.eps = c.eps;
    op.matrix = c.matrix;
    op.matrix.data = twins_.of(c.matrix.data);
    op.spec = on_device(c.spec, twins_);
    if (const auto* experts = std::get_if<std::shared_ptr<const ExpertsSpec>>(&c.spec)) {
      const ExpertsSpec& e = **experts;
      op.experts = experts_.of(e.gate.empty() ? e.down : e.gate);
      op.experts_up = experts_.of(e.up);
    }
    if (const auto scratch = scratch_.ops.find(c.op); scratch != scratch_.ops.end()) op.scratch = scratch->second;
    return op;
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
    p.rounded = c.rounded;
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

  // The rows that the products of the stage read, before they are quantised.
  CudaPrepare stage_rows() const {
    switch (stage_.source) {
      case Stage::Source::norm: return norm(*stage_.norm);
      case Stage::Source::join: return joined(*stage_.attend);
      case Stage::Source::buffer: break;
    }
    return rows_of(stage_.input);
  }
  // What the products of the stage read, in each kind that one of them does. A launch makes planes of one kind.
  void prepare() {
    CudaPrepare first = stage_rows(), second = first;
    for (const Command* c : stage_.commands) {
      if (c->op != Op::matvec) continue;
      if (takes_planes(*c)) {
        const ActKind kind = c->matrix.input;
        CudaPrepare& p = first.planes == nullptr || first.planes_of == kind ? first : second;
        p.planes = scratch_.planes[static_cast<size_t>(kind)];
        p.planes_of = kind;
      } else if (integer(*c)) {
        first.i8 = scratch_.i8;
      } else {
        first.f32 = scratch_.f32;
      }
    }
    const CudaStep* step = scratch_.step;
    for (const CudaPrepare& p : {first, second})
      if (p.i8 != nullptr || p.f32 != nullptr || p.planes != nullptr)
        add([=](const CudaLaunch& on) { launch_prepare(on, step, p); });
  }

  uint8_t* prepared_input(const Command& c) const {
    if (takes_planes(c)) return scratch_.planes[static_cast<size_t>(c.matrix.input)];
    return integer(c) ? scratch_.i8 : scratch_.f32;
  }
  CudaProduct product_of(const Command& c) const {
    check_product(c);
    CudaProduct p;
    p.format = c.matrix.format;
    p.input = c.matrix.input;
    p.k = c.matrix.cols;
    p.tile_bytes = c.matrix.tile_bytes();
    if (stage_.prepared) {
      p.x = prepared_input(c);
    } else {
      p.source = source();
    }
    p.rows = list_.width;
    p.head = head_;
    p.accumulate = c.accumulate;
    p.rounded = c.rounded;
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
        s.rounded = stage_.norm->rounded;
        break;
    }
    return s;
  }
  CudaMatrix matrix_of(const Command& c, const Buffer* out) const {
    return {twins_.of(c.matrix.data), c.matrix.rows, twin(out), out->width};
  }

  static bool together(const CudaProduct& p, const Command& c) {
    return c.matrix.format == p.format && c.matrix.input == p.input && c.accumulate == p.accumulate && c.rounded == p.rounded;
  }
  // One launch for neighbours of the same kind.
  void project() {
    const CudaStep* step = scratch_.step;
    for (size_t i = 0; i < stage_.commands.size();) {
      CudaProduct p = product_of(*stage_.commands[i]);
      for (; i < stage_.commands.size() && p.matrices < kCudaMatrices; ++i) {
        const Command& c = *stage_.commands[i];
        if (!together(p, c)) break;
        p.matrix[p.matrices++] = matrix_of(c, c.out);
      }
      add([=](const CudaLaunch& on) { launch_product(on, step, p); });
    }
  }

  void gated() {
    const Command &gate = *stage_.commands[0], &up = *stage_.commands[1], &act = *stage_.commands[2];
    const CudaStep* step = scratch_.step;
    CudaProduct p = product_of(gate);
    if (together(p, up) && !takes_planes(gate)) {
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
  const ExpertTables& experts_;
  const CudaScratch& scratch_;
  const bool head_;
  std::vector<CudaLaunchFn> out_;
};

template <typename T>
void grow(T& size, T wanted) {
  size = std::max(size, wanted);
}

// rows: of the list, in whole groups.
void add_command(const Command& c, uint32_t width, uint32_t rows, uint32_t context, CudaScratchSizes& s) {
  const bool product = c.op == Op::matvec;
  if (product && takes_planes(c)) {
    grow<uint64_t>(s.planes[static_cast<size_t>(c.matrix.input)], cuda_plane_bytes(rows, c.matrix.cols));
  } else if (product) {
    grow<uint64_t>(integer(c) ? s.i8 : s.f32,
                   integer(c) ? cuda_i8_bytes(rows, c.matrix.cols) : cuda_f32_bytes(rows, c.matrix.cols));
  } else if (c.op == Op::attend) {
    grow(s.kv_heads, c.shape->layout.heads);
    grow<uint64_t>(s.part_row_bytes,
                   cuda_part_bytes(c.shape->heads, c.shape->layout.head_dim, (context + kSlots - 1) / kSlots));
  } else if (c.op != Op::store) {
    if (const uint64_t bytes = cuda_op_scratch(c, width, context); bytes != 0) grow(s.ops[c.op], bytes);
  }
}

}  // namespace

CudaScratchSizes cuda_scratch_sizes(const std::vector<const LoweredList*>& lists, uint32_t context) {
  CudaScratchSizes s;
  for (const LoweredList* list : lists) {
    // Products take two groups of rows at a time.
    const uint32_t width = list->list->width, rows = (width + 2 * kCudaGroup - 1) / (2 * kCudaGroup) * 2 * kCudaGroup;
    for (const Command& c : list->list->commands) add_command(c, width, rows, context, s);
  }
  return s;
}

std::vector<CudaLaunchFn> stage_launches(const LoweredList& list, const Stage& stage, const CudaPlaces& places) {
  return StageCompiler(list, stage, places).run();
}

}  // namespace stet
