#include "state/state_plan.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace stet {
namespace {

uint64_t round_up(uint64_t x, uint64_t unit) { return (x + unit - 1) / unit * unit; }

RowFormat row_format(const StateSpec& spec, KvFormat format) {
  if (!spec.cached) return RowFormat::f32;
  return format == KvFormat::fp8 ? RowFormat::fp8 : format == KvFormat::f16 ? RowFormat::f16 : RowFormat::f32;
}

// 0: the rows are kept for ever, as those of a window that is no shorter than the text.
uint32_t rows_of_ring(const ModelDesc& desc, const StateSpec& spec) {
  STET_CHECK(spec.reach == 0 || spec.ratio == 1);
  if (spec.reach == 0) return 0;
  const uint64_t rows = spec.ring != 0 ? spec.ring : ring_rows(spec.reach);
  STET_CHECK(rows >= uint64_t{spec.reach} - 1 + kWideRows);
  return rows < desc.context ? static_cast<uint32_t>(rows) : 0;
}

// Of a chunk, or of the whole ring.
uint64_t state_bytes(const StateSpec& spec, RowFormat format, uint32_t ring) {
  STET_CHECK(spec.ratio != 0 && kSlots % spec.ratio == 0);
  const StateRows shape{nullptr, 0, spec.width, spec.ratio, ring, format, spec.rotated};
  return round_up(shape.row_bytes() * (ring != 0 ? ring : shape.rows_of_chunk()), 64);
}

}  // namespace

uint64_t ring_rows(uint32_t reach) {
  return round_up(uint64_t{reach} - 1 + kWideRows + kReturnRows, std::bit_ceil(std::min(reach, kSlots)));
}

bool StatePlan::intact(uint32_t position, uint32_t written) const {
  if (rings.empty() || position == 0) return true;
  return position <= written && std::all_of(rings.begin(), rings.end(), [&](const Ring& r) {
           return written <= r.rows || position >= written - (r.rows - r.reach + 1);
         });
}

StatePlan plan_state(const ModelDesc& desc, KvFormat format) {
  StatePlan plan;
  plan.kv = {format, desc.kv_heads, desc.head_dim};
  if (format == KvFormat::q8 && desc.kv_heads != 0 && desc.head_dim % 32 != 0)
    fail(Code::kUnsupported,
         "the q8 KV cache needs attention heads of a multiple of 32 elements; this model has {}: use --kv f16",
         desc.head_dim);
  if (!desc.states.empty() && format == KvFormat::q8)
    fail(Code::kUnsupported, "stet keeps the cached rows of this model ({}) in f16, f32 or fp8: use --kv f16",
         desc.architecture);
  if (format == KvFormat::fp8 && (desc.states.empty() || desc.activations != ActivationMode::checkpoint))
    fail(Code::kUnsupported,
         "the fp8 cache holds rows that a checkpoint of DeepSeek V4 rounds to it (--activations checkpoint); this "
         "model ({}, "
         "{}) has none: use --kv f16",
         desc.architecture, activation_mode_name(desc.activations));
  plan.kv.chunk_stride = plan.kv.chunk_bytes() * desc.layers;
  for (const StateSpec& spec : desc.states) {
    const uint32_t ring = rows_of_ring(desc, spec);
    if (ring != 0) plan.rings.push_back({spec.reach, ring});
    (ring != 0 ? plan.fixed_bytes : plan.kv.chunk_stride) += state_bytes(spec, row_format(spec, format), ring);
  }
  return plan;
}

std::map<std::string, StateRows> place_states(const ModelDesc& desc, const StatePlan& plan, uint8_t* base) {
  std::map<std::string, StateRows> rows;
  uint8_t* next_ring = base;
  uint8_t* next = base + plan.fixed_bytes + plan.kv.chunk_bytes() * desc.layers;
  for (const StateSpec& spec : desc.states) {
    const uint32_t ring = rows_of_ring(desc, spec);
    uint8_t*& first = ring != 0 ? next_ring : next;
    const RowFormat format = row_format(spec, plan.kv.format);
    rows[spec.name] = {first, plan.chunk_bytes(), spec.width, spec.ratio, ring, format, spec.rotated};
    first += state_bytes(spec, format, ring);
  }
  return rows;
}

}  // namespace stet
