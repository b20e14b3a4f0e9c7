// A toy format, op, model and draft, added as docs/adding.md says, do all that real ones do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/fp.h"
#include "state/decoder.h"
#include "stet/engine.h"
#include "weights/fake_source_test.h"
#include "weights/gguf.h"
#include "weights/gguf_writer.h"
#include "weights/synth.h"
#include "weights/synth_metadata.h"

namespace stet {
namespace {

constexpr uint32_t kHidden = 96, kVocab = 330, kLayers = 2, kHeads = 3;

// A toy model whose matrices are all TOY3; its vocabulary is that of synthetic models.
class ToySource : public FakeSource {
 public:
  ToySource() : FakeSource("toy") {
    for (const auto& [key, value] : synth_metadata(synth_geometries()[3], Format::q8_0))
      if (key.starts_with("tokenizer.") || key == "general.quantization_version") metadata_[key] = value;
    metadata_["general.architecture"] = {std::string("toy")};
    metadata_["general.name"] = {std::string("a toy")};
    const std::pair<const char*, uint64_t> counts[] = {{"toy.block_count", kLayers},  {"toy.embedding_length", kHidden},
                                                       {"toy.vocab_size", kVocab},    {"toy.context_length", 512},
                                                       {"toy.attention.head_count", kHeads}};
    for (const auto& [key, value] : counts) metadata_[key] = {value};
    grow_vocabulary();
    add("token_embd.weight", Format::toy3, {kHidden, kVocab}, 1);
    add("output_norm.weight", Format::f32, {kHidden}, 2);
    for (uint32_t l = 0; l < kLayers; ++l) {
      add(fmt::format("blk.{}.scale.weight", l), Format::f32, {kHidden}, 10 + l);
      for (const char* name : {"q", "k", "v", "o"})
        add(fmt::format("blk.{}.{}.weight", l, name), Format::toy3, {kHidden, kHidden}, 20 + 4 * l + static_cast<unsigned>(name[0]));
    }
  }
  const Metadata& metadata() const override { return metadata_; }

 private:
  // The synthetic vocabulary has 320 tokens; a few more make the last tile a partial one.
  void grow_vocabulary() {
    auto tokens = *std::get<std::shared_ptr<const std::vector<std::string>>>(metadata_["tokenizer.ggml.tokens"].value);
    auto types = *std::get<std::shared_ptr<const MetaArray>>(metadata_["tokenizer.ggml.token_type"].value);
    while (tokens.size() < kVocab) tokens.push_back(fmt::format("<toy_{}>", tokens.size())), types.push_back(types.back());
    metadata_["tokenizer.ggml.tokens"] = {std::make_shared<const std::vector<std::string>>(std::move(tokens))};
    metadata_["tokenizer.ggml.token_type"] = {std::make_shared<const MetaArray>(std::move(types))};
  }
  Metadata metadata_;
};

class ExtendTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "stet-extend-" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    file_ = folder_ + "/toy.gguf";
    write_gguf(ToySource(), file_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Options options(const std::string& draft, Isa isa) const {
    Options o;
    o.model = file_;
    o.cache_dir = folder_ + "/cache";
    o.isa = isa_name(isa);
    o.threads = 2;
    o.context = 256;
    o.draft = draft;
    return o;
  }
  static Generation generate(Engine& engine, float temperature) {
    Request request;
    request.prompt = engine.tokenize_chat(std::vector<ChatMessage>{{"user", "Say something."}});
    request.max_tokens = 40;
    request.ignore_eos = true;
    request.sampling.temperature = temperature;
    request.sampling.seed = 7;
    return engine.generate(request);
  }
  std::string folder_, file_;
};

TEST_F(ExtendTest, TheFileIsReadWithItsFormat) {
  const auto file = GgufFile::open(file_);
  ASSERT_NE(file->find("blk.0.q.weight"), nullptr);
  EXPECT_EQ(file->find("blk.0.q.weight")->format, Format::toy3);
  EXPECT_EQ(format_from_name("toy3"), Format::toy3);
  EXPECT_EQ(describe_model(*file).architecture, "toy");
}

// The toy model writes text; no instruction set, draft or start changes a token of it.
TEST_F(ExtendTest, ItsTextIsTheSameEveryWay) {
  for (const float temperature : {0.0f, 0.8f}) {
    std::vector<int32_t> want;
    for (const Isa isa : available_isas())
      for (const char* draft : {"none", "echo", "ngram"}) {
        Engine engine(options(draft, isa));
        EXPECT_EQ(engine.info().architecture, "toy");
        const Generation g = generate(engine, temperature);
        EXPECT_EQ(g.tokens.size(), 40u);
        EXPECT_FALSE(g.text.empty());
        if (want.empty()) want = g.tokens;
        EXPECT_EQ(g.tokens, want) << isa_name(isa) << " " << draft;
      }
  }
}

TEST_F(ExtendTest, ItIsComparedAtTheFirstStartOnly) {
  const Isa isa = available_isas().back();
  EXPECT_EQ(Engine(options("none", isa)).info().qualified, "now");
  EXPECT_EQ(Engine(options("none", isa)).info().qualified, "cached");
}

TEST_F(ExtendTest, ItsDraftIsListed) {
  try {
    Engine(options("nothing", Isa::scalar));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("echo"));
  }
}

void wrong_scale(const float* x, const float* w, uint32_t k, float* y) {
  kernels(Isa::scalar).scale(x, w, k, y);
  y[k - 1] = float_of_bits(bits_of_float(y[k - 1]) ^ 1u);
}
void wrong_toy3(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  kernels(Isa::scalar).matvec(w, tile, x, out);
  if (w.format == Format::toy3 && x.rows == 11 && tile == w.tiles() - 1) out[0] = float_of_bits(bits_of_float(out[0]) ^ 1u);
}

// Nobody told qualification about the toys; it finds a wrong bit in them.
TEST_F(ExtendTest, AWrongBitInItIsCaught) {
  const ToySource source;
  const ModelDesc desc = describe_model(source);
  const auto pack = PackedModel::load(source, {});
  WorkerPool pool({});
  const auto arm = [&](const Kernels& k) { Decoder(desc, *pack, k, pool, {.context = 64}); };
  Kernels k = kernels(Isa::scalar);
  EXPECT_NO_THROW(arm(k));
  k.scale = wrong_scale;
  EXPECT_THROW(arm(k), Error);
  k = kernels(Isa::scalar);
  k.matvec = wrong_toy3;
  EXPECT_THROW(arm(k), Error);
}

}  // namespace
}  // namespace stet
