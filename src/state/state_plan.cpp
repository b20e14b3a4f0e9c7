#include "state/state_plan.h"

#include "base/error.h"

namespace stet {
namespace {

uint64_t state_chunk_bytes(const StateSpec& spec) {
  STET_CHECK(spec.ratio != 0 && kSlots % spec.ratio == 0);
  const uint64_t bytes = uint64_t{spec.width} * (kSlots / spec.ratio) * sizeof(float);
  return (bytes + 63) / 64 * 64;
}

}  // namespace

StatePlan plan_state(const ModelDesc& desc, KvFormat format) {
  StatePlan plan;
  plan.kv = {format, desc.kv_heads, desc.head_dim};
  if (format == KvFormat::q8 && desc.kv_heads != 0 && desc.head_dim % 32 != 0)
    fail(Code::kUnsupported,
         "the q8 KV cache needs attention heads of a multiple of 32 elements; this model has {}: use --kv f16",
         desc.head_dim);
  if (!desc.states.empty() && format != KvFormat::f32)
    fail(Code::kUnsupported, "stet keeps the cached rows of this model ({}) in f32 only so far: use --kv f32",
         desc.architecture);
  plan.kv.chunk_stride = plan.kv.chunk_bytes() * desc.layers;
  for (const StateSpec& spec : desc.states) plan.kv.chunk_stride += state_chunk_bytes(spec);
  return plan;
}

std::map<std::string, StateRows> place_states(const ModelDesc& desc, const StatePlan& plan, uint8_t* base) {
  std::map<std::string, StateRows> rows;
  uint8_t* next = base + plan.kv.chunk_bytes() * desc.layers;
  for (const StateSpec& spec : desc.states) {
    rows[spec.name] = {next, plan.chunk_bytes(), spec.width, spec.ratio};
    next += state_chunk_bytes(spec);
  }
  return rows;
}

}  // namespace stet
