// Hyper-connections, norms and the ops of single elements on a GPU against the processor. (Skipped without one.)
#include "kernels/kernels_test_util.h"
#include "replay/cuda/row_op_test_util.h"

namespace stet {
namespace {

using test::Fill;
using test::TestRows;

constexpr uint32_t kRowCounts[] = {1, 3, 128};
constexpr Fill kFills[] = {Fill::normal, Fill::tiny, Fill::nonfinite};

struct CudaRowOpsStreams : test::RowOpTest {
  // On lists of both kinds; the head's rows begin at the second row of the pass.
  void compare(test::LaunchRowOp launch, const Command& c, const std::function<void(test::DeviceRowOp&, OpSpec&)>& translate = {}) {
    for (const uint32_t rows : kRowCounts) {
      StepParams params = test::test_step(rows);
      params.head_first = rows > 1 ? 1 : 0;
      params.head_rows = rows > 1 ? 2 : 1;
      const RowSet set = c.from_head ? RowSet::head : RowSet::pass;
      std::fill_n(c.out->data, size_t{c.out->width} * kWideRows, std::numeric_limits<float>::quiet_NaN());
      test::DeviceRowOp device(info);
      const std::vector<float> got = device.run(launch, c, params, {c.from_head ? 16u : rows, set}, [&](CudaRowOp& op) {
        if (translate) translate(device, op.spec);
      });
      test::run_on_processor(c, params, set);
      test::expect_same_rows(got, c);
    }
  }

  static Command command(Op op, const char* name, const TestRows& in, const TestRows& out, OpSpec spec = {}) {
    Command c;
    c.op = op;
    c.name = name;
    c.in = &in.buffer;
    c.out = &out.buffer;
    c.spec = std::move(spec);
    return c;
  }
};

TEST_F(CudaRowOpsStreams, HyperConnections) {
  for (const uint32_t m : {1u, 4u, 5u, 8u})
    for (const uint32_t hidden : {24u, 300u, 4096u})
      for (const Fill fill : kFills)
        for (const uint32_t iterations : {0u, 1u, 20u}) {
          HyperSpec spec{m, iterations, 1e-6f, 1e-5f, nullptr, nullptr};
          const std::vector<float> base = test::make_values(spec.outputs(), Fill::normal, 7), scale = test::make_values(3, Fill::normal, 8);
          spec.base = base.data(), spec.scale = scale.data();
          const auto translate = [&](test::DeviceRowOp& device, OpSpec& s) {
            auto& hyper = std::get<HyperSpec>(s);
            hyper.base = device.twin(hyper.base, base.size() * sizeof(float));
            hyper.scale = device.twin(hyper.scale, scale.size() * sizeof(float));
          };
          SCOPED_TRACE(testing::Message() << m << " streams of " << hidden << ", " << iterations << " iterations");
          const TestRows streams("streams", m * hidden, fill, 1), mix("mix", spec.outputs(), fill, 2), gates("gates", spec.outputs());
          Command gating = command(Op::hyper_gates, "gates", streams, gates, spec);
          gating.in2 = &mix.buffer;
          compare(launch_hyper_gates, gating, translate);
          const TestRows some("gates", spec.outputs(), Fill::normal, 3), site("site", hidden, fill, 4), mixed("mixed", hidden),
              after("after", m * hidden);
          for (const bool rounded : {false, true}) {
            Command mixing = command(Op::hyper_mix, "mix", streams, mixed, spec);
            mixing.in2 = &some.buffer;
            mixing.rounded = rounded;
            compare(launch_hyper_mix, mixing, translate);
            if (iterations == 0) continue;
            Command post = command(Op::hyper_post, "post", site, after, spec);
            post.in2 = &streams.buffer, post.in3 = &some.buffer;
            post.rounded = rounded;
            compare(launch_hyper_post, post, translate);
          }
        }
}

TEST_F(CudaRowOpsStreams, Norms) {
  for (const uint32_t width : {8u, 255u, 256u, 300u, 4096u, 5000u})
    for (const Fill fill : kFills)
      for (const bool rounded : {false, true})
        for (const bool from_head : {false, true}) {
          const TestRows in("in", width, fill, 1), out("out", width);
          const std::vector<float> weight = test::make_values(width, Fill::normal, 2);
          Command c = command(Op::rmsnorm, "norm", in, out);
          c.weight = weight.data();
          c.eps = 1e-5f;
          c.rounded = rounded;
          c.from_head = from_head;
          compare(launch_rmsnorm, c);
        }
}

TEST_F(CudaRowOpsStreams, Elements) {
  for (const Fill fill : kFills)
    for (const uint32_t width : {5u, 300u}) {
      const TestRows a("a", width, fill, 1), b("b", width, fill, 2), out("out", width), twice("twice", 2 * width), four("four", 4 * width),
          wide("wide", 4 * width, fill, 3), part("part", width);
      Command c = command(Op::swiglu, "swiglu", a, out);
      c.in2 = &b.buffer;
      compare(launch_swiglu, c);
      for (const bool rounded : {false, true}) {
        c = command(Op::swiglu_limit, "swiglu_limit", a, out, LimitSpec{0.75f});
        c.in2 = &b.buffer;
        c.rounded = rounded;
        compare(launch_swiglu_limit, c);
        c = command(Op::mean_streams, "mean", wide, out);
        c.rounded = rounded;
        compare(launch_mean_streams, c);
      }
      compare(launch_slice, command(Op::slice, "slice", wide, part, SliceSpec{width / 2}));
      for (const bool from_head : {false, true}) {
        c = command(Op::join, "join", a, twice);
        c.in2 = &b.buffer;
        c.from_head = from_head;
        compare(launch_join, c);
        c = command(Op::repeat, "repeat", a, four);
        c.from_head = from_head;
        compare(launch_repeat, c);
      }
    }
}

}  // namespace
}  // namespace stet
