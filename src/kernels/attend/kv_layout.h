// The KV cache of one layer: chunks of 128 positions, each chunk holding, for every KV head, keys and values of its positions.
//
//   chunk c, head h:  keys    f32, f16  [group of 16 slots: 8][d: head_dim][16 slots]
//                             q8        [group: 8][block of 32 of d][d / 4: 8][16 slots][4] bytes, 128 above their value,
//                                       then [group: 8][block][16 slots] f32 scales
//                     values  f32, f16  [slot: 128][d: value_stride]
//                             q8        [slot: 128][d: value_stride] i8, then [slot: 128][block] f32 scales
//
// Slot s of chunk c is absolute position 128 c + s. Keys are transposed so that a vector lane is a position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stet {

constexpr uint32_t kSlots = 128;      // positions of a chunk
constexpr uint32_t kSlotGroup = 16;   // positions whose keys are interleaved

// fp8: no format of KV heads, but of the rows of models that keep theirs as state (kernels/common/fp8_row.h).
enum class KvFormat : uint8_t { f32, f16, q8, fp8 };

struct KvLayout {
  KvFormat format = KvFormat::f16;
  uint32_t heads = 0;     // KV heads
  uint32_t head_dim = 0;  // for q8 a multiple of 32
  size_t chunk_stride = 0;  // bytes from one chunk to the next: chunk_bytes() of all layers where they grow together

  uint32_t element_bytes() const { return format == KvFormat::f32 ? 4 : format == KvFormat::f16 ? 2 : 1; }
  uint32_t blocks() const { return head_dim / 32; }
  uint32_t value_stride() const { return (head_dim + 15) / 16 * 16; }
  size_t key_bytes() const {  // of one head of one chunk
    const size_t codes = size_t{kSlots} * head_dim * element_bytes();
    return format == KvFormat::q8 ? codes + size_t{kSlots} * blocks() * 4 : codes;
  }
  size_t value_bytes() const {
    const size_t codes = size_t{kSlots} * value_stride() * element_bytes();
    return format == KvFormat::q8 ? codes + size_t{kSlots} * blocks() * 4 : codes;
  }
  size_t chunk_bytes() const { return heads * (key_bytes() + value_bytes()); }
  // Bytes that one more position costs, over one layer.
  size_t token_bytes() const { return chunk_bytes() / kSlots; }

  uint8_t* keys(uint8_t* layer, uint32_t chunk, uint32_t head) const {
    return layer + chunk * chunk_stride + head * (key_bytes() + value_bytes());
  }
  uint8_t* values(uint8_t* layer, uint32_t chunk, uint32_t head) const { return keys(layer, chunk, head) + key_bytes(); }
};

}  // namespace stet
