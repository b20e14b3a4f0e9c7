// Rules of the references that have no vector code: ties, what is read and what is not, accuracy against binary64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include "kernels/common/state_row_values.h"
#include "kernels/entries/entries.h"
#include "kernels/experts/experts.h"
#include "kernels/heads/heads.h"
#include "kernels/hyper/hyper.h"
#include "kernels/kernels_test_util.h"
#include "kernels/route/route.h"
#include "kernels/union_attend/union_attend.h"

namespace stet {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

double softplus64(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// exp, the logarithm, the root and two quotients err by less than eight units of the last place together.
TEST(Route, WeightsHaveTheScoresRelativeAccuracy) {
  const float bias[2] = {0, 0};
  const RouteSpec spec{2, 2, 1.0f, bias};
  for (float x = -80.0f; x < 80.0f; x += 0.0371f) {
    const float logits[2] = {x, 0.0f};
    float out[4];
    route_ref(spec, logits, nullptr, out);
    const float of_x = out[0] == 0.0f ? out[2] : out[3], of_zero = out[0] == 0.0f ? out[3] : out[2];
    const double want = std::sqrt(softplus64(static_cast<double>(x)) / softplus64(0.0));
    EXPECT_NEAR(static_cast<double>(of_x) / static_cast<double>(of_zero) / want, 1.0, 8 * 0x1p-23) << x;
  }
}

TEST(Route, BiasChoosesAndDoesNotWeigh) {
  const float bias[4] = {0, 5, 0, 0}, logits[4] = {1, -2, 1, 1};
  const RouteSpec spec{4, 2, 1.5f, bias};
  float out[4], table[4];
  route_ref(spec, logits, nullptr, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 0.0f) << "of equals the first";
  const float ids[2] = {1, 0};
  const RouteSpec by_table{4, 2, 1.5f, nullptr};
  route_ref(by_table, logits, ids, table);
  EXPECT_TRUE(std::equal(out, out + 4, table));
  EXPECT_NEAR(out[2] + out[3], 1.5f, 1e-6f);
}

TEST(Route, NaNIsTheWorstScore) {
  const float bias[3] = {0, 0, 0}, logits[3] = {kNaN, -50, -60};
  float out[4];
  route_ref({3, 2, 1.0f, bias}, logits, nullptr, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 2.0f);
}

// A state in memory of its own, everything NaN that is not set.
struct State {
  State(uint32_t width, uint32_t ratio, uint32_t chunks) : data(size_t{chunks} * kSlots / ratio * width, kNaN) {
    rows = {reinterpret_cast<uint8_t*>(data.data()), size_t{kSlots} / ratio * width * sizeof(float), width, ratio};
  }
  std::vector<float> data;
  StateRows rows;
};

TEST(StateRows, AreRoundedWhenTheyAreStoredAndLieWhereTheirFormatSays) {
  std::vector<uint16_t> data(64, 0x7e00);
  StateRows rows{reinterpret_cast<uint8_t*>(data.data()), 0, 3, 1, 5, RowFormat::f16};
  EXPECT_EQ(rows.row_bytes(), 6u);
  const float x[3] = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 70000.0f};
  store_row(rows, 7, x);
  EXPECT_EQ(data[2 * 3], 0x3c00) << "row 7 of a ring of 5; a tie goes to the even one";
  EXPECT_EQ(data[2 * 3 + 1], 0x3c02);
  EXPECT_EQ(data[2 * 3 + 3], 0x7e00) << "nothing behind it was touched";
  float space[3];
  const float* back = load_row(rows, 2, space);
  EXPECT_EQ(back[1], 1.0f + 0x1p-9f);
  EXPECT_EQ(back[2], std::numeric_limits<float>::infinity());
  rows.ring = 0;
  rows.ratio = 64;
  rows.chunk_stride = 32;
  EXPECT_EQ(rows.at(3), rows.first + 32 + 6);
  float one[3] = {1, 2, 3};
  const StateRows floats{reinterpret_cast<uint8_t*>(one), 0, 3, 1, 1};
  EXPECT_EQ(load_row(floats, 4, space), one) << "f32 is read in its place";
}

TEST(Entries, OverlappingOnesTakeTheFirstHalfOfTheRowsBefore) {
  State rows(4, 1, 1), entries(1, 2, 1);  // c: {to the next entry, own}, z likewise
  for (uint32_t t = 0; t < 4; ++t) {
    const float v = static_cast<float>(t);
    const float row[4] = {10 + v, 20 + v, 0, 0};
    std::copy_n(row, 4, rows.rows.row(t));
  }
  const PoolSpec spec{rows.rows, entries.rows, true};
  float e;
  pool_entry_ref(spec, 0, &e);
  EXPECT_EQ(e, 20.5f) << "rows 0 and 1 with their own halves";
  pool_entry_ref(spec, 1, &e);
  EXPECT_EQ(e, (10.0f + 11.0f + 22.0f + 23.0f) / 4);
  pool_entry_ref({rows.rows, entries.rows, false}, 1, &e);
  EXPECT_EQ(e, 22.5f);
}

TEST(Entries, TheBestAreListedInAscendingOrder) {
  State keys(8, 4, 2);
  for (uint32_t j = 0; j < 40; ++j) std::fill_n(keys.rows.row(j), 8, j == 7 || j == 31 || j == 33 ? 1.0f : 0.5f);
  const float q[8] = {1, 1, 1, 1, 1, 1, 1, 1}, weight[1] = {1};
  float chosen[5];
  const ChooseSpec spec{keys.rows, 1, 5, 1.0f};
  choose_entries_ref(spec, 4 * 40 - 1, q, weight, chosen);
  EXPECT_EQ(std::vector<float>(chosen, chosen + 5), (std::vector<float>{0, 1, 7, 31, 33}));
  choose_entries_ref(spec, 4 * 40 - 2, q, weight, chosen);
  EXPECT_EQ(chosen[4], 33.0f) << "entry 39 is not closed yet, and none of the chosen";
  choose_entries_ref(spec, 4 * 3 + 2, q, weight, chosen);
  EXPECT_EQ(std::vector<float>(chosen, chosen + 5), (std::vector<float>{0, 1, 2, -1, -1}))
      << "no more than five: all of them";
}

TEST(UnionAttend, ReadsTheWindowAndTheEntriesThatTheRowSeesAndNothingElse) {
  State rows(8, 1, 3), entries(8, 4, 3);
  const uint32_t t = 200, window = 100;
  for (uint32_t p = t - window + 1; p <= t; ++p) std::fill_n(rows.rows.row(p), 8, 2.0f);
  for (uint32_t j = 0; j < (t + 1) / 4; ++j) std::fill_n(entries.rows.row(j), 8, 4.0f);
  const float sink = -1e30f, q[8] = {};
  float y[8];
  UnionSpec spec{rows.rows, {}, window, 0, 1, 1.0f, &sink};
  union_attend_ref(spec, 0, t, q, nullptr, y);
  EXPECT_EQ(y[3], 2.0f);
  spec.entries = entries.rows;
  union_attend_ref(spec, 0, t, q, nullptr, y);
  EXPECT_NEAR(y[3], (100 * 2.0f + 50 * 4.0f) / 150, 1e-6f);
  spec.top = 3;
  const float chosen[3] = {1, 5, 49};
  union_attend_ref(spec, 0, t, q, chosen, y);
  EXPECT_NEAR(y[3], (100 * 2.0f + 3 * 4.0f) / 103, 1e-6f);
}

// The window before the block and every row of the block, from every place in it; the block takes no room in the
// window.
TEST(BlockAttend, ReadsTheWindowBeforeAndTheWholeBlock) {
  State rows(8, 1, 3);
  const uint32_t t = 200, window = 100, n = 7;
  for (uint32_t p = t - window; p < t; ++p) std::fill_n(rows.rows.row(p), 8, 2.0f);
  const std::vector<float> block(n * 8, 5.0f);
  const float sink = -1e30f, q[8] = {};
  float y[8];
  const UnionSpec spec{rows.rows, {}, window, 0, 1, 1.0f, &sink};
  block_attend_ref(spec, 0, t, q, block.data(), n, y);
  EXPECT_NEAR(y[3], (100 * 2.0f + 7 * 5.0f) / 107, 1e-6f);
  std::fill_n(rows.rows.row(0), 8, 2.0f);
  block_attend_ref(spec, 0, 1, q, block.data(), n, y);
  EXPECT_NEAR(y[3], (2.0f + 7 * 5.0f) / 8, 1e-6f) << "fewer rows than the window";
}

// With a block of one row the list is that of union_attend at its position, but for one row more.
TEST(BlockAttend, OneRowIsTheRowOfAWindowOneLonger) {
  State rows(8, 1, 3);
  for (uint32_t p = 0; p < 3 * kSlots; ++p)
    for (uint32_t d = 0; d < 8; ++d) rows.rows.row(p)[d] = static_cast<float>((p * 8 + d) * 37 % 101) / 50 - 1;
  const float sink = 0.25f, q[8] = {1, -1, 0.5f, 2, 0, 1, -0.25f, 1};
  float want[8], got[8];
  for (const uint32_t t : {1u, 20u, kSlots, kSlots + 1, 2 * kSlots}) {
    union_attend_ref({rows.rows, {}, 31, 0, 1, 0.5f, &sink}, 0, t, q, nullptr, want);
    block_attend_ref({rows.rows, {}, 30, 0, 1, 0.5f, &sink}, 0, t, q, rows.rows.row(t), 1, got);
    for (uint32_t d = 0; d < 8; ++d) EXPECT_NEAR(got[d], want[d], 1e-6f) << t;
  }
}

TEST(UnionAttend, TheSinkTakesItsShare) {
  State rows(8, 1, 1);
  std::fill_n(rows.rows.row(0), 8, 1.0f);
  const float sink = 8.0f, q[8] = {1, 1, 1, 1, 1, 1, 1, 1};  // the only key has the same logit
  float y[8];
  union_attend_ref({rows.rows, {}, 8, 0, 1, 1.0f, &sink}, 0, 0, q, nullptr, y);
  EXPECT_EQ(y[0], 0.5f);
}

TEST(Heads, InverseRotationTurnsBackAndTheBeginningStays) {
  const float cos[4] = {0.6f, 0.6f, 1.0f, 1.0f}, sin[4] = {-0.8f, 0.8f, -0.0f, 0.0f};
  float x[6] = {1, 2, 3, 4, 5, 6};
  rotate_tail_ref(x, 6, {cos, sin}, 4, false);
  EXPECT_EQ(x[1], 2.0f);
  EXPECT_EQ(x[2], 3 * 0.6f + 4 * -0.8f);
  EXPECT_EQ(x[3], 4 * 0.6f + 3 * 0.8f);
  rotate_tail_ref(x, 6, {cos, sin}, 4, true);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(x[i], static_cast<float>(i + 1), 1e-6f);
}

TEST(Hyper, CombIsDoublyStochasticAndTheSumRunsOverItsFirstIndex) {
  constexpr uint32_t m = 4, hidden = 8;
  std::vector<float> streams(m * hidden), mix(m * (2 + m)), base(mix.size(), 0.1f), gates(mix.size());
  for (size_t i = 0; i < streams.size(); ++i) streams[i] = static_cast<float>(i % 7) - 3.0f;
  for (size_t i = 0; i < mix.size(); ++i) mix[i] = static_cast<float>(i * i % 11) - 5.0f;
  const float scale[3] = {1, 1, 1};
  hyper_gates_ref({m, 20, 1e-6f, 1e-6f, base.data(), scale}, streams.data(), hidden, mix.data(), gates.data());
  const float* comb = gates.data() + 2 * m;
  for (uint32_t k = 0; k < m; ++k) {
    float column = 0, row = 0;
    for (uint32_t j = 0; j < m; ++j) column += comb[j * m + k], row += comb[k * m + j];
    EXPECT_NEAR(column, 1.0f, 1e-5f);
    EXPECT_NEAR(row, 1.0f, 1e-3f);
  }
  std::vector<float> none(hidden, 0.0f), out(streams.size()), same = streams;
  hyper_post_ref(m, none.data(), streams.data(), hidden, gates.data(), out.data());
  float want = 0;
  for (uint32_t j = 0; j < m; ++j) want += comb[j * m + 2] * streams[j * hidden + 5];
  EXPECT_NEAR(out[2 * hidden + 5], want, 1e-5f);
  hyper_post_ref(m, none.data(), same.data(), hidden, gates.data(), same.data());
  EXPECT_EQ(same, out) << "in place";
}

TEST(Experts, OnlyTheUpperEndOfTheGateIsClamped) {
  const float gate[4] = {5, -5, 1, kNaN}, up[4] = {5, -5, 1, 1};
  float y[4];
  swiglu_limit_ref(gate, up, 2.0f, 4, y);
  EXPECT_NEAR(y[0], 2.0 / (1 + std::exp(-2.0)) * 2, 1e-5);
  EXPECT_NEAR(y[1], -5.0 / (1 + std::exp(5.0)) * -2, 1e-6);
  EXPECT_TRUE(std::isnan(y[3]));
}

// One tile of 16 experts' rows in every format and by every input: the products of the formulas, by the scalar
// reference.
struct ExpertFixture {
  ExpertFixture(Format format, ActKind input) {
    for (uint32_t e = 0; e < 3; ++e) {
      first.gate.push_back(matrix(format, input, 48, 256, 10 + e));
      first.up.push_back(matrix(format, input, 48, 256, 20 + e));
      second.down.push_back(matrix(format, input, 32, 256, 30 + e));
    }
    first.chosen = second.chosen = 2;
    first.limit = 1.5f;
    x = test::make_values(256, test::Fill::normal, 4);
    a = test::make_values(2 * 256, test::Fill::normal, 5);
    shared = test::make_values(32, test::Fill::normal, 6);
  }
  PackedMatrix matrix(Format format, ActKind input, uint32_t rows, uint32_t cols, uint32_t seed) {
    storage.push_back(test::make_packed(format, rows, cols, test::Fill::normal, seed));
    storage.back().matrix.input = input;
    return storage.back().matrix;
  }
  static std::vector<float> product(const PackedMatrix& w, uint32_t tile, const float* row) {
    std::vector<uint8_t> memory(activation_bytes(w.input, 1, w.cols));
    const Activations act{w.input, 1, w.cols, memory.data()};
    quantize_ref(row, 0, act);
    std::vector<float> out(16);
    matvec_ref(w, tile, act, out.data());
    return out;
  }

