#include <gmock/gmock.h>

#include <cstring>

#include "base/error.h"
#include "weights/hf/checkpoint.h"
#include "weights/hf/hf_folder_test.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

// A configuration under the published keys, those of section 1.1 of the checkpoints' config.json included.
const char* const kConfig =
    R"({"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "torch_dtype": "bfloat16",
 "vocab_size": 4, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": false, "hidden_size": 8, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 8, "qk_rope_head_dim": 4, "q_lora_rank": 16, "o_lora_rank": 16,
 "o_groups": 2, "sliding_window": 8, "rms_norm_eps": 1e-6, "attention_bias": false, "attention_dropout": 0.0, "hidden_act": "silu",
 "initializer_range": 0.02, "max_position_embeddings": 64, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
 "moe_intermediate_size": 16, "num_hash_layers": 1, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": true,
 "routed_scaling_factor": 1.5, "swiglu_limit": 10.0, "expert_dtype": "fp4", "rope_theta": 10000, "compress_rope_theta": 160000,
 "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1},
 "compress_ratios": [0, 4, 0], "index_n_heads": 4, "index_head_dim": 8, "index_topk": 2, "hc_mult": 4, "hc_sinkhorn_iters": 20,
 "hc_eps": 1e-6, "num_nextn_predict_layers": 1, "dspark_block_size": 5, "dspark_markov_rank": 256, "dspark_noise_token_id": 3,
 "dspark_target_layer_ids": [0, 1], "reap_pruning": {"kept": 4}, "use_cache": true, "transformers_version": "5.24.0"})";

