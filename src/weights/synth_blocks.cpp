#include "weights/synth_blocks.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/fp.h"
#include "base/philox.h"
#include "formats/e8m0.h"
#include "formats/q6_k/q6_k.h"

namespace stet {
namespace {

constexpr uint32_t kPayload = 0;
constexpr uint32_t kScale = 1;
constexpr size_t kTableBits = 12;  // of a float element
constexpr size_t kUnitFloats = 8;

// Two counters in the 64-bit lanes of each vector; the upper half of a lane may hold rubbish between the rounds,
// because the multiplication reads the lower half only.
struct Lanes {
  __m128i c0, c1, c2, c3;
};

void philox_round(Lanes& x, __m128i k0, __m128i k1) {
  const __m128i a = _mm_mul_epu32(x.c0, _mm_set1_epi64x(0xD2511F53));
  const __m128i b = _mm_mul_epu32(x.c2, _mm_set1_epi64x(0xCD9E8D57));
  x = {_mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(b, 32), x.c1), k0), b,
       _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(a, 32), x.c3), k1), a};
}

void store_two(const Lanes& x, uint32_t* words) {
  const __m128i low = _mm_set1_epi64x(0xffffffff);
  const __m128i w01 = _mm_or_si128(_mm_and_si128(x.c0, low), _mm_slli_epi64(x.c1, 32));
  const __m128i w23 = _mm_or_si128(_mm_and_si128(x.c2, low), _mm_slli_epi64(x.c3, 32));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words), _mm_unpacklo_epi64(w01, w23));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words + 4), _mm_unpackhi_epi64(w01, w23));
}

// Eight counters at once: enough independent work to hide the multiplication's latency.
void philox_eight(uint64_t key, uint32_t stream, uint64_t first, uint32_t* words) {
  Lanes x[4];
  for (uint64_t i = 0; i < 4; ++i) {
    const __m128i counter =
        _mm_set_epi64x(static_cast<int64_t>(first + 2 * i + 1), static_cast<int64_t>(first + 2 * i));
    x[i] = {counter, _mm_srli_epi64(counter, 32), _mm_set1_epi64x(stream), _mm_setzero_si128()};
  }
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m128i k0 = _mm_set1_epi64x(key0), k1 = _mm_set1_epi64x(key1);
    for (Lanes& lanes : x) philox_round(lanes, k0, k1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (size_t i = 0; i < 4; ++i) store_two(x[i], words + 8 * i);
}

}  // namespace

void philox_fill(uint64_t key, uint32_t stream, uint64_t first, std::span<uint32_t> words) {
  STET_CHECK(words.size() % 4 == 0);
  const size_t counters = words.size() / 4;
  size_t i = 0;
  for (; i + 8 <= counters; i += 8) philox_eight(key, stream, first + i, words.data() + 4 * i);
  for (; i < counters; ++i) {
    const uint64_t n = first + i;
    const Philox x = philox4x32({{static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), stream, 0}},
                                static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
    std::memcpy(words.data() + 4 * i, x.word, sizeof(x.word));
  }
}

SynthBlocks::SynthBlocks(Format format, uint64_t key, float center, float deviation) : format_(format), key_(key) {
  const FormatTraits& t = traits(format);
  unit_bytes_ = t.block_elements == 1 ? kUnitFloats * t.block_bytes : t.block_bytes;
  STET_CHECK(t.block_elements == 1 || center == 0.0f);
  fill_tables(center, deviation);
}

