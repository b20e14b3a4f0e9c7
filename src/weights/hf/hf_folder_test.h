// Checkpoints as Hugging Face stores them, sound or not, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weights/synth.h"

namespace stet::test {

using OrderedJson = nlohmann::ordered_json;

struct StTensor {
  std::string name, dtype;
  std::vector<uint64_t> shape;  // slowest first
  std::string data;
};

inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), sizeof n) + header + data;
}

inline std::string safetensors_of(const std::vector<StTensor>& tensors) {
  OrderedJson header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const StTensor& t : tensors) {
    header[t.name] = {
        {"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {data.size(), data.size() + t.data.size()}}};
    data += t.data;
  }
  return safetensors_bytes(header.dump(), data);
}

// The model synth:tiny-gqa:f32 as LlamaForCausalLM saves it; members may be changed before save().
class HfFolder {
 public:
  HfFolder() : path_(std::filesystem::path(::testing::TempDir()) / ("stet_hf_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    source = SynthSource::create("synth:tiny-gqa:f32");
    read_config();
    for (const TensorInfo& t : source->tensors()) tensors.push_back(theirs(t));
  }
  ~HfFolder() { std::filesystem::remove_all(path_); }
  HfFolder(const HfFolder&) = delete;
  HfFolder& operator=(const HfFolder&) = delete;

  std::string path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  StTensor& tensor(const std::string& name) {
    for (StTensor& t : tensors)
      if (t.name == name) return t;
    throw std::logic_error("no tensor " + name);
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const StTensor& t) { return t.name == name; });
  }
  void save() const {
    write("config.json", config.dump());
    write("model.safetensors", safetensors_of(tensors));
  }
  // In two shards, with an index.
  OrderedJson save_shards() const {
    write("config.json", config.dump());
    const size_t half = tensors.size() / 2;
    write("model-00001-of-00002.safetensors",
          safetensors_of({tensors.begin(), tensors.begin() + static_cast<ptrdiff_t>(half)}));
    write("model-00002-of-00002.safetensors",
          safetensors_of({tensors.begin() + static_cast<ptrdiff_t>(half), tensors.end()}));
    OrderedJson index = {{"metadata", {{"total_size", 1}}}, {"weight_map", OrderedJson::object()}};
    for (size_t i = 0; i < tensors.size(); ++i)
      index["weight_map"][tensors[i].name] =
          i < half ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
    write("model.safetensors.index.json", index.dump());
    return index;
  }

  std::unique_ptr<SynthSource> source;
  OrderedJson config;
  std::vector<StTensor> tensors;

 private:
  uint64_t meta(const std::string& key) const {
    const auto it = source->metadata().find("llama." + key);
    return it == source->metadata().end() ? 0 : std::get<uint64_t>(it->second.value);
  }
  void read_config() {
    const uint64_t heads = meta("attention.head_count");
    config = {{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"vocab_size", source->find("token_embd.weight")->shape[1]},
              {"hidden_size", meta("embedding_length")},
              {"intermediate_size", meta("feed_forward_length")},
              {"num_hidden_layers", meta("block_count")},
              {"num_attention_heads", heads},
              {"num_key_value_heads", meta("attention.head_count_kv")},
              {"max_position_embeddings", meta("context_length")},
              {"rms_norm_eps", std::get<double>(source->metadata().at("llama.attention.layer_norm_rms_epsilon").value)},
              {"rope_theta", 10000.0},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", source->find("output.weight") == nullptr}};
  }
  StTensor theirs(const TensorInfo& t) const {
    static const std::vector<std::pair<std::string, std::string>> kNames = {
        {"attn_norm", "input_layernorm"}, {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"},
        {"attn_v", "self_attn.v_proj"},   {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
        {"ffn_gate", "mlp.gate_proj"},    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"}};
    std::string data(t.bytes, '\0');
    source->read(t, 0, std::as_writable_bytes(std::span(data)));
    std::string name = t.name == "token_embd.weight" ? "model.embed_tokens.weight"
                       : t.name == "output.weight"   ? "lm_head.weight"
                                                     : "model.norm.weight";
    uint64_t heads = 0;
    if (t.name.starts_with("blk.")) {
      const size_t dot = t.name.find('.', 4), end = t.name.find('.', dot + 1);
      const std::string part = t.name.substr(dot + 1, end - dot - 1);
      for (const auto& [ours, other] : kNames)
        if (ours == part) name = "model.layers." + t.name.substr(4, dot - 4) + "." + other + ".weight";
      if (part == "attn_q") heads = meta("attention.head_count");
      if (part == "attn_k") heads = meta("attention.head_count_kv");
    }
    if (heads != 0) data = in_halves(data, heads, t.shape[1]);
    return {name, "F32", {t.shape.rbegin(), t.shape.rend()}, data};
  }
  // Neighbouring rows 2i and 2i + 1 of a head become rows i and i + d/2.
  static std::string in_halves(const std::string& data, uint64_t heads, uint64_t rows) {
    const uint64_t d = rows / heads, bytes = data.size() / rows;
    std::string out(data.size(), '\0');
    for (uint64_t r = 0; r < rows; ++r) {
      const uint64_t to = r / d * d + r % d / 2 + r % 2 * (d / 2);
      std::memcpy(out.data() + to * bytes, data.data() + r * bytes, bytes);
    }
    return out;
  }

  std::filesystem::path path_;
};

}  // namespace stet::test