std::string words(const std::vector<int64_t>& numbers) {
  std::string bytes(numbers.size() * sizeof(int64_t), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

struct Checkpoint {
  Checkpoint() {
    folder.tensors = {{"layers.0.ffn.gate.tid2eid", "I64", {4, 2}, words({0, 1, 2, 3, 3, 2, 0, 16777215})},
                      {"layers.1.ffn.experts.12.w1.weight", "F32", {1, 2}, std::string(8, '\0')},
                      {"layers.1.hc_attn_base", "F32", {2}, std::string(8, '\0')},
                      {"mtp.0.norm.weight", "BF16", {1}, std::string(2, '\0')}};
  }
  std::unique_ptr<HfCheckpoint> open(bool drafts = false) {
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", test::safetensors_of(folder.tensors));
    return HfCheckpoint::open(folder.path(), drafts);
  }
  void refused(Code code, const std::string& part) {
    try {
      open()->tensors();
      ADD_FAILURE() << "accepted: " << part;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(part));
    }
  }
  test::HfFolder folder;
  test::OrderedJson config = test::OrderedJson::parse(kConfig);
};

TEST(DeepseekV4Dialect, PublishedNamesAndKeysAreTranslated) {
  Checkpoint c;
  const auto source = c.open();
  EXPECT_EQ(source->tensors().size(), 3u) << "blocks of drafts are left out";
  EXPECT_NE(source->find("blk.1.expert.12.gate.weight"), nullptr);
  EXPECT_NE(source->find("blk.1.attn_hc_base"), nullptr);
  const Metadata& m = source->metadata();
  EXPECT_EQ(std::get<uint64_t>(m.at("deepseek_v4.attention.indexer.top_k").value), 2u);
  EXPECT_EQ(std::get<double>(m.at("deepseek_v4.compress.rope.freq_base").value), 160000.0);
  EXPECT_EQ(std::get<double>(m.at("deepseek_v4.compress.rope.scaling.yarn_attn_factor").value), 1.0);
  const auto& ratios = *std::get<std::shared_ptr<const MetaArray>>(m.at("deepseek_v4.attention.compress_ratios").value);
  ASSERT_EQ(ratios.size(), 2u) << "one a layer, those of drafts not";
  EXPECT_EQ(std::get<uint64_t>(ratios[1].value), 4u);
}

// Blocks of drafts are there for whoever asks for them, under a prefix of their own; an unknown tensor of theirs keeps
// its name, so that it can be named.
TEST(DeepseekV4Dialect, BlocksOfDraftsAreThereWhenAskedFor) {
  Checkpoint c;
  c.folder.tensors.push_back({"mtp.1.ffn.experts.3.w2.weight", "F32", {1, 2}, std::string(8, '\0')});
  c.folder.tensors.push_back({"mtp.2.markov_head.markov_w1.weight", "F32", {1, 2}, std::string(8, '\0')});
  c.folder.tensors.push_back({"mtp.2.attn.unheard_of", "F32", {1, 2}, std::string(8, '\0')});
  const auto without = c.open(), with = c.open(true);
  EXPECT_EQ(without->tensors().size(), 3u);
  EXPECT_EQ(with->tensors().size(), 7u);
  for (const char* name :
       {"mtp.0.output_norm.weight", "mtp.1.expert.3.down.weight", "mtp.2.markov_embd.weight", "mtp.2.attn.unheard_of"})
    EXPECT_NE(with->find(name), nullptr) << name;
  EXPECT_NE(with->identity(), without->identity());
  const Metadata& m = without->metadata();
  EXPECT_EQ(std::get<uint64_t>(m.at("deepseek_v4.dspark.noise_token_id").value), 3u);
  EXPECT_EQ(std::get<std::shared_ptr<const MetaArray>>(m.at("deepseek_v4.dspark.target_layers").value)->size(), 2u);
  c.config["dspark_block_size"] = "five";
  c.refused(Code::kInput, "dspark_block_size");
}

// The same model as transformers 5.24 writes it.
TEST(DeepseekV4Dialect, WhatTransformersSavesIsTheSame) {
  Checkpoint published, saved;
  saved.folder.tensors[0].name = "model.layers.0.ffn.gate.tid2eid";
  saved.folder.tensors[1].name = "model.layers.1.ffn.experts.12.w1.weight";
  saved.folder.tensors[2].name = "model.layers.1.hc_attn_base";
  saved.folder.tensors[3] = {"model.hc_head.hc_base", "F32", {2}, std::string(8, '\0')};
  for (const char* key : {"compress_ratios", "num_hash_layers", "rope_scaling", "topk_method"}) saved.config.erase(key);
  saved.config["layer_types"] = {"sliding_attention", "compressed_sparse_attention"};
  saved.config["compress_rates"] = {{"compressed_sparse_attention", 4}, {"heavily_compressed_attention", 128}};
  saved.config["mlp_layer_types"] = {"hash_moe", "moe"};
  saved.config["rope_theta"] = 1.5;  // of no meaning beside rope_parameters
  const test::OrderedJson main = {{"rope_type", "default"}, {"rope_theta", 10000.0}, {"partial_rotary_factor", 0.5}};
  test::OrderedJson compress = published.config["rope_scaling"];
  compress.update(
      {{"rope_type", "yarn"}, {"rope_theta", 160000.0}, {"partial_rotary_factor", 0.5}, {"attention_factor", 1.0}});
  saved.config["rope_parameters"] = {{"main", main}, {"compress", compress}};
  const auto a = published.open();
  const auto b = saved.open();
  EXPECT_NE(b->find("output_hc_base"), nullptr);
  EXPECT_NE(b->find("blk.1.expert.12.gate.weight"), nullptr);
  for (const auto& [key, value] : a->metadata()) {
    if (!key.starts_with("deepseek_v4.") || std::holds_alternative<std::shared_ptr<const MetaArray>>(value.value))
      continue;
    EXPECT_EQ(b->metadata().at(key).value, value.value) << key;
  }
  saved.config["mlp_layer_types"] = {"moe", "hash_moe"};
  saved.refused(Code::kUnsupported, "mlp_layer_types");
  saved.config["mlp_layer_types"] = {"hash_moe", "moe"};
  saved.config["compress_rates"]["compressed_sparse_attention"] = 8;
  saved.refused(Code::kUnsupported, "compressed_sparse_attention");
}

TEST(DeepseekV4Dialect, TableOfIdsIsReadAsFloats) {
  Checkpoint c;
  const auto source = c.open();
  const TensorInfo* t = source->find("blk.0.ffn_experts_of_token.weight");
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->format, Format::f32);
  EXPECT_EQ(t->shape, (std::vector<uint64_t>{2, 4}));
  ASSERT_EQ(t->bytes, 32u);
  std::vector<float> all(8);
  source->read(*t, 0, std::as_writable_bytes(std::span(all)));
  EXPECT_EQ(all, (std::vector<float>{0, 1, 2, 3, 3, 2, 0, 16777215}));
  std::vector<std::byte> bytes(32);
  std::memcpy(bytes.data(), all.data(), 32);
  for (uint64_t begin = 0; begin <= 32; ++begin)
    for (uint64_t n = 0; begin + n <= 32; ++n) {
      std::vector<std::byte> piece(n);
      source->read(*t, begin, piece);
      EXPECT_TRUE(std::equal(piece.begin(), piece.end(), bytes.begin() + static_cast<ptrdiff_t>(begin)));
    }
  for (const int64_t wrong : {int64_t{-1}, int64_t{1} << 24}) {
    c.folder.tensors[0].data = words({0, 1, 2, 3, 3, 2, 0, wrong});
    const auto damaged = c.open();
    EXPECT_THROW(damaged->read(*damaged->find(t->name), 0, bytes), Error);
  }
  c.folder.tensors[0] = {"layers.0.ffn.gate.tid2eid", "F32", {4, 2}, std::string(32, '\0')};
  c.refused(Code::kUnsupported, "tid2eid' is F32");
}

