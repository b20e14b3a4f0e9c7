#include "kernels/attend/attend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernels_test_util.h"

namespace stet {
namespace {

using test::Fill;

struct Cache {
  KvLayout layout;
  std::vector<float> keys, values;  // [position][kv head][head_dim]
  std::vector<uint8_t> bytes;
};

Cache make_cache(const Kernels& k, KvFormat format, uint32_t heads, uint32_t head_dim, uint32_t positions, Fill fill) {
  Cache c;
  c.layout = {format, heads, head_dim};
  c.layout.chunk_stride = c.layout.chunk_bytes();
  c.keys = test::make_values(size_t{positions} * heads * head_dim, fill, 1);
  c.values = test::make_values(size_t{positions} * heads * head_dim, fill, 2);
  // Slots that were never written hold NaN patterns: nothing of them may show.
  c.bytes.assign(c.layout.chunk_bytes() * ((positions + kSlots - 1) / kSlots), 0xff);
  for (uint32_t p = 0; p < positions; ++p)
    for (uint32_t h = 0; h < heads; ++h) {
      const size_t at = (size_t{p} * heads + h) * head_dim;
      k.store_kv(c.layout, c.bytes.data(), h, p, c.keys.data() + at, c.values.data() + at);
    }
  return c;
}

std::vector<float> run_attend(const Kernels& k, Cache& c, uint32_t queries, uint32_t position, uint32_t run_chunks, Fill fill) {
  const uint32_t dim = c.layout.head_dim;
  const std::vector<float> q = test::make_values(size_t{queries} * dim, fill, position);
  std::vector<float> y(size_t{queries} * dim);
  std::vector<AttendPart> parts;
  const uint32_t chunks = position / kSlots + 1;
  for (uint32_t first = 0; first < chunks; first += run_chunks) {
    std::vector<AttendPart> run_parts(queries);
    k.attend({c.layout, c.bytes.data(), c.layout.heads - 1, queries, position, first, run_chunks, 0.125f, q.data()},
             run_parts.data());
    parts.insert(parts.end(), run_parts.begin(), run_parts.end());
  }
  const uint32_t count = static_cast<uint32_t>(parts.size()) / queries;
  for (uint32_t i = 0; i < queries; ++i) {
    std::vector<AttendPart> mine;
    for (uint32_t r = 0; r < count; ++r) mine.push_back(parts[r * queries + i]);
    k.join(mine.data(), count, dim, y.data() + i * dim);
  }
  return y;
}

class AttendTest : public testing::TestWithParam<KvFormat> {};

TEST_P(AttendTest, EqualsTheReference) {
  for (uint32_t dim : {32u, 64u, 128u, 96u, 40u, 256u, 10u, 20u, 6u}) {
    if (GetParam() == KvFormat::q8 && dim % 32 != 0) continue;
    for (Fill fill : {Fill::normal, Fill::tiny, Fill::nonfinite}) {
      Cache want_cache = make_cache(kernels(Isa::scalar), GetParam(), 2, dim, 300, fill);
      for (Isa isa : available_isas()) {
        Cache cache = make_cache(kernels(isa), GetParam(), 2, dim, 300, fill);
        ASSERT_EQ(cache.bytes, want_cache.bytes) << isa_name(isa);
        for (uint32_t queries : {1u, 2u, 3u, 4u, 7u})
          for (uint32_t position : {0u, 1u, 15u, 16u, 126u, 127u, 128u, 200u, 299u}) {
            const auto want = run_attend(kernels(Isa::scalar), want_cache, queries, position, 4, fill);
            const auto got = run_attend(kernels(isa), cache, queries, position, 4, fill);
            const size_t i = test::first_difference(got.data(), want.data(), got.size());
            ASSERT_EQ(i, got.size()) << isa_name(isa) << " dim " << dim << " queries " << queries << " position " << position
                                     << ": " << got[i] << " " << want[i];
          }
      }
    }
  }
}

// Any aligned split of the chunks gives the same bits: the join tree is over the chunk index.
TEST_P(AttendTest, SplitsAreInvisible) {
  for (Isa isa : available_isas()) {
    if (isa == Isa::scalar) continue;
    Cache cache = make_cache(kernels(isa), GetParam(), 1, 64, 1400, Fill::normal);
    for (uint32_t position : {500u, 900u, 1300u, 1399u}) {
      const auto want = run_attend(kernels(isa), cache, 3, position, 16, Fill::normal);
      for (uint32_t run : {1u, 2u, 4u, 8u}) EXPECT_EQ(run_attend(kernels(isa), cache, 3, position, run, Fill::normal), want);
    }
  }
}

// Against softmax attention in double on the same cached values.
TEST_P(AttendTest, IsCloseToDouble) {
  const uint32_t dim = 64, position = 290;
  Cache c = make_cache(kernels(Isa::scalar), KvFormat::f32, 1, dim, 300, Fill::normal);
  const std::vector<float> q = test::make_values(dim, Fill::normal, position);
  const auto got = run_attend(kernels(Isa::scalar), c, 1, position, 8, Fill::normal);
  std::vector<double> weight(position + 1);
  double total = 0;
  for (uint32_t p = 0; p <= position; ++p) {
    double dot = 0;
    for (uint32_t d = 0; d < dim; ++d) dot += double{q[d]} * c.keys[size_t{p} * dim + d];
    total += weight[p] = std::exp(dot * 0.125);
  }
  for (uint32_t d = 0; d < dim; ++d) {
    double want = 0, magnitude = 0;
    for (uint32_t p = 0; p <= position; ++p) {
      want += weight[p] / total * c.values[size_t{p} * dim + d];
      magnitude += weight[p] / total * std::abs(c.values[size_t{p} * dim + d]);
    }
    // 128 fma in a chunk, its exp and score errors of a few ulp, and the joins.
    EXPECT_NEAR(got[d], want, 160 * 0x1p-23 * magnitude);
  }
}

INSTANTIATE_TEST_SUITE_P(AllKv, AttendTest, testing::Values(KvFormat::f32, KvFormat::f16, KvFormat::q8));

}  // namespace
}  // namespace stet
