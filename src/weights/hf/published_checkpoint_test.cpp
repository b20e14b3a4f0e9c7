// A checkpoint of DeepSeek V4 in the published types (tests/golden/deepseek_v4/full_blocks), sound and damaged.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "weights/hf/checkpoint.h"
#include "weights/hf/hf_folder_test.h"
#include "weights/packed_model.h"
#include "weights/summary.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

const std::string kPublished = "tests/golden/deepseek_v4/full_blocks";
constexpr const char* kWkv = "layers.0.attn.wkv.weight";
constexpr const char* kWkvScale = "layers.0.attn.wkv.scale";
constexpr const char* kExpert = "layers.0.ffn.experts.1.w2.weight";

struct PublishedFolder : test::HfFolder {
  PublishedFolder() {
    std::ifstream text(kPublished + "/config.json");
    config = test::OrderedJson::parse(text);
    const MappedFile file(kPublished + "/model.safetensors");
    tensors.clear();
    for (const SafetensorsTensor& t : parse_safetensors(ByteInput::of(file)).tensors) {
      std::string data(t.bytes, '\0');
      file.read(t.offset, std::as_writable_bytes(std::span(data)));
      tensors.push_back({t.name, t.dtype, t.shape, data});
    }
  }
  std::unique_ptr<HfCheckpoint> open() const {
    save();
    return HfCheckpoint::open(path());
  }
};