TEST(DeepseekV4Dialect, WhatIsNotRunIsRefusedByName) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, test::OrderedJson>>{{"scoring_func", "softmax"},
                                                              {"tie_word_embeddings", true},
                                                              {"n_shared_experts", 2},
                                                              {"norm_topk_prob", false},
                                                              {"a_new_key", 1},
                                                              {"quantization_config", {{"quant_method", "awq"}}}}) {
    Checkpoint c;
    c.config[key] = value;
    c.refused(Code::kUnsupported, key == "quantization_config" ? "awq" : key);
  }
  Checkpoint c;
  c.config["rope_scaling"]["mscale"] = 1.0;
  c.refused(Code::kUnsupported, "mscale");
  Checkpoint few;
  few.config["compress_ratios"] = {0};
  few.refused(Code::kInput, "compress_ratios has 1 entries for 2 layers");
  for (const char* name : {"layers.0.attn.wq.weight", "layers.00.attn_norm.weight", "layers.0.ffn.experts.1.w4.weight",
                           "lm_head.weight"}) {
    Checkpoint other;
    other.folder.tensors.push_back({name, "F32", {1}, std::string(4, '\0')});
    other.refused(Code::kUnsupported, name);
  }
}

// K160: fewer experts, numbered without gaps, and a table that may name one twice for a token.
TEST(DeepseekV4Dialect, PrunedCheckpointsAreOrdinaryOnes) {
  Checkpoint c;
  c.config["n_routed_experts"] = 160;
  c.config["reap_pruning"] = {{"method", "reap"}, {"layers", {{{"kept", {0, 2, 3}}}}}};
  c.folder.tensors[0] = {"layers.0.ffn.gate.tid2eid", "I64", {4, 2}, words({7, 7, 159, 0, 1, 1, 2, 3})};
  c.folder.tensors[1].name = "layers.1.ffn.experts.159.w1.weight";
  const auto source = c.open();
  EXPECT_EQ(std::get<uint64_t>(source->metadata().at("deepseek_v4.expert_count").value), 160u);
  EXPECT_NE(source->find("blk.1.expert.159.gate.weight"), nullptr);
  std::vector<float> ids(8);
  source->read(*source->find("blk.0.ffn_experts_of_token.weight"), 0, std::as_writable_bytes(std::span(ids)));
  EXPECT_EQ(ids, (std::vector<float>{7, 7, 159, 0, 1, 1, 2, 3}));
}

TEST(DeepseekV4Dialect, TypesThatAreNotRunAreNamed) {
  for (const char* dtype : {"F8_E5M2", "U8", "F4"}) {
    Checkpoint c;
    c.folder.tensors.push_back({"layers.0.attn.wkv.weight", dtype, {2, 2}, std::string(dtype[1] == '4' ? 2 : 4, '\0')});
    c.refused(Code::kUnsupported, std::string("layers.0.attn.wkv.weight' is ") + dtype);
  }
}

}  // namespace
}  // namespace stet
