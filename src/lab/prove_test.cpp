#include "lab/prove.h"

#include <gtest/gtest.h>

#include "base/fp.h"
#include "engine/model_names.h"
#include "lab/tiny_engine_test.h"

namespace stet {
namespace {

ProveOptions options_for(const Engine& engine, uint32_t tokens) {
  ProveOptions o;
  o.prompt = engine.tokenize("prove it, twice over");
  o.tokens = tokens;
  return o;
}

TEST(Prove, EveryWayOfRunningIsEqual) {
  Engine engine(test::tiny_engine());
  const ProveReport report = prove(engine.parts(), options_for(engine, 12));
  EXPECT_TRUE(report.equal()) << report.divergence;
  EXPECT_GT(report.rows.size(), 60u);
  for (const ProveRow& row : report.rows) EXPECT_TRUE(row.equal) << row.what;
}

// A model whose memory is more than a KV cache, and whose rows choose experts and entries.
TEST(Prove, EveryWayOfRunningWithEntriesAndExpertsIsEqual) {
  Options o = test::tiny_engine(256);
  o.model = "tests/golden/deepseek_v4/mixed";
  o.kv = "f32";
  Engine engine(o);
  ProveOptions options;
  for (int32_t i = 0; i < 40; ++i) options.prompt.push_back(i * i % 61);
  options.tokens = 12;
  const ProveReport report = prove(engine.parts(), options);
  EXPECT_TRUE(report.equal()) << report.divergence;
  EXPECT_GT(report.rows.size(), 60u);
  for (const ProveRow& row : report.rows) EXPECT_TRUE(row.equal) << row.what;
}

// The drafts that a checkpoint holds blocks of have rows: alone at every depth, and together with everything else.
TEST(Prove, OwnDraftsAreEqual) {
  for (const std::string draft : {"mtp", "dspark"}) {
    Options o = test::tiny_engine(256);
    o.model = "tests/golden/deepseek_v4/" + draft;
    o.kv = "f32";
    o.draft = draft;
    EXPECT_EQ(own_draft(o.model, ""), draft);
    Engine engine(o);
    ProveOptions options;
    for (int32_t i = 0; i < 20; ++i) options.prompt.push_back(i * i % 31);
    options.tokens = 12;
    options.only = "draft=" + draft;
    const ProveReport report = prove(engine.parts(), options);
    EXPECT_TRUE(report.equal()) << report.divergence;
    EXPECT_GT(report.rows.size(), 20u);
  }
  EXPECT_EQ(own_draft("tests/golden/deepseek_v4/mixed", ""), "");
}

// A kernel that is wrong in one bit of one output is found, and the command that uses it is named.
void wrong_matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  kernels(available_isas().back()).matvec(w, tile, x, out);
  if (w.rows == 224 && tile == 3) out[5] = float_of_bits(bits_of_float(out[5]) ^ 0x400000u);
}

TEST(Prove, AWrongKernelIsNamed) {
  Engine engine(test::tiny_engine());
  ProveOptions options = options_for(engine, 8);
  Kernels wrong = kernels(available_isas().back());
  wrong.matvec = wrong_matvec;
  options.wrong_kernels = &wrong;
  options.only = "threads=3";
  const ProveReport report = prove(engine.parts(), options);
  ASSERT_FALSE(report.equal());
  EXPECT_NE(report.divergence.find("first in command blk.0.swiglu at position 0"), std::string::npos) << report.divergence;
}

}  // namespace
}  // namespace stet
