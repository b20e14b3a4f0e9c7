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

class CudaExpertOps : public test::RowOpTest {
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

TEST_F(CudaExpertOps, RouteByScores) {
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

TEST_F(CudaExpertOps, RouteByTable) {
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

TEST_F(CudaExpertOps, Grouped) {
  constexpr GroupedCase kCases[] = {
      {Format::e4m3, ActKind::f32, 2, 64, 1024}, {Format::e4m3, ActKind::f32, 3, 128, 128}, {Format::e4m3, ActKind::f32, 2, 32, 2176},
      {Format::e4m3, ActKind::f32, 2, 16, 8192}, {Format::e4m3, ActKind::f32, 2, 8, 256},   {Format::e4m3, ActKind::f32, 3, 24, 2048},
      {Format::mxfp4, ActKind::f32, 2, 32, 96},  {Format::f32, ActKind::f32, 2, 4, 24},     {Format::f32, ActKind::f32, 4, 16, 40},
      {Format::bf16, ActKind::f32, 3, 5, 2100},  {Format::f16, ActKind::f32, 1, 40, 300},
      {Format::e4m3, ActKind::i8, 4, 64, 256},   {Format::e4m3, ActKind::i8, 5, 7, 2048},   {Format::e4m3, ActKind::e4m3, 3, 24, 384},
      {Format::mxfp4, ActKind::e4m3, 2, 24, 96}, {Format::q8_0, ActKind::i8, 7, 3, 64},     {Format::q4_1, ActKind::i8, 2, 40, 2048},
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

struct ExpertCase {
  Format format;
  ActKind input;
  uint32_t hidden, inner, experts, chosen;
};
constexpr ExpertCase kExpertCases[] = {
    {Format::f32, ActKind::f32, 40, 24, 3, 2},       {Format::f32, ActKind::f32, 2100, 33, 4, 1},   {Format::bf16, ActKind::f32, 64, 8200, 2, 2},
    {Format::f16, ActKind::f32, 300, 130, 9, 12},    {Format::q8_0, ActKind::i8, 64, 32, 8, 6},     {Format::q4_0, ActKind::i8, 2080, 160, 8, 6},
    {Format::q4_1, ActKind::i8, 96, 2048, 5, 3},     {Format::q6_k, ActKind::i8, 256, 512, 5, 20},  {Format::mxfp4, ActKind::e4m3, 2048, 160, 6, 6},
    {Format::mxfp4, ActKind::e4m3, 96, 2080, 5, 4},  {Format::mxfp4, ActKind::i8, 2144, 96, 7, 6},  {Format::e4m3, ActKind::e4m3, 384, 2048, 7, 6},
    {Format::e4m3, ActKind::i8, 2048, 256, 5, 3},
};

// The experts of a layer, and rows that chose among them.
struct TestExperts {
  TestExperts(const ExpertCase& c, uint32_t n, uint32_t k, Fill fill, uint32_t seed) {
    for (uint32_t e = 0; e < c.experts; ++e) {
      packed.push_back(test::make_packed(c.format, n, k, fill, seed + e));
      packed.back().matrix.input = c.input;
      matrices.push_back(packed.back().matrix);
    }
  }
  // Their table on a device.
  const uint8_t* const* twin(DeviceRowOp& device) {
    table.clear();
    for (const PackedMatrix& m : matrices) table.push_back(device.twin(m.data, m.bytes()));
    return device.twin(table.data(), table.size() * sizeof(table[0]));
  }
  std::vector<test::Packed> packed;
  std::vector<PackedMatrix> matrices;
  std::vector<const uint8_t*> table;
};

// Ids repeat, within a row too; some are none of an expert.
void fill_routes(TestRows& routes, const ExpertCase& c, Fill fill) {
  routes.values = test::make_values(routes.values.size(), fill, 9);
  routes.buffer.data = routes.values.data();
  for (uint32_t row = 0; row < kWideRows; ++row)
    for (uint32_t i = 0; i < c.chosen; ++i) {
      float& id = routes.buffer.row(row)[i];
      id = static_cast<float>((row / 3 + i * i) % c.experts);
      if (fill == Fill::nonfinite && row % 5 == 0) id = i % 4 == 0 ? __builtin_nanf("") : i % 4 == 1 ? -3.0f : i % 4 == 2 ? 1e9f : -__builtin_inff();
    }
}

std::string trace(const ExpertCase& c, Fill fill, uint32_t width, bool rounded) {
  return fmt::format("{} by {}: {} x {}, {} of {} experts, fill {}, {} rows{}", traits(c.format).name, act_name(c.input), c.hidden, c.inner,
                     c.chosen, c.experts, static_cast<int>(fill), width, rounded ? ", rounded" : "");
}

template <typename Test>
void for_experts(const Test& test) {
  for (const ExpertCase& c : kExpertCases)
    for (const Fill fill : {Fill::normal, Fill::tiny, Fill::nonfinite})
      for (const uint32_t width : kListRows) {
        // The reference is slow: wide passes have the small experts.
        if (width == kWideRows && (fill == Fill::tiny || c.hidden * c.inner > 70000)) continue;
        const bool rounded = (width == 3) != (fill == Fill::nonfinite);
        SCOPED_TRACE(trace(c, fill, width, rounded));
        test(c, fill, width, rounded);
      }
}

TEST_F(CudaExpertOps, Gate) {
  for_experts([&](const ExpertCase& e, Fill fill, uint32_t width, bool rounded) {
    TestExperts gate(e, e.inner, e.hidden, fill, 100), up(e, e.inner, e.hidden, fill, 200);
    TestRows in("in", e.hidden, fill, 1), routes("routes", 2 * e.chosen), out("out", e.chosen * e.inner);
    fill_routes(routes, e, fill);
    auto spec = std::make_shared<ExpertsSpec>();
    spec->gate = gate.matrices, spec->up = up.matrices;
    spec->chosen = e.chosen;
    spec->limit = 1.5f;
    spec->rounded = rounded;
    Command c;
    c.op = Op::expert_gate;
    c.name = "gate";
    c.in = &in.buffer, c.in2 = &routes.buffer, c.out = &out.buffer;
    c.parts = e.chosen * parts_of(spec->gate[0].tiles());
    c.spec = std::shared_ptr<const ExpertsSpec>(spec);
    compare(launch_expert_gate, c, width, [&](DeviceRowOp& device, CudaRowOp& op) {
      op.experts = gate.twin(device);
      op.experts_up = up.twin(device);
    });
  });
}

TEST_F(CudaExpertOps, Down) {
  for_experts([&](const ExpertCase& e, Fill fill, uint32_t width, bool rounded) {
    TestExperts down(e, e.hidden, e.inner, fill, 300);
    TestRows in("in", e.chosen * e.inner, fill, 1), routes("routes", 2 * e.chosen), shared("shared", e.hidden, fill, 2), out("out", e.hidden);
    fill_routes(routes, e, fill);
    auto spec = std::make_shared<ExpertsSpec>();
    spec->down = down.matrices;
    spec->chosen = e.chosen;
    spec->rounded = rounded;
    Command c;
    c.op = Op::expert_down;
    c.name = "down";
    c.in = &in.buffer, c.in2 = &routes.buffer, c.in3 = &shared.buffer, c.out = &out.buffer;
    c.parts = parts_of(spec->down[0].tiles());
    c.spec = std::shared_ptr<const ExpertsSpec>(spec);
    compare(launch_expert_down, c, width, [&](DeviceRowOp& device, CudaRowOp& op) { op.experts = down.twin(device); });
  });
}

}  // namespace
}  // namespace stet
