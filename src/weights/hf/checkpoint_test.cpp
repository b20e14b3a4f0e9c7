#include "weights/hf/checkpoint.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

#include "base/error.h"
#include "weights/hf/hf_folder_test.h"
#include "weights/summary.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

void expect_refused(const test::HfFolder& folder, Code code, const std::string& part) {
  try {
    HfCheckpoint::open(folder.path())->tensors();
    ADD_FAILURE() << "accepted: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

// Tensor by tensor the bytes of the model that the folder was made of, also in pieces.
void expect_same_tensors(const HfCheckpoint& got, const TensorSource& want) {
  ASSERT_EQ(got.tensors().size(), want.tensors().size());
  std::mt19937 random(7);
  for (const TensorInfo& w : want.tensors()) {
    const TensorInfo* t = got.find(w.name);
    ASSERT_NE(t, nullptr) << w.name;
    EXPECT_EQ(t->shape, w.shape) << w.name;
    EXPECT_EQ(t->format, w.format);
    ASSERT_EQ(t->bytes, w.bytes);
    std::vector<std::byte> all(w.bytes), same(w.bytes);
    want.read(w, 0, all);
    got.read(*t, 0, same);
    EXPECT_EQ(all, same) << w.name;
    for (int i = 0; i < 20; ++i) {
      const uint64_t begin = random() % w.bytes, n = random() % (w.bytes - begin + 1);
      std::vector<std::byte> piece(n);
      got.read(*t, begin, piece);
      EXPECT_TRUE(std::equal(piece.begin(), piece.end(), all.begin() + static_cast<ptrdiff_t>(begin))) << w.name;
    }
    got.release(*t);
  }
}

TEST(HfCheckpoint, IsTheModelThatItWasMadeOf) {
  test::HfFolder folder;
  folder.save();
  const auto c = HfCheckpoint::open(folder.path());
  expect_same_tensors(*c, *folder.source);
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length", "context_length",
                          "attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon"}) {
    const std::string name = std::string("llama.") + key;
    EXPECT_EQ(c->metadata().at(name).value, folder.source->metadata().at(name).value) << name;
  }
  EXPECT_FALSE(c->synthetic());
  EXPECT_EQ(c->files().size(), 2u);
  EXPECT_EQ(summarize(*c, "x").weight_bytes, summarize(*folder.source, "x").weight_bytes);
}

TEST(HfCheckpoint, ShardsAreOneModel) {
  test::HfFolder folder;
  folder.save_shards();
  const auto c = HfCheckpoint::open(folder.path());
  expect_same_tensors(*c, *folder.source);
  EXPECT_EQ(c->files().size(), 4u);
  const std::string before = c->identity();
  folder.write("model-00002-of-00002.safetensors", test::safetensors_of({folder.tensors.back()}));
  expect_refused(folder, Code::kInput, "lacks tensor");
}

TEST(HfCheckpoint, WhatIsMissingOrTooMuchIsNamed) {
  test::HfFolder folder;
  test::OrderedJson index = folder.save_shards();
  std::filesystem::remove(folder.path() + "/model-00002-of-00002.safetensors");
  expect_refused(folder, Code::kInput,
                 "model-00002-of-00002.safetensors: is not there (model.safetensors.index.json names it)");
  folder.save_shards();
  index["weight_map"].erase("model.norm.weight");
  folder.write("model.safetensors.index.json", index.dump());
  expect_refused(folder, Code::kInput,
                 "has tensor 'model.norm.weight', and model.safetensors.index.json does not say so");
  for (const char* shard : {"../x", "/etc/passwd", "..", ""}) {
    index["weight_map"]["model.norm.weight"] = shard;
    folder.write("model.safetensors.index.json", index.dump());
    expect_refused(folder, Code::kInput, "no name of a file beside it");
  }
  std::filesystem::remove(folder.path() + "/model.safetensors.index.json");
  expect_refused(folder, Code::kInput, "model.safetensors: is not there; get the whole checkpoint");
  std::filesystem::remove(folder.path() + "/config.json");
  expect_refused(folder, Code::kInput, "a folder without config.json");
}

TEST(HfCheckpoint, TensorsOfOtherModelsAreRefused) {
  test::HfFolder folder;
  folder.tensors.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {1}, "1234"});
  folder.save();
  expect_refused(folder, Code::kUnsupported,
                 "tensor 'model.layers.0.self_attn.q_proj.bias' is not one of this architecture");
  folder.tensors.back() = {"model.layers.00.input_layernorm.weight", "F32", {1}, "1234"};
  folder.save();
  expect_refused(folder, Code::kUnsupported, "layers.00");
  folder.tensors.back() = {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, "1234"};
  folder.save();
  EXPECT_EQ(HfCheckpoint::open(folder.path())->tensors().size(), folder.source->tensors().size()) << "left out";
  folder.tensors.pop_back();
  folder.tensor("model.norm.weight").dtype = "I32";
  folder.save();
  expect_refused(folder, Code::kUnsupported, "tensor 'model.norm.weight' is I32");
  EXPECT_FALSE(HfCheckpoint::open(folder.path())->declared().empty()) << "stet inspect shows it";
}

