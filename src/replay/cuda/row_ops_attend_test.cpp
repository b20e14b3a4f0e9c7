// The choice of entries, and attention over window and entries, on a GPU.
#include <numeric>

#include "replay/cuda/state_op_test_util.h"

namespace stet {
namespace {

using test::Fill;
using test::kPasses;
using test::Rope;
using test::State;

class CudaRowOpsAttend : public test::StateOpTest {
 protected:
  void choose(const State& keys, uint32_t heads, uint32_t top, bool rounded, uint32_t rows, uint32_t position, uint32_t context, Fill fill) {
    const test::TestRows q("q", heads * keys.rows.width, fill, 5), weight("weight", heads, Fill::normal, 6), out("chosen", top);
    const ChooseSpec spec{keys.rows, heads, top, 0.011f, rounded};
    compare(launch_choose_entries, command(Op::choose_entries, spec, q, out, &weight), test::test_step(rows, position), context,
            [&](test::DeviceRowOp& device, OpSpec& s) { std::get<ChooseSpec>(s).keys = keys.on(device); });
  }
};

// ---- choose_entries

struct ChooseCase {
  uint32_t heads, dim, top, ratio;
};

TEST_F(CudaRowOpsAttend, ChooseEntries) {
  constexpr uint32_t kContext = 1280;
  for (const ChooseCase& c : {ChooseCase{64, 128, 100, 4}, {4, 16, 3, 4}, {11, 8, 16, 4}, {2, 128, 5, 16}})
    for (const RowFormat format : {RowFormat::f32, RowFormat::f16, RowFormat::fp8}) {
      const State keys(format, c.dim, c.dim, c.ratio, 0, kContext);
      for (const bool rounded : {false, true})
        for (const uint32_t rows : kPasses)
          for (const uint32_t position : {0u, c.top * c.ratio - 2, 1100u}) {
            if (c.heads == 64 && rows > 3) continue;
            choose(keys, c.heads, c.top, rounded, rows, position, kContext, rows == 3 ? Fill::nonfinite : Fill::normal);
          }
    }
}

TEST_F(CudaRowOpsAttend, ChooseAmongThousandsInTheSizesOfFlash) {
  constexpr uint32_t kContext = 12000;
  const State keys(RowFormat::fp8, 128, 128, 4, 0, kContext);
  for (const bool rounded : {false, true}) choose(keys, 64, 512, rounded, 2, 11900, kContext, Fill::normal);
}

// More entries than a block of threads holds, and of equals the first.
TEST_F(CudaRowOpsAttend, ChooseAmongTensOfThousandsAndAmongEquals) {
  constexpr uint32_t kContext = 160000;
  const State keys(RowFormat::f32, 4, 0, 4, 0, kContext);
  for (const bool rounded : {false, true})
    for (const uint32_t top : {1u, 700u, 17000u}) choose(keys, 1, top, rounded, 2, 155000, kContext, Fill::normal);
  const State few(RowFormat::f32, 4, 0, 4, 0, kContext);
  for (uint32_t i = 0; i < few.count; ++i) std::fill_n(few.rows.row(i), 4, static_cast<float>(i % 3));
  const State same(RowFormat::f32, 4, 0, 4, 0, kContext);
  for (uint32_t i = 0; i < same.count; ++i) std::fill_n(same.rows.row(i), 4, 1.0f);
  for (const uint32_t top : {1u, 700u, 17000u}) {
    choose(few, 2, top, true, 2, 155000, kContext, Fill::normal);
    choose(same, 2, top, true, 2, 155000, kContext, Fill::normal);
    choose(same, 2, top, true, 1, 155000, kContext, Fill::nonfinite);
  }
}

// ---- union_attend

struct UnionCase {
  uint32_t heads, dim, rope, window;
  uint32_t ratio, top;  // of entries; 0: none, all
};

// A layer, what a pass asks of it, and the entries that its rows chose.
struct Layer {
  Layer(const UnionCase& c, RowFormat format, bool rounded, uint32_t ring, uint32_t context, Fill fill)
      : rows(format, c.dim, c.rope, 1, ring, context, fill, 11),
        entries(format, c.dim, c.rope, c.ratio != 0 ? c.ratio : 4, 0, context, fill, 23),
        rope(c.rope, context),
        sinks(test::make_values(c.heads, Fill::normal, 5)),
        q("q", c.heads * c.dim, fill, 9),
        chosen("chosen", std::max(1u, c.top)),
        out("out", c.heads * c.dim) {
    spec.attend = {rows.rows, c.ratio != 0 ? entries.rows : StateRows{}, c.window, c.top, c.heads, 0.17f, sinks.data(), rounded};
    spec.rope = rope.rows;
  }
  // Any ascending list of entries that the row at t sees.
  void draw(uint32_t t, uint32_t row) {
    const UnionSpec& u = spec.attend;
    const uint32_t seen = u.entries.width == 0 ? 0 : visible_entries(t, u.entries.ratio);
    if (u.top == 0 || seen <= u.top) return;
    std::vector<uint32_t> all(seen);
    std::iota(all.begin(), all.end(), 0u);
    std::vector<uint32_t> some;
    std::sample(all.begin(), all.end(), std::back_inserter(some), u.top, std::mt19937(t));
    std::copy(some.begin(), some.end(), chosen.values.begin() + row * u.top);
  }
  test::Translate translate() {
    return [this](test::DeviceRowOp& device, OpSpec& s) {
      UnionAttendSpec& there = std::get<UnionAttendSpec>(s);
      there.attend.rows = rows.on(device);
      if (there.attend.entries.width != 0) there.attend.entries = entries.on(device);
      there.attend.sinks = device.twin(sinks.data(), sinks.size() * sizeof(float));
      there.rope = rope.on(device);
    };
  }

