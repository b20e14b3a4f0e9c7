// The router, grouped products and products of the chosen experts on a GPU: bits as on the processor.
#include <fmt/format.h>

#include <memory>

#include "replay/cuda/row_op_test_util.h"

namespace stet {
namespace {

using test::DeviceRowOp;
using test::Fill;
using test::TestRows;

constexpr uint32_t kListRows[] = {1, 3, 8, 128};

class ExpertOps : public test::RowOpTest {
 protected:
  // A pass of as many rows as the list has, or of one less: the launch is shaped for more then.
  void compare(test::LaunchRowOp launch, const Command& c, uint32_t width, const std::function<void(DeviceRowOp&, CudaRowOp&)>& translate) {
    StepParams params = test::test_step(width > 2 ? width - 1 : width, 77);
    for (uint32_t i = 0; i < kWideRows; ++i) params.tokens[i] = static_cast<int32_t>(i * 7 % 19);
    DeviceRowOp device(info);
    const std::vector<float> got = device.run(launch, c, params, {width}, [&](CudaRowOp& op) { translate(device, op); });
    test::run_on_processor(c, params, RowSet::pass);
    test::expect_same_rows(got, c);
  }
};

struct RouteCase {
  uint32_t experts, chosen;
};

TEST_F(ExpertOps, RouteByScores) {
  for (const auto& [experts, chosen] : {RouteCase{4, 2}, {32, 32}, {160, 6}, {256, 8}, {300, 64}, {1000, 6}})
    for (const Fill fill : {Fill::normal, Fill::extreme, Fill::tiny, Fill::nonfinite})
      for (const uint32_t width : kListRows) {
        SCOPED_TRACE(fmt::format("{} of {}, fill {}, {} rows", chosen, experts, static_cast<int>(fill), width));
        TestRows logits("logits", experts, fill, experts), routes("routes", 2 * chosen);
        // Large and small logits; equal scores.
        for (size_t i = 0; i < logits.values.size(); i += 3) logits.values[i] *= i % 2 == 0 ? 40.0f : 0.0f;
        const std::vector<float> bias = test::make_values(experts, fill == Fill::normal ? Fill::normal : Fill::extreme, 3);
        Command c;
        c.op = Op::route;
        c.name = "route";
        c.in = &logits.buffer;
        c.out = &routes.buffer;
        c.spec = RouteSpec{experts, chosen, 1.5f, bias.data()};
        compare(launch_route, c, width, [&](DeviceRowOp& device, CudaRowOp& op) {
          RouteSpec& spec = std::get<RouteSpec>(op.spec);
          spec.bias = device.twin(bias.data(), bias.size() * sizeof(float));
        });
      }
}

TEST_F(ExpertOps, RouteByTable) {
  constexpr uint32_t kExperts = 40, kChosen = 6, kTokens = 19;
  std::vector<float> ids(kTokens * kChosen);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<float>(i * 11 % kExperts);
  for (const Format format : {Format::f32, Format::f16, Format::bf16})
    for (const uint32_t width : kListRows) {
      std::vector<uint8_t> encoded(ids.size() * traits(format).block_bytes);
      traits(format).quantize(ids.data(), encoded.data(), ids.size());
      const std::vector<uint8_t> packed = pack_matrix(format, encoded.data(), kTokens, kChosen);
      TestRows logits("logits", kExperts, Fill::nonfinite, 5), routes("routes", 2 * kChosen);
      Command c;
      c.op = Op::route;
      c.name = "route";
      c.in = &logits.buffer;
      c.out = &routes.buffer;
      c.matrix = {format, kTokens, kChosen, packed.data()};
      c.spec = RouteSpec{kExperts, kChosen, 2.5f, nullptr};
      compare(launch_route, c, width, [](DeviceRowOp&, CudaRowOp&) {});
    }
}

struct GroupedCase {
  Format format;
  ActKind input;
  uint32_t groups, rows, k;  // rows: of a group
};

TEST_F(ExpertOps, Grouped) {
  constexpr GroupedCase kCases[] = {
      {Format::e4m3, ActKind::f32, 2, 64, 1024}, {Format::e4m3, ActKind::f32, 3, 128, 128}, {Format::e4m3, ActKind::f32, 2, 32, 2176},
      {Format::e4m3, ActKind::f32, 2, 16, 8192}, {Format::e4m3, ActKind::f32, 2, 8, 256},   {Format::e4m3, ActKind::f32, 3, 24, 2048},
      {Format::mxfp4, ActKind::f32, 2, 32, 96},  {Format::f32, ActKind::f32, 2, 4, 24},     {Format::f32, ActKind::f32, 4, 16, 40},
      {Format::bf16, ActKind::f32, 3, 5, 2100},  {Format::f16, ActKind::f32, 1, 40, 300},
  };
  for (const GroupedCase& g : kCases)
    for (const Fill fill : {Fill::normal, Fill::tiny, Fill::nonfinite})
      for (const uint32_t width : kListRows) {
        const bool rounded = width == 3 || fill == Fill::nonfinite;
        SCOPED_TRACE(fmt::format("{} {}: {} x {} rows of {}, fill {}, {} rows", traits(g.format).name, act_name(g.input), g.groups, g.rows,
                                 g.k, static_cast<int>(fill), width));
        test::Packed packed = test::make_packed(g.format, g.groups * g.rows, g.k, fill, g.k);
        packed.matrix.input = g.input;
        TestRows in("in", g.groups * g.k, fill, 1), out("out", g.groups * g.rows);
        Command c;
        c.op = Op::grouped;
        c.name = "grouped";
        c.in = &in.buffer;
        c.out = &out.buffer;
        c.matrix = packed.matrix;
        c.spec = GroupedSpec{g.groups};
        c.parts = c.matrix.tiles();
        c.rounded = rounded;
        compare(launch_grouped, c, width, [](DeviceRowOp&, CudaRowOp&) {});
      }
}

}  // namespace
}  // namespace stet
