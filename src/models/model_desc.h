// What a checkpoint is, as data: configuration, tensor table, layer program. Nothing outside a model's own file asks which
// architecture it is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/list_builder.h"
#include "weights/packed_model.h"
#include "weights/tensor_source.h"

namespace stet {

// What activations are rounded to (docs/numerics.md); results of different modes are never compared as equal.
enum class ActivationMode : uint8_t {
  a8,          // int8 in blocks of 32 where weights are integers, else f32
  f32,         // f32, and weights dequantised: the float reference path
  checkpoint,  // what the family's published checkpoints declare
};
std::string_view activation_mode_name(ActivationMode mode);

// Rotary position embedding: the angle of pair i at position p is p * frequency[i]; cosines and sines are multiplied by `factor`.
struct RopeSpec {
  std::vector<double> frequency;  // [rope_dim / 2]
  double factor = 1.0;
  bool single = false;  // frequencies and angles are rounded to f32, as a published reference computes them
};

// A tensor that the model needs. shape as in TensorInfo.
struct TensorSpec {
  std::string name;
  std::vector<uint64_t> shape;
};

// State of a layer that is no KV cache: a row of `width` elements for every `ratio` positions (kernels/common/state_rows.h). Rows are
// addressed by absolute position, so that a rollback only moves a cursor: what lies behind it is stored again before it is read.
struct StateSpec {
  std::string name;
  uint32_t width = 0;
  uint32_t ratio = 1;
  // The row at position t reads rows of positions t - reach + 1 .. t, so they go into a ring (state/state_plan.h; ratio 1 only).
  // 0: any row before, so they are kept for ever.
  uint32_t reach = 0;
  uint32_t ring = 0;  // rows of the ring, where it is not ring_rows(reach); REQUIRES: what a pass needs
  bool cached = false;  // kept in the format of the KV cache (f32, f16 or fp8); otherwise in f32
  uint32_t rotated = 0;  // of `cached` rows: elements at their end that are bf16 in mode `checkpoint`, the others being e4m3
};

struct ModelDesc;
struct DraftDesc;

// What the layer program may refer to while it records a list.
struct ModelWeights {
  const PackedModel& pack;
  const std::vector<AttendShape>& attend;  // one a layer
  const std::vector<RopeRows>& ropes;      // of ModelDesc::rope, then of further_ropes
  const std::map<std::string, StateRows>& states;  // by the names of ModelDesc::states

  const PackedMatrix& matrix(const std::string& name) const;
  const float* vector(const std::string& name) const;
  const StateRows& state(const std::string& name) const;
};

struct ModelDesc {
  std::string architecture;
  std::string name;
  uint32_t layers = 0, hidden = 0, ffn = 0, vocab = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;  // kv_heads 0: all that the model remembers is in `states`
  uint32_t context = 0;  // trained length, in tokens
  float norm_eps = 0.0f;
  float attention_scale = 0.0f;
  RopeSpec rope;
  std::vector<RopeSpec> further_ropes;  // where layers differ
  std::vector<StateSpec> states;
  bool has_checkpoint_mode = false;       // the family's reference rounds, and the layer program can
  bool declares_checkpoint_mode = false;  // and this file asks for it
  ActivationMode activations = ActivationMode::a8;
  bool tied = false;  // the head is the embedding table
  std::vector<TensorSpec> tensors;
  bool synthetic = false;
  std::shared_ptr<const DraftDesc> draft;  // models/draft_desc.h; null: the source has none, or was opened without it
  std::shared_ptr<const void> settings;  // what only the model's own file understands

  // The body of a step: from tokens to the residual stream of the last layer.
  void (*record_body)(const ModelDesc&, const ModelWeights&, ListBuilder&) = nullptr;
  // From the residual stream to logits.
  void (*record_head)(const ModelDesc&, const ModelWeights&, ListBuilder&) = nullptr;

  uint32_t rope_dim() const { return static_cast<uint32_t>(rope.frequency.size()) * 2; }
};

// Reads and checks the description. Throws Error(kInput) for contradictions and missing keys or tensors, Error(kUnsupported), by
// name, for an architecture, key, value or tensor that stet does not run.
ModelDesc describe_model(const TensorSource& source);

// `options` with what the weights of desc.activations need.
PackOptions pack_options_for(const ModelDesc& desc, PackOptions options);

// Settles desc.activations. asked: auto (what the file declares, else a8), a8, f32, checkpoint. Throws Error(kUsage) for another name,
// and for `checkpoint` where the family has no such mode.
void choose_activations(ModelDesc& desc, std::string_view asked);

}  // namespace stet