void SynthBlocks::fill_tables(float center, float deviation) {
  // Scales lie evenly in 0.5 .. 1.5 of the base: their root mean square is sqrt(1 + 1/12) of it. Divisors are the root
  // mean squares of evenly spread codes: -8..7, 0..15 around 7.5, -127..127; Q6_K: -32..31 times sub-scales of 64..127.
  const float spread = deviation / 1.0408f;
  const auto scales = [&](float divisor, bool both_signs) {
    for (int i = 0; i < 256; ++i) {
      const float size = spread / divisor * (0.5f + (static_cast<float>(i / 2) + 0.5f) / 128.0f);
      table16_.push_back(f32_to_f16(both_signs && i % 2 == 1 ? -size : size));
      minima_.push_back(f32_to_f16(-7.5f * size));
    }
  };
  const auto floats = [&](auto&& add) {
    constexpr int n = 1 << kTableBits;
    const float half_width = deviation * 1.7320508f;
    for (int i = 0; i < n; ++i) add(center + half_width * (static_cast<float>(2 * i + 1 - n) / static_cast<float>(n)));
  };
  // Of 256 scales so many are the power of two above `size`, instead of that below, that their mean square is its
  // square.
  const auto powers = [&](float size) {
    const int e = exponent_above(size, 1.0f) - 1;
    const float ratio = size / power_of_two(e);
    const int above = static_cast<int>(256.0f * (ratio * ratio - 1.0f) / 3.0f + 0.5f);
    for (int i = 0; i < 256; ++i) table16_.push_back(static_cast<uint16_t>(127 + e + (i < above ? 1 : 0)));
  };
  switch (format_) {
    case Format::q4_0:
      return scales(4.637f, true);  // the codes' mean is -0.5: the sign of the scale evens it out
    case Format::q4_1:
      return scales(4.610f, false);
    case Format::q8_0:
      return scales(73.32f, false);
    case Format::q6_k:
      return table16_.push_back(f32_to_f16(deviation / (18.48f * 97.3f)));
    // Root mean squares of the codes: all bytes of e4m3, the largest standing in for NaN; all nibbles.
    case Format::e4m3:
      return powers(deviation / 107.2443f);
    case Format::mxfp4:
      return powers(deviation / 2.92617f);
    case Format::f16:
      return floats([&](float x) { table16_.push_back(f32_to_f16(x)); });
    case Format::bf16:
      return floats([&](float x) { table16_.push_back(f32_to_bf16(x)); });
    case Format::f32:
      return floats([&](float x) { table32_.push_back(x); });
  }
  STET_CHECK(false);
}

void SynthBlocks::read(uint64_t offset, std::span<std::byte> out) const {
  std::vector<std::byte> batch(kBatchUnits * unit_bytes_);
  uint64_t unit = offset / unit_bytes_;
  size_t skip = offset % unit_bytes_;
  while (!out.empty()) {
    const size_t units = std::min(kBatchUnits, (skip + out.size() + unit_bytes_ - 1) / unit_bytes_);
    make_units(unit, units, batch.data());
    const size_t bytes = std::min(out.size(), units * unit_bytes_ - skip);
    std::memcpy(out.data(), batch.data() + skip, bytes);
    out = out.subspan(bytes);
    unit += units;
    skip = 0;
  }
}

void SynthBlocks::make_units(uint64_t first, size_t units, std::byte* out) const {
  switch (format_) {
    case Format::q4_0:
    case Format::q4_1:
      return make_q4(first, units, out);
    case Format::q8_0:
      return make_q8(first, units, out);
    case Format::q6_k:
      return make_q6(first, units, out);
    case Format::e4m3:
    case Format::mxfp4:
      return make_powers(first, units, out);
    case Format::f16:
    case Format::bf16:
      return make_floats(table16_, first, units, out);
    case Format::f32:
      return make_floats(table32_, first, units, out);
  }
}

namespace {

// Words of the scale stream for blocks [first, first + units): word i is block i's, so four blocks share a counter.
template <size_t kUnits>
uint64_t fill_scale_words(uint64_t key, uint64_t first, size_t units, std::array<uint32_t, kUnits + 8>& words) {
  const uint64_t begin = first / 4, end = (first + units + 3) / 4;
  philox_fill(key, kScale, begin, std::span(words).first(4 * (end - begin)));
  return 4 * begin;
}

}  // namespace

// Block i: the 16 bytes of payload counter i; its scale from the upper byte of its scale word.
void SynthBlocks::make_q4(uint64_t first, size_t units, std::byte* out) const {
  std::array<uint32_t, kBatchUnits + 8> scale_words;
  std::array<uint32_t, 4 * kBatchUnits> payload;
  const uint64_t origin = fill_scale_words<kBatchUnits>(key_, first, units, scale_words);
  philox_fill(key_, kPayload, first, std::span(payload).first(4 * units));
  for (size_t i = 0; i < units; ++i, out += unit_bytes_) {
    const size_t choice = scale_words[first + i - origin] >> 24;
    std::memcpy(out, &table16_[choice], 2);
    if (format_ == Format::q4_1) std::memcpy(out + 2, &minima_[choice], 2);
    std::memcpy(out + unit_bytes_ - 16, payload.data() + 4 * i, 16);
  }
}