  std::deque<test::Packed> storage;
  ExpertsSpec first, second;
  std::vector<float> x, a, shared;
  const float route[4] = {2, 0, 0.75f, 0.25f};
};

void expect_experts(const ExpertFixture& f, Isa isa) {
  const RowKernels of{kernels(isa).matvec, kernels(isa).quantize};
  float gate[96], y[32];
  expert_gate_tiles(of, f.first, f.x.data(), f.route, 0, {1, 3}, gate);
  std::vector<float> want = ExpertFixture::product(f.first.gate[2], 2, f.x.data());
  const std::vector<float> up = ExpertFixture::product(f.first.up[2], 2, f.x.data());
  swiglu_limit_ref(want.data(), up.data(), 1.5f, 16, want.data());
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(gate[32 + i], want[i] * 0.75f) << isa_name(isa);
  float alone[96];
  for (uint32_t t = 1; t < 3; ++t) expert_gate_tiles(of, f.first, f.x.data(), f.route, 0, {t, t + 1}, alone);
  EXPECT_EQ(std::memcmp(alone + 16, gate + 16, 32 * sizeof(float)), 0) << "together or one by one";
  expert_down_tiles(of, f.second, f.a.data(), f.route, f.shared.data(), {1, 2}, y);
  const std::vector<float> y0 = ExpertFixture::product(f.second.down[2], 1, f.a.data());
  const std::vector<float> y1 = ExpertFixture::product(f.second.down[0], 1, f.a.data() + 256);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(y[16 + i], (y0[i] + y1[i]) + f.shared[16 + i]) << isa_name(isa);
}

TEST(Experts, ProductsTakeEveryFormatAndInput) {
  for (const FormatTraits& t : all_formats())
    for (const ActKind input : {ActKind::f32, ActKind::i8, ActKind::e4m3}) {
      if (!takes_input(t.format, input)) continue;
      SCOPED_TRACE(std::string(t.name) + " by " + std::string(act_name(input)));
      ExpertFixture f(t.format, input);
      for (const Isa isa : available_isas()) expect_experts(f, isa);
      if (!takes_input(t.format, ActKind::e4m3)) continue;
      // Gate and up may read different kinds.
      for (PackedMatrix& m : f.first.up) m.input = input == ActKind::i8 ? ActKind::e4m3 : ActKind::i8;
      for (const Isa isa : available_isas()) expect_experts(f, isa);
    }
}

}  // namespace
}  // namespace stet
