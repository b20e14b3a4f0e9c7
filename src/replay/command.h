// Commands: the ops of one step over fixed addresses, recorded once (docs/design.md). A command is data; interpreters give it
// meaning. Values that change from step to step live in StepParams and nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pack.h"
#include "kernels/attend/attend.h"
#include "replay/op_specs.h"

namespace stet {

constexpr uint32_t kNarrowRows = 16;  // widest decode or verify pass
constexpr uint32_t kWideRows = 128;   // rows of a prompt pass

// What a step is about. Written by the host before a run, read by the commands.
struct StepParams {
  uint32_t rows = 0;            // tokens of this pass, 1 .. the list's width
  uint32_t position = 0;        // absolute position of row 0
  uint32_t head_first = 0;      // first row whose logits are wanted
  uint32_t head_rows = 0;       // how many, 0 .. kNarrowRows
  int32_t tokens[kWideRows] = {};
};

// A f32 buffer of the arena: (width of the list, width) floats.
struct Buffer {
  std::string name;
  uint32_t width = 0;  // floats a row
  float* data = nullptr;

  float* row(uint32_t r) const { return data + size_t{r} * width; }
};

// Everything attention needs to know of a layer's cache and rotation.
struct AttendShape {
  KvLayout layout;
  uint8_t* layer = nullptr;  // the layer's chunks
  uint32_t heads = 0;
  float scale = 1.0f;
  uint32_t rope_dim = 0;
  const float* rope = nullptr;  // [position][2][rope_dim]: cosines, then signed sines (RopeRow)

  uint32_t queries() const { return heads / layout.heads; }
  RopeRow rope_row(uint32_t position) const {
    const float* row = rope + size_t{position} * 2 * rope_dim;
    return {row, row + rope_dim};
  }
};

enum class Op : uint8_t {
  matvec,  // out = matrix * in, or out += matrix * in
  store,   // rotates q (in) to out, rotates k (in2), stores k and v (in3) at their positions
  attend,  // out = attention of q (in) over the cache
// embed:   out = row of `matrix` for each token
// rmsnorm: out = rmsnorm(in, weight)
// swiglu:  out = silu(in) * in2
// repeat:  out = in, as often as it fits
// hyper_gates: gates of the streams (in) and their products (in2); hyper_mix: a site's input of streams (in) and gates (in2);
//   hyper_post: streams of a site's output (in), the streams (in2) and gates (in3)
// turn_heads, cache_row: of in; cache_row stores its row
// pool_row: [in, in2 + position], stored; pool_entry: the entry that closes with it, or zeros
// choose_entries: of queries (in) and the weights of their heads (in2)
// union_attend: of q (in), over the entries listed in in2, where there is one
// grouped: matrix * in, group by group
// route: ids and weights, of the router's products (in)
// expert_gate: of in, by route (in2); expert_down: of that (in), by route (in2), plus in3
// swiglu_limit: swiglu with clamped inputs
// round_e4m3: in, in groups that share a power of two, rounded to e4m3
// mean_streams: the mean of the streams of in; join: [in, in2]; slice: a run of in
// keep_row: out = in, stored; load_row: out = what keep_row stored at the row's position
// block_attend: of q (in), over rows stored before the pass and those of the pass (in2)
#define ROW_OP(id) id,
#include "replay/row_ops.def"
#undef ROW_OP
};

struct Command {
  Op op = Op::matvec;
  std::string name;  // "blk.3.attn_q"
  const Buffer* in = nullptr;
  const Buffer* in2 = nullptr;
  const Buffer* in3 = nullptr;
  const Buffer* out = nullptr;
  PackedMatrix matrix;             // embed, matvec, grouped; route: the experts of every token
  bool accumulate = false;         // matvec: add to out
  const float* weight = nullptr;   // rmsnorm
  float eps = 0.0f;                // rmsnorm
  bool from_head = false;          // rmsnorm, repeat, join: row 0 of `in` is row head_first of the pass
  const AttendShape* shape = nullptr;  // store, attend
  OpSpec spec;                     // row ops that need more
  bool rounded = false;            // out is rounded to bf16, and so is a product that is added to it
  uint32_t parts = 1;              // row ops: into how many parts a row is cut; any worker may run any of them

  // The row of `in` that row 0 of `out` comes from.
  uint32_t first_row(const StepParams& params) const { return from_head ? params.head_first : 0; }

  // Bytes of weights that a run reads once, whatever the width.
  uint64_t weight_bytes() const { return op == Op::matvec ? matrix.bytes() : 0; }
};

// The rows a list works on: those of the pass, or those whose logits are wanted.
enum class RowSet : uint8_t { pass, head };

struct CommandList {
  uint32_t width = 0;  // rows at most
  RowSet rows = RowSet::pass;
  std::vector<Command> commands;
};

}  // namespace stet
