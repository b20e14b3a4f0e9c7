#include "lab/diff/cache_compare.h"

#include "base/fp.h"
#include "kernels/attend/kv_element.h"

namespace stet {
namespace {

struct Element {
  uint32_t bits = 0;
  float value = 0;
};

Element element_at(const KvLayout& l, const uint8_t* p) {
  if (l.format == KvFormat::q8) return {*p, static_cast<float>(static_cast<int8_t>(*p))};
  const float value = get_element(l, p);
  if (value != value) return {l.format == KvFormat::f16 ? 0x7e00u : 0x7fc00000u, value};
  if (l.format == KvFormat::f32) return {bits_of_float(value), value};
  uint16_t half;
  std::memcpy(&half, p, 2);
  return {half, value};
}

Element scale_at(const float* p) { return {*p == *p ? bits_of_float(*p) : 0x7fc00000u, *p}; }

// One head of one position of a layer, on both sides.
class HeadComparison {
 public:
  HeadComparison(const std::array<const Decoder*, 2>& decoders, uint32_t layer, uint32_t position, uint32_t head)
      : decoders_(decoders), layout_(decoders[0]->kv_layout()), at_{layer, position, head, "", 0, {}, {}} {}

  bool differs(uint64_t* compared) {
    const uint32_t dim = layout_.head_dim, blocks = layout_.format == KvFormat::q8 ? layout_.blocks() : 0;
    *compared += 2 * (dim + blocks);
    const bool equal =
        same("key scales", blocks,
             [&](uint8_t* l, uint32_t i) { return scale_at(key_scale(layout_, l, at_.head, at_.position, i)); }) &&
        same("keys", dim, [&](uint8_t* l, uint32_t i) { return key(l, i); }) &&
        same("value scales", blocks,
             [&](uint8_t* l, uint32_t i) { return scale_at(value_scale(layout_, l, at_.head, at_.position, i)); }) &&
        same("values", dim, [&](uint8_t* l, uint32_t i) {
          return element_at(layout_, value_address(layout_, l, at_.head, at_.position, i));
        });
    return !equal;
  }
  const CacheMismatch& mismatch() const { return at_; }

 private:
  Element key(uint8_t* layer, uint32_t i) const {
    if (layout_.format != KvFormat::q8)
      return element_at(layout_, key_address(layout_, layer, at_.head, at_.position, i));
    // Key codes are stored 128 above their value.
    return {*key_address(layout_, layer, at_.head, at_.position, i),
            static_cast<float>(key_code(layout_, layer, at_.head, at_.position, i))};
  }

  template <typename Read>
  bool same(const char* tensor, uint32_t n, const Read& read) {
    uint8_t *first = decoders_[0]->kv_layer(at_.layer), *second = decoders_[1]->kv_layer(at_.layer);
    for (uint32_t i = 0; i < n; ++i) {
      const Element a = read(first, i), b = read(second, i);
      if (a.bits == b.bits) continue;
      at_.tensor = tensor;
      at_.index = i;
      at_.bits = {a.bits, b.bits};
      at_.values = {a.value, b.value};
      return false;
    }
    return true;
  }

  const std::array<const Decoder*, 2>& decoders_;
  const KvLayout& layout_;
  CacheMismatch at_;
};

}  // namespace

std::optional<CacheMismatch> compare_cache(const std::array<const Decoder*, 2>& decoders, uint32_t first,
                                           uint32_t count, uint64_t* compared) {
  const uint32_t heads = decoders[0]->kv_layout().heads;
  for (uint32_t layer = 0; layer < decoders[0]->desc().layers; ++layer)
    for (uint32_t position = first; position < first + count; ++position)
      for (uint32_t head = 0; head < heads; ++head) {
        HeadComparison one(decoders, layer, position, head);
        if (one.differs(compared)) return one.mismatch();
      }
  return std::nullopt;
}

}  // namespace stet
