// Geometry: instruction sets, numbers of threads, and the order in which threads happen to work.
#include <gtest/gtest.h>

#include <thread>

#include "mutants.h"
#include "weights/patched_source_test.h"

namespace stet::test {
namespace {

// Logits of a fed prompt, then an answer sampled behind it.
struct Both {
  Trace fed, answered;
};

Both run(const TestModel& model, const Way& way) {
  Machine machine(model, way);
  const auto tokens = test_tokens(model.desc, 45);
  Both out;
  out.fed = machine.feed(tokens, {20, 16, 1, 3});
  Ask ask{.prompt = test_tokens(model.desc, 30, 5), .max_tokens = 8, .sampling = {.temperature = 0.8f, .top_p = 0.95f, .seed = 3}};
  out.answered = answer(machine, ask);
  return out;
}

void expect_same(const Both& a, const Both& b, const std::string& what) {
  EXPECT_EQ(difference(a.fed, b.fed), "") << what;
  EXPECT_EQ(difference(a.answered, b.answered), "") << what;
}

// Lets some workers come late now and then, differently in every launch.
void disturb(unsigned worker) {
  static thread_local uint32_t x = 0;
  x = x * 1664525u + 1013904223u + worker * 7919u;
  if (x >> 28 == 0) std::this_thread::sleep_for(std::chrono::microseconds(x >> 8 & 127));
  if (x >> 28 == 1) std::this_thread::yield();
}

std::unique_ptr<TensorSource> subnormal_source() {
  auto source = std::make_unique<PatchedSource>("synth:tiny-gqa:f32");
  for (float& x : source->floats("token_embd.weight")) x *= 0x1p-130f;
  return source;
}

// Tokens 2i and 2i + 1 have the same row in the head: every logit occurs twice.
std::unique_ptr<TensorSource> source_of_twins() {
  auto source = std::make_unique<PatchedSource>("synth:tiny-gqa:f32");
  const uint64_t k = source->find("output.weight")->shape[0], n = source->find("output.weight")->shape[1];
  const std::span<float> head = source->floats("output.weight");
  for (uint64_t r = 0; r + 1 < n; r += 2) std::copy_n(head.data() + r * k, k, head.data() + (r + 1) * k);
  return source;
}

class Geometry : public testing::TestWithParam<const char*> {};

TEST_P(Geometry, EveryInstructionSetGivesTheBitsOfTheScalarReference) {
  const TestModel model(GetParam());
  Way way;
  way.kernels = &kernels(Isa::scalar);
  way.decoder.mode = ReplayMode::eager;
  const Both want = run(model, way);
  way.decoder.mode = ReplayMode::replayed;
  for (Isa isa : available_isas()) {
    way.kernels = &kernels(isa);
    expect_same(run(model, way), want, std::string(isa_name(isa)));
  }
}

TEST_P(Geometry, EveryNumberOfThreadsGivesTheSameBits) {
  const TestModel model(GetParam());
  const Both want = run(model, {});
  for (unsigned threads = 2; threads <= 5; ++threads)
    for (bool delays : {false, true}) {
      Way way;
      way.pool.threads = threads;
      way.pool.first_count = delays ? 0xffffff00u : 0;
      if (delays) way.pool.test_delay = disturb;
      expect_same(run(model, way), want, fmt::format("{} threads, delays {}", threads, delays));
    }
}

INSTANTIATE_TEST_SUITE_P(Models, Geometry,
                         testing::Values("synth:tiny:q4_0", "synth:tiny-gqa:q8_0", "synth:tiny-wide:q4_1",
                                         "synth:tiny-256:q6_k", "synth:tiny-gqa:f16", "synth:tiny:bf16",
                                         "synth:tiny-wide:f32", "synth:tiny:mxfp4", "synth:tiny-256:f8_e4m3",
                                         "synth:tiny-gqa:mxfp4 by e4m3", "synth:tiny-256:f8_e4m3 by e4m3"));

TEST(GeometryOfSubnormals, EveryWayKeepsThem) {
  const TestModel model(subnormal_source());
  Way way;
  way.decoder.kv = KvFormat::f32;
  way.kernels = &kernels(Isa::scalar);
  const Both want = run(model, way);
  for (Isa isa : available_isas())
    for (unsigned threads : {1u, 3u}) {
      way.kernels = &kernels(isa);
      way.pool.threads = threads;
      expect_same(run(model, way), want, std::string(isa_name(isa)));
    }
}

TEST(GeometryOfTies, EveryInstructionSetTakesTheLowestToken) {
  const TestModel model(source_of_twins());
  const Ask ask{.prompt = test_tokens(model.desc, 10), .max_tokens = 10};
  for (Isa isa : available_isas()) {
    Way way;
    way.kernels = &kernels(isa);
    for (int32_t token : fresh_answer(model, way, ask).tokens) EXPECT_EQ(token % 2, 0) << isa_name(isa);
  }
}

// Each mutant stands in for an instruction set.
class GeometryTableMutants : public testing::TestWithParam<Kernels (*)()> {};

TEST_P(GeometryTableMutants, AreCaught) {
  const Kernels wrong = GetParam()();
  Way way;
  way.kernels = &wrong;
  const TestModel model("synth:tiny:q4_1");
  EXPECT_NE(difference(run(model, way).fed, run(model, {}).fed), "");
}

INSTANTIATE_TEST_SUITE_P(Rounding, GeometryTableMutants, testing::Values(mutants::product_without_fma, mutants::rotation_with_fma));

TEST(GeometryMutants, ChangedTieRuleIsCaught) {
  const TestModel model(source_of_twins());
  const Kernels wrong = mutants::last_of_equals();
  Way way;
  way.kernels = &wrong;
  const Ask ask{.prompt = test_tokens(model.desc, 10), .max_tokens = 10};
  EXPECT_NE(difference(fresh_answer(model, way, ask), fresh_answer(model, {}, ask)), "");
}

TEST(GeometryMutants, SumThatDependsOnTheNumberOfThreadsIsCaught) {
  const TestModel model("synth:tiny-gqa:q8_0");
  const auto fed = [&](unsigned threads) {
    const Kernels wrong = mutants::segments_by_threads(threads);
    Way way;
    way.kernels = &wrong;
    way.pool.threads = threads;
    return Machine(model, way).feed(test_tokens(model.desc, 12), {5});
  };
  const Trace one = fed(1);
  for (unsigned threads : {2u, 3u, 4u}) EXPECT_NE(difference(fed(threads), one), "") << threads;
}

TEST(GeometryMutants, FlushToZeroInOneThreadIsCaught) {
  const TestModel model(subnormal_source());
  Way way;
  way.decoder.kv = KvFormat::f32;
  way.pool.threads = 2;
  const Trace want = run(model, way).fed;
  way.pool.test_delay = mutants::flush_to_zero_in_worker_0;
  EXPECT_NE(difference(run(model, way).fed, want), "");
}

}  // namespace
}  // namespace stet::test