  State rows, entries;
  Rope rope;
  std::vector<float> sinks;
  test::TestRows q, chosen, out;
  UnionAttendSpec spec;
};

class CudaUnionAttendOp : public test::StateOpTest {
 protected:
  // positions: that there is state for; context: that the launch allows for.
  void attend(const UnionCase& c, RowFormat format, bool rounded, uint32_t rows, uint32_t position, uint32_t positions, Fill fill = Fill::normal,
              uint32_t context = 0) {
    Layer layer(c, format, rounded, position % 2 != 0 ? 0 : std::min(positions, c.window + 2 * kWideRows), positions, fill);
    for (uint32_t row = 0; row < rows; ++row) layer.draw(position + row, row);
    Command command = this->command(Op::union_attend, layer.spec, layer.q, layer.out, c.top != 0 ? &layer.chosen : nullptr);
    command.parts = c.heads;
    compare(launch_union_attend, command, test::test_step(rows, position), std::max(context, positions), layer.translate());
  }
  void attend_block(const UnionCase& c, RowFormat format, bool rounded, uint32_t rows, uint32_t position, uint32_t context) {
    Layer layer(c, format, rounded, position % 2 != 0 ? 0 : std::min(context, c.window + 2 * kWideRows), context, Fill::normal);
    const test::TestRows block("block", c.dim, Fill::normal, 31);
    Command command = this->command(Op::block_attend, layer.spec, layer.q, layer.out, &block);
    command.parts = c.heads;
    compare(launch_block_attend, command, test::test_step(rows, position), context, layer.translate());
  }
};

constexpr RowFormat kFormats[] = {RowFormat::f32, RowFormat::f16, RowFormat::fp8};

TEST_F(CudaUnionAttendOp, ShortAndLongLists) {
  constexpr uint32_t kContext = 640;
  for (const UnionCase& c : {UnionCase{6, 16, 4, 66, 4, 3}, {3, 16, 4, 5, 16, 0}, {4, 128, 64, 32, 4, 16}, {2, 80, 8, 128, 0, 0}, {5, 64, 4, 127, 4, 130}})
    for (const RowFormat format : kFormats)
      for (const bool rounded : {false, true})
        for (const uint32_t position : {0u, 1u, 61u, 64u, 65u, 66u, 127u, 128u, 129u, 383u, 500u})
          for (const uint32_t rows : {1u, 3u, 8u}) attend(c, format, rounded, rows, position, kContext);
}

TEST_F(CudaUnionAttendOp, WholePrompts) {
  constexpr uint32_t kContext = 640;
  for (const UnionCase& c : {UnionCase{4, 128, 64, 128, 4, 64}, {6, 16, 4, 66, 16, 0}})
    for (const RowFormat format : kFormats)
      for (const bool rounded : {false, true})
        for (const uint32_t position : {0u, 101u, 384u}) attend(c, format, rounded, 128, position, kContext);
}

TEST_F(CudaUnionAttendOp, TheSizesOfFlash) {
  constexpr uint32_t kContext = 3000;
  for (const RowFormat format : kFormats)
    for (const bool rounded : {false, true}) {
      attend({64, 512, 64, 128, 4, 512}, format, rounded, 2, 2800, kContext);
      attend({64, 512, 64, 128, 128, 0}, format, rounded, 1, 2687, kContext);
      attend({64, 512, 64, 128, 0, 0}, format, rounded, 1, 300, kContext);
    }
}

// So many chunks that they are joined in several runs; then so many keys that not all rows of a pass have room for their scores.
TEST_F(CudaUnionAttendOp, ListsOfThousands) {
  for (const bool rounded : {false, true})
    for (const uint32_t position : {4099u, 8191u, 8900u, 19990u}) attend({2, 8, 4, 9, 4, 0}, RowFormat::f16, rounded, 3, position, 20000);
  for (const bool rounded : {false, true}) attend({4, 8, 4, 9, 4, 0}, RowFormat::fp8, rounded, 8, 2999, 3100, Fill::normal, 4000000);
}

TEST_F(CudaUnionAttendOp, WhatIsNotFinite) {
  for (const bool rounded : {false, true})
    for (const uint32_t position : {5u, 300u}) attend({4, 32, 8, 66, 4, 20}, RowFormat::f16, rounded, 8, position, 400, Fill::nonfinite);
}

TEST_F(CudaUnionAttendOp, Blocks) {
  constexpr uint32_t kContext = 640;
  for (const UnionCase& c : {UnionCase{6, 16, 4, 66, 0, 0}, {4, 128, 64, 128, 4, 16}, {3, 64, 4, 100, 0, 0}})
    for (const RowFormat format : kFormats)
      for (const bool rounded : {false, true})
        for (const uint32_t position : {0u, 1u, 64u, 65u, 66u, 128u, 129u, 500u})
          for (const uint32_t rows : {1u, 5u, 16u}) attend_block(c, format, rounded, rows, position, kContext);
  for (const bool rounded : {false, true}) attend_block({64, 512, 64, 128, 0, 0}, RowFormat::fp8, rounded, 7, 501, kContext);
}

}  // namespace
}  // namespace stet
