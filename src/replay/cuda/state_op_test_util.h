// Tests of row ops that read and write a layer's state, on a GPU: the bits of the processor in the output, in rows behind the pass, which
// nothing touches, and in every byte of the state.
#pragma once

#include "formats/e8m0.h"
#include "kernels/common/state_row_values.h"
#include "kernels/rounding/rounding.h"
#include "replay/cuda/row_op_test_util.h"

namespace stet::test {

inline constexpr uint32_t kPasses[] = {1, 3, 8, 128};

// Rows of a layer's state in memory of their own, all of them stored, some larger and some smaller. Those kept for ever lie in chunks that
// are further apart than they are long.
struct State {
  State(RowFormat format, uint32_t width, uint32_t rotated, uint32_t ratio, uint32_t ring, uint32_t positions, Fill fill = Fill::normal,
        uint32_t seed = 1)
      : rows{nullptr, 0, width, ratio, ring, format, rotated} {
    count = ring != 0 ? ring : (positions + kSlots - 1) / kSlots * rows.rows_of_chunk();
    rows.chunk_stride = (rows.rows_of_chunk() * rows.row_bytes() + 63) / 64 * 64 + 64;
    bytes = ring != 0 ? (ring * rows.row_bytes() + 63) / 64 * 64 : count / rows.rows_of_chunk() * rows.chunk_stride;
    memory.resize(bytes + 64);
    rows.first = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<float> x = make_values(width, fill, seed + i);
      for (float& v : x) v *= power_of_two(static_cast<int>(i * 7 % 9) - 4);
      if (format == RowFormat::fp8) round_cached(x.data(), width, rotated);
      store_row(rows, i, x.data());
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  StateRows on(DeviceRowOp& device) const {
    StateRows there = rows;
    there.first = device.twin(rows.first, bytes);
    return there;
  }
  // NaN are all one, so bytes are compared where there is none.
  void expect_same(DeviceRowOp& device, bool finite) const {
    std::vector<uint8_t> got = device.bytes_of(rows.first);
    if (finite) {
      EXPECT_TRUE(std::equal(got.begin(), got.end(), rows.first)) << "bytes of the state";
      return;
    }
    StateRows there = rows;
    there.first = got.data();
    std::vector<float> a(rows.width), b(rows.width);
    for (uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(first_difference(load_row(there, i, a.data()), load_row(rows, i, b.data()), rows.width), rows.width) << "row " << i;
  }

  StateRows rows;
  uint32_t count;
  size_t bytes;
  std::vector<uint8_t> memory;
};

struct Rope {
  Rope(uint32_t dim, uint32_t positions) : values(make_values(size_t{2} * dim * positions, Fill::normal, 77)), rows{values.data(), dim} {}
  RopeRows on(DeviceRowOp& device) const { return {device.twin(values.data(), values.size() * sizeof(float)), rows.dim}; }
  std::vector<float> values;
  RopeRows rows;
};

using Translate = std::function<void(DeviceRowOp& device, OpSpec& spec)>;

class StateOpTest : public RowOpTest {
 protected:
  // Runs the command on both, the GPU first, and compares.
  void compare(LaunchRowOp launch, const Command& c, const StepParams& step, uint32_t context, const Translate& translate,
               const std::vector<const State*>& written = {}, bool finite = true) {
    SCOPED_TRACE(testing::Message() << "rows " << step.rows << " position " << step.position << describe_spec(c.spec));
    DeviceRowOp device(info);
    const uint32_t width = step.rows <= kNarrowRows ? step.rows : kWideRows;
    const std::vector<float> got =
        device.run(launch, c, step, {width, RowSet::pass, context}, [&](CudaRowOp& op) { translate(device, op.spec); });
    run_on_processor(c, step, RowSet::pass);
    expect_same_rows(got, c);
    for (const State* state : written) state->expect_same(device, finite);
  }
  static Command command(Op op, OpSpec spec, const TestRows& in, const TestRows& out, const TestRows* in2 = nullptr) {
    Command c;
    c.op = op;
    c.name = row_op_name(op);
    c.in = &in.buffer;
    c.out = &out.buffer;
    c.in2 = in2 != nullptr ? &in2->buffer : nullptr;
    c.spec = std::move(spec);
    return c;
  }
};

}  // namespace stet::test