void expect_refusal(const std::function<void(PublishedFolder&)>& damage, Code code, const std::string& part) {
  PublishedFolder folder;
  damage(folder);
  try {
    folder.open()->tensors();
    ADD_FAILURE() << "accepted: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

std::string content(const TensorSource& source) {
  std::ostringstream all;
  std::vector<TensorInfo> sorted = source.tensors();
  std::ranges::sort(sorted, {}, &TensorInfo::name);
  for (const TensorInfo& t : sorted) {
    std::string bytes(t.bytes, '\0');
    source.read(t, 0, std::as_writable_bytes(std::span(bytes)));
    source.release(t);
    all << t.name << ' ' << traits(t.format).name << ' ' << t.shape[0] << ' ' << bytes << '\n';
  }
  return all.str();
}

TEST(PublishedCheckpoint, CodesAndScalesAreOneTensor) {
  const auto c = HfCheckpoint::open(kPublished);
  const TensorInfo *wkv = c->find("blk.0.attn_kv.weight"), *expert = c->find("blk.0.expert.1.down.weight");
  ASSERT_NE(wkv, nullptr);
  ASSERT_NE(expert, nullptr);
  EXPECT_EQ(wkv->format, Format::e4m3);
  EXPECT_EQ(wkv->shape, (std::vector<uint64_t>{128, 128}));
  EXPECT_EQ(wkv->bytes, 128u * 129);
  EXPECT_EQ(expert->format, Format::mxfp4);
  EXPECT_EQ(expert->shape, (std::vector<uint64_t>{128, 128}));
  EXPECT_EQ(expert->bytes, 128u * 4 * 17);
  EXPECT_EQ(c->find("token_embd.weight")->format, Format::bf16);
  for (const FormatSummary& f : summarize(*c, "x").formats) EXPECT_TRUE(f.supported) << f.format;
  EXPECT_EQ(c->tensors().size(), c->declared().size());
}

// In one file, with codes and scales of a matrix in different shards, and as transformers 5.24 saves it.
TEST(PublishedCheckpoint, WhereAndHowTensorsAreNamedDoesNotMatter) {
  PublishedFolder folder;
  const std::string want = content(*HfCheckpoint::open(kPublished));
  std::ranges::stable_partition(folder.tensors, [](const auto& t) { return t.name.ends_with(".scale"); });
  folder.save_shards();
  EXPECT_EQ(content(*HfCheckpoint::open(folder.path())), want);
  std::filesystem::remove(folder.path() + "/model.safetensors.index.json");
  for (test::StTensor& t : folder.tensors) {
    const bool head = t.name.starts_with("hc_head_");
    t.name = head ? "model.hc_head.hc_" + t.name.substr(8) : t.name == "head.weight" ? t.name : "model." + t.name;
    if (t.name == "model.embed.weight") t.name = "model.embed_tokens.weight";
  }
  folder.config["quantization_config"] = {{"activation_scheme", "dynamic"}, {"dequantize", false},
                                          {"expert_dtype", "fp4"},          {"modules_to_convert", nullptr},
                                          {"quant_method", "fp8"},          {"modules_to_not_convert", nullptr},
                                          {"scale_fmt", "ue8m0"},           {"weight_block_size", {128, 128}}};
  EXPECT_EQ(content(*folder.open()), want);
}

TEST(PublishedCheckpoint, HalvesThatDoNotMatchAreNamed) {
  expect_refusal(
      [](auto& f) { f.remove(kWkvScale); }, Code::kInput,
      "tensor 'layers.0.attn.wkv.weight' is F8_E4M3, and its scales, 'layers.0.attn.wkv.scale', are not there");
  expect_refusal([](auto& f) { f.remove(kWkv); }, Code::kInput,
                 "tensor 'layers.0.attn.wkv.scale' holds the scales of 'layers.0.attn.wkv.weight', which is not there");
  expect_refusal(
      [](auto& f) {
        f.tensor(kWkv) = {kWkv, "BF16", {128, 64}, f.tensor(kWkv).data};
      },
      Code::kInput, "which is neither FP8 nor packed FP4");
  expect_refusal(
      [](auto& f) {
        f.tensor(kWkvScale) = {kWkvScale, "F8_E8M0", {2, 1}, "ab"};
      },
      Code::kInput, "needs [1, 1]");
  expect_refusal(
      [](auto& f) {
        f.tensor(kWkvScale) = {kWkvScale, "F32", {1, 1}, "abcd"};
      },
      Code::kUnsupported, "tensor 'layers.0.attn.wkv.scale' is F32; stet reads scales of F8_E8M0");
  expect_refusal([](auto& f) { f.tensor(kWkvScale).name = "layers.0.attn.wkv.weight_scale_inv"; }, Code::kUnsupported,
                 "'layers.0.attn.wkv.weight_scale_inv' is not one of this architecture");
  expect_refusal(
      [](auto& f) {
        f.tensors.push_back({"layers.0.attn.wx.scale", "F8_E8M0", {1, 1}, "a"});
      },
      Code::kUnsupported, "'layers.0.attn.wx.scale' is not one of this architecture");
  expect_refusal(
      [](auto& f) {
        f.tensors.push_back({"layers.0.ffn_norm.scale", "F8_E8M0", {1, 1}, "a"});
      },
      Code::kInput, "which is neither FP8 nor packed FP4");
  expect_refusal([](auto& f) { f.tensor(kWkv).name = std::string("model.") + kWkv; }, Code::kInput,
                 "which is not there");
}

TEST(PublishedCheckpoint, TypesAreWhatTheConfigurationSays) {
  expect_refusal([](auto& f) { f.config.erase("quantization_config"); }, Code::kInput,
                 "but config.json has no quantization_config");
  expect_refusal([](auto& f) { f.config["expert_dtype"] = "fp8"; }, Code::kInput,
                 "is I8, but config.json says that experts are fp8");
  expect_refusal([](auto& f) { f.config.erase("expert_dtype"); }, Code::kInput,
                 "packed FP4 is what experts are, where config.json says expert_dtype fp4");
  expect_refusal(
      [](auto& f) {
        f.tensor(kExpert) = {kExpert, "F8_E4M3", {128, 64}, f.tensor(kExpert).data};
      },
      Code::kInput, "is F8_E4M3, but config.json says that experts are fp4");
  expect_refusal(
      [](auto& f) {
        f.tensor(kExpert) = {kExpert, "BF16", {128, 32}, f.tensor(kExpert).data};
      },
      Code::kInput, "is BF16, but config.json says that experts are fp4");
  expect_refusal([](auto& f) { f.tensor(kWkv).dtype = "I8"; }, Code::kInput, "attn.wkv.weight' is I8, but packed FP4");
  expect_refusal([](auto& f) { f.tensor(kWkv).dtype = "F8_E5M2"; }, Code::kInput, "which is neither");
  expect_refusal(
      [](auto& f) { std::erase_if(f.tensors, [](const auto& t) { return t.dtype != "F32" && t.dtype != "BF16"; }); },
      Code::kInput, "quantization_config says fp8, and no tensor is FP8");
}

TEST(PublishedCheckpoint, QuantizationConfigIsReadStrictly) {
  const auto with = [](const char* key, const test::OrderedJson& value, const std::string& part,
                       Code code = Code::kUnsupported) {
    expect_refusal([&](auto& f) { f.config["quantization_config"][key] = value; }, code, part);
  };
  with("quant_method", "gptq", "quantised (gptq)");
  with("fmt", "e5m2", "quantization_config: fmt is \"e5m2\"; stet runs \"e4m3\"");
  with("activation_scheme", "static", "activation_scheme is \"static\"");
  with("scale_fmt", "float", "scale_fmt is \"float\"");
  with("scale_fmt", nullptr, "does not say scale_fmt");
  with("weight_block_size", {64, 64}, "weight_block_size is [64,64]; stet runs [128,128]");
  with("dequantize", true, "dequantize");
  with("modules_to_not_convert", {"lm_head"}, "modules_to_not_convert");
  with("ignored_layers", {"lm_head"}, "sets ignored_layers");
  with("expert_dtype", "fp8", "expert_dtype is fp8 there and fp4 beside it", Code::kInput);
  with("expert_dtype", "nvfp4", "expert_dtype is 'nvfp4'");
  for (const char* key : {"quant_method", "activation_scheme", "scale_fmt", "weight_block_size"})
    expect_refusal([&](auto& f) { f.config["quantization_config"].erase(key); }, Code::kUnsupported,
                   key == std::string("quant_method") ? "quantised (?)" : std::string("does not say ") + key);
  expect_refusal([](auto& f) { f.config["quantization_config"] = "fp8"; }, Code::kUnsupported, "quantised (?)");
}

// What stet does not run can be looked at, by the names that it has there.
TEST(PublishedCheckpoint, OtherQuantisationsAreShown) {
  PublishedFolder folder;
  folder.config["quantization_config"]["quant_method"] = "gptq";
  const auto c = folder.open();
  EXPECT_EQ(c->declared().size(), folder.tensors.size());
  EXPECT_THROW(c->tensors(), Error);
}

TEST(PublishedCheckpoint, ExpertsMayBeFp8) {
  PublishedFolder folder;
  folder.config["expert_dtype"] = "fp8";
  for (test::StTensor& t : folder.tensors) {
    if (t.name.find(".ffn.experts.") == std::string::npos) continue;
    const bool scale = t.name.ends_with(".scale");
    t = {t.name, scale ? "F8_E8M0" : "F8_E4M3", {scale ? 1u : 128u, scale ? 1u : 128u}, ""};
    t.data.assign(scale ? 1 : 128 * 128, 'x');
  }
  EXPECT_EQ(folder.open()->find("blk.0.expert.2.up.weight")->format, Format::e4m3);
}

// They are left out, with their scales, in whatever state.
TEST(PublishedCheckpoint, BlocksOfDraftsAreLeftOut) {
  PublishedFolder folder;
  const size_t before = folder.open()->tensors().size();
  for (const auto& [from, to] : {std::pair("layers.0.attn.wkv.", "mtp.0.attn.wkv."),
                                 {"layers.0.attn.wkv.", "mtp.0.e_proj."},
                                 {"layers.0.ffn.experts.1.w2.", "mtp.0.ffn.experts.1.w2."}})
    for (const char* half : {"weight", "scale"}) {
      folder.tensors.push_back(folder.tensor(from + std::string(half)));
      folder.tensors.back().name = to + std::string(half);
    }
  EXPECT_EQ(folder.open()->tensors().size(), before);
  folder.tensors.pop_back();
  EXPECT_EQ(folder.open()->tensors().size(), before);
}

// One scale of FP8 or FP4 less or more makes another model: another key, other weights.
TEST(PublishedCheckpoint, ScalesArePartOfTheIdentity) {
  PublishedFolder folder;
  const auto packed = [&](bool dequantize) {
    PackOptions options;
    options.dequantize = dequantize;
    return PackedModel::load(*folder.open(), options);
  };
  for (const bool dequantize : {true, false}) {
    const auto before = packed(dequantize);
    for (const char* name : {kWkvScale, "layers.0.ffn.experts.1.w2.scale"}) {
      const std::string ours = name == kWkvScale ? "blk.0.attn_kv.weight" : "blk.0.expert.1.down.weight";
      const PackedMatrix* old = before->matrix(ours);
      folder.tensor(name).data[0] ^= 1;
      const auto after = packed(dequantize);
      folder.tensor(name).data[0] ^= 1;
      EXPECT_NE(after->key(), before->key());
      ASSERT_NE(after->matrix(ours), nullptr);
      EXPECT_NE(std::memcmp(after->matrix(ours)->data, old->data, old->bytes()), 0) << name;
    }
    EXPECT_EQ(packed(dequantize)->key(), before->key());
  }
}

}  // namespace
}  // namespace stet