TEST(HfCheckpoint, TheHeadIsWhatTheConfigurationSays) {
  test::HfFolder folder;
  const bool tied = folder.config["tie_word_embeddings"];
  if (!tied) folder.remove("lm_head.weight");
  folder.config["tie_word_embeddings"] = false;
  folder.save();
  expect_refused(folder, Code::kInput, "lack tensor 'lm_head.weight'");
  folder.config["tie_word_embeddings"] = true;
  folder.tensors.push_back(folder.tensor("model.embed_tokens.weight"));
  folder.tensors.back().name = "lm_head.weight";
  folder.save();
  EXPECT_EQ(HfCheckpoint::open(folder.path())->find("output.weight"), nullptr) << "tied: the embedding is the head";
}

TEST(HfCheckpoint, EveryKeyOfTheConfigurationCounts) {
  test::HfFolder folder;
  const auto with = [&](const std::string& key, const test::OrderedJson& value, Code code, const std::string& part) {
    const test::OrderedJson before = folder.config;
    folder.config[key] = value;
    folder.save();
    expect_refused(folder, code, part);
    folder.config = before;
  };
  with("model_type", "mamba", Code::kUnsupported, "model_type 'mamba'");
  with("model_type", nullptr, Code::kInput, "model_type");
  with("hidden_act", "gelu", Code::kUnsupported, "hidden_act is \"gelu\"");
  with("attention_bias", true, Code::kUnsupported, "attention_bias");
  with("rope_interleaved", true, Code::kUnsupported, "rope_interleaved");
  with("some_new_switch", 1, Code::kUnsupported, "sets some_new_switch");
  with("hidden_size", "many", Code::kInput, "hidden_size");
  with("num_attention_heads", 5, Code::kInput, "heads of pairs");
  with("quantization_config", {{"quant_method", "fp8"}}, Code::kUnsupported, "quantised (fp8)");
  with("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}, Code::kUnsupported, "RoPE of type 'dynamic'");
  with("rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"mscale", 1}}, Code::kUnsupported, "sets mscale");
  with("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}, Code::kInput, "low_freq_factor");
}

TEST(HfCheckpoint, OtherFamiliesCanBeLookedAt) {
  test::HfFolder folder;
  folder.config = {{"model_type", "other"}, {"quantization_config", {{"quant_method", "fp8"}}}};
  folder.tensors.push_back({"x.weight", "F8_E4M3", {1, 2}, "ab"});
  folder.tensors.push_back({"x.scale", "F8_E8M0", {1, 1}, "a"});
  folder.save();
  const auto c = HfCheckpoint::open(folder.path());
  EXPECT_EQ(std::get<std::string>(c->metadata().at("general.architecture").value), "other");
  std::set<std::string> formats;
  for (const FormatSummary& f : summarize(*c, "x").formats) formats.insert(f.format);
  EXPECT_THAT(formats, testing::IsSupersetOf({"F8_E4M3", "F8_E8M0", "F32"}));
  EXPECT_EQ(c->declared().size(), folder.tensors.size()) << "by their own names, scales too";
  EXPECT_THROW(c->tensors(), Error);
}

TEST(HfCheckpoint, RopeOfBothVersionsOfTransformers) {
  test::HfFolder folder;
  const test::OrderedJson llama3 = {{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 64}};
  folder.config["rope_theta"] = 500000.0;
  folder.config["rope_scaling"] = llama3;
  folder.save();
  const auto older = HfCheckpoint::open(folder.path());
  folder.config.erase("rope_theta");
  folder.config.erase("rope_scaling");
  folder.config["rope_parameters"] = llama3;
  folder.config["rope_parameters"]["rope_theta"] = 500000.0;
  folder.save();
  const auto newer = HfCheckpoint::open(folder.path());
  EXPECT_EQ(std::get<double>(newer->metadata().at("llama.rope.freq_base").value), 500000.0);
  std::vector<float> a(newer->find("rope_freqs.weight")->elements()), b = a;
  older->read(*older->find("rope_freqs.weight"), 0, std::as_writable_bytes(std::span(a)));
  newer->read(*newer->find("rope_freqs.weight"), 0, std::as_writable_bytes(std::span(b)));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.front(), 1.0f) << "a wavelength of 6 of 64 positions";
  EXPECT_EQ(a.back(), 8.0f);
  folder.config["rope_parameters"] = {
      {"rope_type", "yarn"}, {"rope_theta", 1e4}, {"factor", 4.0}, {"beta_fast", 16}, {"attention_factor", 1.25}};
  folder.save();
  const auto yarn = HfCheckpoint::open(folder.path());
  EXPECT_EQ(std::get<double>(yarn->metadata().at("llama.rope.scaling.yarn_attn_factor").value), 1.25);
  EXPECT_EQ(std::get<double>(yarn->metadata().at("llama.rope.scaling.yarn_beta_fast").value), 16);
}

TEST(HfCheckpoint, IsAnotherOneWhenAFileChanges) {
  test::HfFolder folder;
  folder.save();
  const auto c = HfCheckpoint::open(folder.path());
  const std::string before = c->identity();
  folder.write("generation_config.json", R"({"eos_token_id": [1, 2]})");
  EXPECT_NE(HfCheckpoint::open(folder.path())->identity(), before);
  folder.write("model.safetensors", "short");
  std::vector<std::byte> out(4);
  EXPECT_THROW(c->read(c->tensors()[0], 0, out), Error);
}

}  // namespace
}  // namespace stet
