// Tiny DeepSeek V4 models in mode `checkpoint`, layer by layer against a transcription in binary64 that rounds where
// the published reference rounds (tools/oracle/deepseek_v4).
//
// Errors of f32 arithmetic change nothing until one moves a value over a rounding boundary, so exactness is no bar and
// neither is a distance of logits. Every layer is given the golden streams before it; golden.json says what share of
// the elements behind it such errors change at the worst of 64 draws, and by how much. Twice that is the bar: every
// wrong rounding of the golden's list is beyond it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/fp.h"
#include "state/deepseek_v4_golden.h"

namespace stet {
namespace {

struct Changed {
  size_t elements = 0, all = 0;
  double squares = 0, scale = 0;

  double share() const { return static_cast<double>(elements) / static_cast<double>(all); }
  double rms() const { return std::sqrt(squares / scale); }
};

// Runs the prompt in one pass; behind each layer compares the streams with the golden's and goes on with these.
class LayerByLayer {
 public:
  LayerByLayer(const test::DeepseekV4Golden& golden, const std::string& name)
      : golden_(golden), size_(golden.tokens.size() * golden.model.desc.hidden * 4) {
    streams_ = test::last_elements<uint16_t>(test::kDeepseekV4Goldens + name + "/checkpoint_streams.npy",
                                             size_ * golden.model.desc.layers);
  }

  Changed run(Decoder& decoder) {
    decoder.set_observer([this](const Stage& stage, const StepParams&, uint32_t rows) { see(stage, rows); });
    decoder.forward(golden_.tokens, 0, 1);
    EXPECT_EQ(layer_, golden_.model.desc.layers);
    return changed_;
  }

 private:
  void see(const Stage& stage, uint32_t rows) {
    const Command& c = *stage.commands.back();
    if (!c.name.ends_with(".ffn_hc_post")) return;
    for (size_t i = 0; i < size_t{rows} * c.out->width; ++i) {
      const float want = bf16_to_f32(streams_[layer_ * size_ + i]);
      float& got = c.out->data[i];
      ASSERT_EQ(got, bf16_to_f32(f32_to_bf16(got))) << c.name;
      const double error = static_cast<double>(got) - static_cast<double>(want);
      changed_.elements += error != 0;
      changed_.squares += error * error;
      changed_.scale += static_cast<double>(want) * static_cast<double>(want);
      got = want;
    }
    changed_.all += size_t{rows} * c.out->width;
    ++layer_;
  }

  const test::DeepseekV4Golden& golden_;
  const size_t size_;
  std::vector<uint16_t> streams_;
  uint32_t layer_ = 0;
  Changed changed_;
};

DecoderOptions eager() { return {256, KvFormat::f32, ReplayMode::eager, kWideRows}; }

class DeepseekV4Checkpoint : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, DeepseekV4Checkpoint, testing::Values("mixed", "fine", "coarse", "full_blocks"));

TEST_P(DeepseekV4Checkpoint, RoundsWhereThePublishedReferenceDoes) {
  const test::DeepseekV4Golden m(GetParam(), "checkpoint");
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(Isa::scalar), pool, eager(), test::unqualified());
  const Changed changed = LayerByLayer(m, GetParam()).run(decoder);
  const Json& bar = m.record["checkpoint"]["layer_by_layer"]["float32 errors"];
  EXPECT_LE(changed.share(), 2 * bar["share"].get<double>());
  EXPECT_LE(changed.rms(), 2 * bar["rms"].get<double>());
  std::printf("    %s: %.3g of the elements differ (f32 errors: %s), rms %.3g (%s)\n", GetParam(), changed.share(),
              bar["share"].dump().c_str(), changed.rms(), bar["rms"].dump().c_str());
}

// Where errors of f32 arithmetic move no value over a boundary, the tolerance is theirs alone.
TEST_P(DeepseekV4Checkpoint, LogitsAreWithinTheToleranceOfTheirPosition) {
  const test::DeepseekV4Golden m(GetParam(), "checkpoint");
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(Isa::scalar), pool, eager(), test::unqualified());
  const auto positions = m.record["positions"].get<std::vector<size_t>>();
  const auto tolerances = m.record["checkpoint"]["tolerance_at_positions"].get<std::vector<double>>();
  const size_t vocab = m.model.desc.vocab;
  const auto golden = test::last_elements<double>(test::kDeepseekV4Goldens + GetParam() + "/checkpoint_logits.npy",
                                                  positions.size() * vocab);
  double worst = 0;
  decoder.forward_all(m.tokens, 0, [&](uint32_t position, const float* logits) {
    const auto at = std::ranges::find(positions, size_t{position});
    if (at == positions.end()) return;
    const size_t i = static_cast<size_t>(at - positions.begin());
    for (size_t t = 0; t < vocab; ++t) {
      const double error = std::abs(static_cast<double>(logits[t]) - golden[i * vocab + t]);
      EXPECT_LE(error, tolerances[i]) << "position " << position << ", token " << t;
      worst = std::max(worst, error / tolerances[i]);
    }
  });
  std::printf("    %s: at most %.2f of the tolerance\n", GetParam(), worst);
}

}  // namespace
}  // namespace stet
