// Row ops that read and write a layer's state, and those that round, on a GPU.
#include "replay/cuda/state_op_test_util.h"

namespace stet {
namespace {

using test::Fill;
using test::kPasses;
using test::Rope;
using test::State;

class CudaRowOpsState : public test::StateOpTest {};

struct HeadsCase {
  uint32_t heads, dim, rope;
};

TEST_F(CudaRowOpsState, TurnHeads) {
  constexpr uint32_t kContext = 260;
  for (const HeadsCase& h : {HeadsCase{64, 512, 64}, {64, 128, 64}, {3, 16, 4}, {5, 40, 8}, {2, 8, 8}}) {
    const Rope rope(h.rope, kContext);
    for (const Fill fill : {Fill::normal, Fill::tiny, Fill::nonfinite}) {
      const test::TestRows in("in", h.heads * h.dim, fill, 3);
      for (const bool unit : {false, true})
        for (const int rounded : {0, 1, 2}) {
          const bool indexed = rounded == 2;
          if (indexed && (h.dim & (h.dim - 1)) != 0) continue;
          for (const uint32_t rows : kPasses) {
            if (rows > 3 && h.dim == 512 && fill != Fill::normal) continue;
            const test::TestRows out("out", h.heads * h.dim);
            Command c = command(Op::turn_heads, HeadsSpec{h.dim, rope.rows, unit, 1e-6f, rounded != 0, indexed}, in, out);
            c.parts = h.heads;
            compare(launch_turn_heads, c, test::test_step(rows, 127), kContext,
                    [&](test::DeviceRowOp& device, OpSpec& spec) { std::get<HeadsSpec>(spec).rope = rope.on(device); });
          }
        }
    }
  }
}

TEST_F(CudaRowOpsState, CacheRow) {
  constexpr uint32_t kContext = 600;
  for (const HeadsCase& h : {HeadsCase{1, 512, 64}, {1, 128, 64}, {1, 16, 4}, {1, 200, 8}}) {
    const Rope rope(h.rope, kContext);
    for (const Fill fill : {Fill::normal, Fill::tiny, Fill::nonfinite})
      for (const RowFormat format : {RowFormat::f32, RowFormat::f16, RowFormat::fp8})
        for (const uint32_t ring : {0u, 140u})
          for (const uint32_t rows : kPasses) {
            const bool rounded = format == RowFormat::fp8 || rows == 3;
            const test::TestRows in("in", h.dim, fill, 5), out("out", h.dim);
            const State state(format, h.dim, h.rope, 1, ring, kContext);
            const Command c = command(Op::cache_row, CacheSpec{state.rows, rope.rows, rounded}, in, out);
            compare(
                launch_cache_row, c, test::test_step(rows, 2 * 140 - 2), kContext,
                [&](test::DeviceRowOp& device, OpSpec& spec) {
                  std::get<CacheSpec>(spec).rows = state.on(device);
                  std::get<CacheSpec>(spec).rope = rope.on(device);
                },
                {&state}, fill != Fill::nonfinite);
          }
  }
}

TEST_F(CudaRowOpsState, CacheRowThatIsStoredNowhere) {
  const Rope rope(8, 20);
  const test::TestRows in("in", 32, Fill::normal, 5), out("out", 32);
  compare(launch_cache_row, command(Op::cache_row, CacheSpec{{}, rope.rows, true}, in, out), test::test_step(7, 3), 20,
          [&](test::DeviceRowOp& device, OpSpec& spec) { std::get<CacheSpec>(spec).rope = rope.on(device); });
}

// What fp8 cannot keep becomes NaN; the processor stops there.
TEST_F(CudaRowOpsState, WhatARowOfFp8CannotHoldIsNaN) {
  const Rope rope(8, 20);
  const test::TestRows in("in", 136, Fill::normal, 5), out("out", 136);
  const State state(RowFormat::fp8, 136, 8, 1, 0, 20);
  const Command c = command(Op::cache_row, CacheSpec{state.rows, rope.rows, false}, in, out);
  EXPECT_ANY_THROW(test::run_on_processor(c, test::test_step(1), RowSet::pass));
  test::DeviceRowOp device(info);
  device.run(launch_cache_row, c, test::test_step(1), {}, [&](CudaRowOp& op) {
    std::get<CacheSpec>(op.spec).rows = state.on(device);
    std::get<CacheSpec>(op.spec).rope = rope.on(device);
  });
  std::vector<uint8_t> got = device.bytes_of(state.rows.first);
  StateRows there = state.rows;
  there.first = got.data();
  std::vector<float> row(136);
  load_row(there, 0, row.data());
  EXPECT_NE(row[3], row[3]);
  EXPECT_NE(row[133], row[133]);
}

TEST_F(CudaRowOpsState, PoolRow) {
  constexpr uint32_t kContext = 400;
  for (const Format format : {Format::f32, Format::f16, Format::bf16, Format::q8_0})
    for (const uint32_t ratio : {4u, 16u, 128u})
      for (const uint32_t width : {32u, 1024u})
        for (const uint32_t rows : kPasses) {
          const test::TestRows c_rows("c", width, Fill::nonfinite, 1), z("z", width, Fill::normal, 2), out("out", 2 * width);
          const State state(RowFormat::f32, 2 * width, 0, 1, rows == 3 ? 0 : 136, kContext);
          const test::Packed table = test::make_packed(format, ratio, width, Fill::normal, 9);
          const Command c = command(Op::pool_row, PoolRowSpec{state.rows, table.matrix}, c_rows, out, &z);
          compare(
              launch_pool_row, c, test::test_step(rows, 134), kContext,
              [&](test::DeviceRowOp& device, OpSpec& spec) {
                std::get<PoolRowSpec>(spec).rows = state.on(device);
                std::get<PoolRowSpec>(spec).position.data = device.twin(table.matrix.data, table.matrix.bytes());
              },
              {&state}, false);
        }
}

struct PoolCase {
  uint32_t size, rope, ratio;
  bool overlap, indexed;
};

TEST_F(CudaRowOpsState, PoolEntry) {
  constexpr uint32_t kContext = 400;
  const std::vector<float> norm = test::make_values(512, Fill::normal, 4);
  for (const PoolCase& p : {PoolCase{512, 64, 4, true, false}, {512, 64, 128, false, false}, {128, 64, 4, true, true}, {16, 4, 16, false, false},
                            {8, 4, 4, true, true}, {128, 64, 8, false, false}}) {
    const Rope rope(p.rope, kContext);
    for (const RowFormat format : {RowFormat::f32, RowFormat::f16, RowFormat::fp8})
      for (const Fill fill : {Fill::normal, Fill::nonfinite})
        for (const uint32_t rows : kPasses) {
          const uint32_t width = 2 * p.size * (p.overlap ? 2 : 1), rotated = p.indexed ? p.size : p.rope;
          const State pool(RowFormat::f32, width, 0, 1, rows == 8 ? 0 : 300, kContext, fill);
          const State entries(format, p.size, rotated, p.ratio, 0, kContext);
          const test::TestRows in("in", width, Fill::normal, 1), out("out", p.size);
          const bool rounded = format == RowFormat::fp8 || rows != 8;
          const EntrySpec entry{{pool.rows, entries.rows, p.overlap}, norm.data(), 1e-6f, rope.rows, rounded, p.indexed};
          for (const uint32_t position : {0u, 127u, 250u})
            compare(
                launch_pool_entry, command(Op::pool_entry, entry, in, out), test::test_step(rows, position), kContext,
                [&](test::DeviceRowOp& device, OpSpec& spec) {
                  EntrySpec& s = std::get<EntrySpec>(spec);
                  s.pool.rows = pool.on(device);
                  s.pool.entries = entries.on(device);
                  s.norm = device.twin(norm.data(), norm.size() * sizeof(float));
                  s.rope = rope.on(device);
                },
                {&pool, &entries}, fill == Fill::normal);
        }
  }
}

TEST_F(CudaRowOpsState, KeepRowAndLoadRow) {
  constexpr uint32_t kContext = 400;
  for (const uint32_t width : {5u, 3000u})
    for (const uint32_t rows : kPasses) {
      const test::TestRows in("in", width, Fill::nonfinite, 1), out("out", width), loaded("loaded", width);
      const State state(RowFormat::f32, width, 0, 1, rows == 3 ? 0 : 150, kContext);
      const test::Translate translate = [&](test::DeviceRowOp& device, OpSpec& spec) { std::get<KeepSpec>(spec).rows = state.on(device); };
      compare(launch_keep_row, command(Op::keep_row, KeepSpec{state.rows}, in, out), test::test_step(rows, 148), kContext, translate, {&state},
              false);
      compare(launch_load_row, command(Op::load_row, KeepSpec{state.rows}, in, loaded), test::test_step(rows, 149), kContext, translate);
    }
}

TEST_F(CudaRowOpsState, RoundE4m3) {
  for (const uint32_t run : {128u, 96u, 4096u, 300u})
    for (const Fill fill : {Fill::normal, Fill::tiny, Fill::nonfinite})
      for (const uint32_t rows : kPasses) {
        const test::TestRows in("in", 3 * run, fill, 1), out("out", 3 * run);
        Command c = command(Op::round_e4m3, RoundSpec{run}, in, out);
        c.parts = 3;
        compare(launch_round_e4m3, c, test::test_step(rows, 7), 400, [](test::DeviceRowOp&, OpSpec&) {});
      }
}

}  // namespace
}  // namespace stet
