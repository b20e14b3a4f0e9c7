// Single elements of the KV cache: the reference reads them one by one, the vector code stores them with these.
#pragma once

#include <cstring>

#include "base/fp.h"
#include "kernels/attend/kv_layout.h"
#include "kernels/quantize/quantize_common.h"

namespace stet {

static inline uint8_t* key_address(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, uint32_t d) {
  const uint32_t slot = position % kSlots;
  uint8_t* keys = l.keys(layer, position / kSlots, head) + size_t{slot / kSlotGroup} * l.head_dim * kSlotGroup * l.element_bytes();
  const size_t element = l.format == KvFormat::q8 ? size_t{d / 4} * 64 + slot % kSlotGroup * 4 + d % 4
                                                  : size_t{d} * kSlotGroup + slot % kSlotGroup;
  return keys + element * l.element_bytes();
}

static inline float* key_scale(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, uint32_t block) {
  const uint32_t slot = position % kSlots;
  uint8_t* scales = l.keys(layer, position / kSlots, head) + size_t{kSlots} * l.head_dim;
  return reinterpret_cast<float*>(scales) + (size_t{slot / kSlotGroup} * l.blocks() + block) * kSlotGroup + slot % kSlotGroup;
}

static inline uint8_t* value_address(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, uint32_t d) {
  return l.values(layer, position / kSlots, head) + (size_t{position % kSlots} * l.value_stride() + d) * l.element_bytes();
}

static inline float* value_scale(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, uint32_t block) {
  uint8_t* scales = l.values(layer, position / kSlots, head) + size_t{kSlots} * l.value_stride();
  return reinterpret_cast<float*>(scales) + size_t{position % kSlots} * l.blocks() + block;
}

// f32 and f16 elements.
static inline void put_element(const KvLayout& l, uint8_t* p, float x) {
  if (l.format == KvFormat::f32) {
    std::memcpy(p, &x, 4);
  } else {
    const uint16_t h = f32_to_f16(x);
    std::memcpy(p, &h, 2);
  }
}

static inline float get_element(const KvLayout& l, const uint8_t* p) {
  if (l.format == KvFormat::f32) {
    float x;
    std::memcpy(&x, p, 4);
    return x;
  }
  uint16_t h;
  std::memcpy(&h, p, 2);
  return f16_to_f32(h);
}

static inline int key_code(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, uint32_t d) {
  return *key_address(l, layer, head, position, d) - 128;
}

static inline float key_element(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, uint32_t d) {
  return get_element(l, key_address(l, layer, head, position, d));
}

static inline float value_element(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, uint32_t d) {
  const uint8_t* p = value_address(l, layer, head, position, d);
  if (l.format != KvFormat::q8) return get_element(l, p);
  return static_cast<float>(static_cast<int8_t>(*p)) * *value_scale(l, layer, head, position, d / 32);
}

struct QuantizedBlock {
  float d;
  int8_t q[32];
};

static inline QuantizedBlock quantize_block(const float* x) {
  uint32_t max_bits = 0;
  for (int i = 0; i < 32; ++i) {
    const uint32_t bits = bits_of_float(x[i]) & 0x7fffffffu;
    max_bits = bits > max_bits ? bits : max_bits;
  }
  const BlockScale scale = block_scale(max_bits);
  QuantizedBlock out = {scale.d, {}};
  if (scale.inverse == 0.0f) return out;
  for (int i = 0; i < 32; ++i) {
    const float q = rint32(x[i] * scale.inverse);
    out.q[i] = static_cast<int8_t>(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
  }
  return out;
}

static inline void store_kv_q8(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, const float* key,
                               const float* value) {
  for (uint32_t b = 0; b < l.blocks(); ++b) {
    const QuantizedBlock k = quantize_block(key + b * 32), v = quantize_block(value + b * 32);
    *key_scale(l, layer, head, position, b) = k.d;
    *value_scale(l, layer, head, position, b) = v.d;
    for (uint32_t i = 0; i < 32; ++i) {
      *key_address(l, layer, head, position, b * 32 + i) = static_cast<uint8_t>(k.q[i] + 128);
      *value_address(l, layer, head, position, b * 32 + i) = static_cast<uint8_t>(v.q[i]);
    }
  }
}

}  // namespace stet