// Block i: the bytes of payload counters 2i and 2i + 1, with -128 (which no quantiser writes) made -127.
void SynthBlocks::make_q8(uint64_t first, size_t units, std::byte* out) const {
  std::array<uint32_t, kBatchUnits + 8> scale_words;
  std::array<uint32_t, 8 * kBatchUnits> payload;
  const uint64_t origin = fill_scale_words<kBatchUnits>(key_, first, units, scale_words);
  philox_fill(key_, kPayload, 2 * first, std::span(payload).first(8 * units));
  for (size_t i = 0; i < units; ++i, out += unit_bytes_) {
    std::memcpy(out, &table16_[scale_words[first + i - origin] >> 24], 2);
    for (size_t half = 0; half < 2; ++half) {
      const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(payload.data() + 8 * i + 4 * half));
      const __m128i lowest = _mm_cmpeq_epi8(q, _mm_set1_epi8(-128));  // -1 where true
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 + 16 * half), _mm_sub_epi8(q, lowest));
    }
  }
}

// Block i: ql and qh are the bytes of payload counters 12i .. 12i + 11; sub-scales from scale counter i: 64..127 of
// either sign.
void SynthBlocks::make_q6(uint64_t first, size_t units, std::byte* out) const {
  for (size_t i = 0; i < units; ++i, out += unit_bytes_) {
    BlockQ6_K block;
    uint32_t payload[48];
    static_assert(sizeof(payload) == sizeof(block.ql) + sizeof(block.qh));
    philox_fill(key_, kPayload, 12 * (first + i), payload);
    std::memcpy(block.ql, payload, sizeof(block.ql));
    std::memcpy(block.qh, payload + 32, sizeof(block.qh));
    uint32_t words[4];
    philox_fill(key_, kScale, first + i, words);
    uint8_t bytes[16];
    std::memcpy(bytes, words, 16);
    for (int s = 0; s < 16; ++s) {
      const int size = 64 + (bytes[s] & 63);
      block.sc[s] = static_cast<int8_t>(bytes[s] & 64 ? -size : size);
    }
    block.d = table16_[0];
    std::memcpy(out, &block, sizeof(block));
  }
}

// Block i: its scale from the upper byte of its scale word, then the bytes of as many payload counters as there are
// codes; of e4m3 those that are NaN become the largest value.
void SynthBlocks::make_powers(uint64_t first, size_t units, std::byte* out) const {
  std::array<uint32_t, kBatchUnits + 8> scale_words;
  const uint64_t origin = fill_scale_words<kBatchUnits>(key_, first, units, scale_words);
  const size_t counters = unit_bytes_ / 16;
  for (size_t i = 0; i < units; ++i, out += unit_bytes_) {
    out[0] = static_cast<std::byte>(table16_[scale_words[first + i - origin] >> 24]);
    uint32_t payload[32];
    philox_fill(key_, kPayload, counters * (first + i), std::span(payload).first(4 * counters));
    std::memcpy(out + 1, payload, 16 * counters);
    if (format_ != Format::e4m3) continue;
    for (size_t j = 1; j < unit_bytes_; ++j)
      if ((out[j] & std::byte{0x7f}) == std::byte{0x7f}) out[j] ^= std::byte{1};
  }
}

// Unit i: elements 8i .. 8i + 7, each chosen from the table by the upper bits of 16 bits of payload counter i.
template <typename T>
void SynthBlocks::make_floats(const std::vector<T>& table, uint64_t first, size_t units, std::byte* out) const {
  std::array<uint32_t, 4 * kBatchUnits> payload;
  philox_fill(key_, kPayload, first, std::span(payload).first(4 * units));
  for (size_t i = 0; i < 4 * units; ++i) {
    const T pair[2] = {table[(payload[i] & 0xffffu) >> (16 - kTableBits)], table[payload[i] >> (32 - kTableBits)]};
    std::memcpy(out + i * sizeof(pair), pair, sizeof(pair));
  }
}

}  // namespace stet
