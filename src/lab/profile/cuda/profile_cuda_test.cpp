// stet replay --diff cpu,cuda and stet profile --device cuda, where there is a GPU.
#include <gtest/gtest.h>

#include "base/fp.h"
#include "device/read_ceiling.h"
#include "lab/diff/replay_diff.h"
#include "lab/profile/profile.h"
#include "lab/tiny_engine_test.h"

namespace stet {
namespace {

class CudaDiagnosis : public testing::Test {
 protected:
  void SetUp() override {
    const CudaDevices all = cuda_devices();
    if (all.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << all.why_none << ")";
  }
  static Options engine_options(const char* device, const char* kv) {
    Options o = test::tiny_engine(300);
    o.kv = kv;
    o.device = device;
    return o;
  }
  static DiffOptions diff_options(const Engine& engine) {
    DiffOptions o;
    o.sides = parse_diff_sides("cpu,cuda");
    o.prompt = engine.tokenize("the quick brown fox jumps over the lazy dog, and does so again and again");
    o.tokens = 5;
    o.rows = 4;
    o.threads = 2;
    return o;
  }
};

TEST_F(CudaDiagnosis, BothDevicesAreEqualInEveryForm) {
  for (const char* kv : {"f16", "f32", "q8"}) {
    Engine engine(engine_options("cpu", kv));
    const DiffOptions options = diff_options(engine);
    const DiffReport r = diff_replays(engine.parts(), options);
    EXPECT_FALSE(r.difference) << kv << ": " << r.difference->text(options.sides);
    EXPECT_GT(r.commands, 200u);
  }
}

const uint8_t* wrong_matrix_of_cpu = nullptr;
void wrong_matvec_of_cpu(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  kernels(available_isas().back()).matvec(w, tile, x, out);
  if (w.data == wrong_matrix_of_cpu && tile == 1) out[3] = float_of_bits(bits_of_float(out[3]) ^ 1u);
}

TEST_F(CudaDiagnosis, AWrongProductIsNamed) {
  Engine engine(engine_options("cpu", "f16"));
  DiffOptions options = diff_options(engine);
  Kernels wrong = kernels(available_isas().back());
  wrong.matvec = wrong_matvec_of_cpu;
  wrong_matrix_of_cpu = engine.parts().pack->matrix("blk.1.attn_output.weight")->data;
  options.sides[0].wrong_kernels = &wrong;
  const auto d = diff_replays(engine.parts(), options).difference;
  ASSERT_TRUE(d);
  EXPECT_EQ(d->command, "blk.1.attn_output");
  EXPECT_EQ(d->index, 19u);
}

TEST_F(CudaDiagnosis, PrefixesAddUpToTheLists) {
  Engine engine(engine_options("cuda", "f16"));
  const ProfileOptions options = {.context = 20, .rows = 1, .repeats = 5, .cycles = 4, .ceiling_bytes = 64u << 20, .progress = nullptr};
  const ProfileReport r = profile(engine.parts(), options);
  EXPECT_GT(r.ceiling_before, 1e11);
  EXPECT_GT(r.pass.sum(), 1e-6);
  EXPECT_NEAR(r.pass.sum() + r.pass.outside, r.pass.whole.parts, 1e-9);
  EXPECT_GT(r.pass.whole.measured, r.pass.sum() / 2);
  EXPECT_GT(r.cycle.verify, 0);
  EXPECT_GT(r.cycle.between, 0);
  EXPECT_LT(r.cycle.between, r.cycle.whole.measured);
  EXPECT_EQ(r.cycle.watched, 0);
  // The profile has left the decoder as it was: ready to run.
  Request request;
  request.prompt = engine.tokenize("still there");
  request.max_tokens = 4;
  request.ignore_eos = true;
  EXPECT_EQ(engine.generate(request).tokens.size(), 4u);
}

}  // namespace
}  // namespace stet
