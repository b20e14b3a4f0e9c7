// The llama family: grouped-query attention, rotary embeddings over adjacent pairs, SwiGLU, RMSNorm before each half of a layer.
//
//   h = norm(x);  q, k, v = Wq h, Wk h, Wv h;  rotate q, k;  x += Wo attention(q, K, V)
//   h = norm(x);  x += Wdown (silu(Wgate h) * Wup h)
//   logits = Whead norm(x)
//
// GGUF stores the rows of Wq and Wk so that a rotation's pairs are neighbours.
#include <array>
#include <cmath>

#include "base/error.h"
#include "models/config_reader.h"
#include "models/model_desc.h"
#include "models/rope_frequencies.h"

namespace stet {
namespace {

// Keys of the namespace that cannot change the answer.
constexpr std::array<std::string_view, 3> kHarmlessKeys = {"rope.scaling.finetuned", "tensor_data_layout", "context_length"};

std::string block(uint32_t layer, std::string_view tensor) { return fmt::format("blk.{}.{}.weight", layer, tensor); }

std::vector<TensorSpec> tensor_table(const ModelDesc& d) {
  const uint64_t q = uint64_t{d.heads} * d.head_dim, kv = uint64_t{d.kv_heads} * d.head_dim;
  std::vector<TensorSpec> t = {{"token_embd.weight", {d.hidden, d.vocab}}, {"output_norm.weight", {d.hidden}}};
  if (!d.tied) t.push_back({"output.weight", {d.hidden, d.vocab}});
  for (uint32_t l = 0; l < d.layers; ++l) {
    t.push_back({block(l, "attn_norm"), {d.hidden}});
    t.push_back({block(l, "attn_q"), {d.hidden, q}});
    t.push_back({block(l, "attn_k"), {d.hidden, kv}});
    t.push_back({block(l, "attn_v"), {d.hidden, kv}});
    t.push_back({block(l, "attn_output"), {q, d.hidden}});
    t.push_back({block(l, "ffn_norm"), {d.hidden}});
    t.push_back({block(l, "ffn_gate"), {d.hidden, d.ffn}});
    t.push_back({block(l, "ffn_up"), {d.hidden, d.ffn}});
    t.push_back({block(l, "ffn_down"), {d.ffn, d.hidden}});
  }
  return t;
}

void record_layer(const ModelDesc& d, const ModelWeights& w, uint32_t l, ListBuilder& list) {
  const uint32_t q_width = d.heads * d.head_dim, kv_width = d.kv_heads * d.head_dim;
  const Buffer* x = list.buffer("x", d.hidden);
  const Buffer* h = list.buffer("h", d.hidden);
  const Buffer *q = list.buffer("q", q_width), *k = list.buffer("k", kv_width), *v = list.buffer("v", kv_width);
  const Buffer *rotated = list.buffer("q_rotated", q_width), *attention = list.buffer("attention", q_width);
  const Buffer *gate = list.buffer("gate", d.ffn), *up = list.buffer("up", d.ffn), *act = list.buffer("act", d.ffn);
  const auto name = [&](std::string_view op) { return fmt::format("blk.{}.{}", l, op); };
  const auto product = [&](const char* tensor, const Buffer* in, const Buffer* out, bool add = false) {
    list.matvec(name(tensor), w.matrix(block(l, tensor)), in, out, add);
  };
  list.rmsnorm(name("attn_norm"), x, w.vector(block(l, "attn_norm")), d.norm_eps, h);
  product("attn_q", h, q);
  product("attn_k", h, k);
  product("attn_v", h, v);
  list.store(name("rope_store"), &w.attend[l], q, k, v, rotated);
  list.attend(name("attend"), &w.attend[l], rotated, attention);
  product("attn_output", attention, x, true);
  list.rmsnorm(name("ffn_norm"), x, w.vector(block(l, "ffn_norm")), d.norm_eps, h);
  product("ffn_gate", h, gate);
  product("ffn_up", h, up);
  list.swiglu(name("swiglu"), gate, up, act);
  product("ffn_down", act, x, true);
}

void record_body(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  list.embed("token_embd", w.matrix("token_embd.weight"), list.buffer("x", d.hidden));
  for (uint32_t l = 0; l < d.layers; ++l) record_layer(d, w, l, list);
}

void record_head(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  const Buffer* h = list.buffer("head_norm", d.hidden);
  list.rmsnorm("output_norm", list.pass_buffer("x", d.hidden), w.vector("output_norm.weight"), d.norm_eps, h);
  list.matvec("output", w.matrix(d.tied ? "token_embd.weight" : "output.weight"), h, list.buffer("logits", d.vocab));
}

std::vector<float> read_rope_freqs(const TensorSource& source, uint32_t rope_dim) {
  const TensorInfo* t = source.find("rope_freqs.weight");
  if (t == nullptr) return {};
  if (t->format != Format::f32 || t->elements() != rope_dim / 2)
    fail(Code::kInput, "rope_freqs.weight has {} elements of format {}; {} of F32 are needed", t->elements(),
         traits(t->format).name, rope_dim / 2);
  std::vector<float> out(rope_dim / 2);
  source.read(*t, 0, std::as_writable_bytes(std::span(out)));
  for (float f : out)
    if (!(f > 0.0f) || !std::isfinite(f)) fail(Code::kInput, "rope_freqs.weight holds {}, not a positive number", f);
  return out;
}

void read_attention(ConfigReader& config, ModelDesc& d) {
  d.heads = config.u32("attention.head_count", 1, 4096);
  d.kv_heads = config.u32_or("attention.head_count_kv", 1, 4096, d.heads);
  if (d.heads % d.kv_heads != 0)
    fail(Code::kInput, "{} attention heads cannot share {} KV heads evenly", d.heads, d.kv_heads);
  d.head_dim = config.u32_or("attention.key_length", 1, 4096, d.hidden / d.heads);
  if (config.u32_or("attention.value_length", 1, 4096, d.head_dim) != d.head_dim)
    fail(Code::kUnsupported, "keys of {} elements and values of another length are not supported", d.head_dim);
  if (d.head_dim % 2 != 0 || d.head_dim > kMaxHeadDim)
    fail(Code::kUnsupported, "attention heads of {} elements are not supported: an even number up to {} is needed", d.head_dim,
         kMaxHeadDim);
  d.norm_eps = static_cast<float>(config.number("attention.layer_norm_rms_epsilon", 0, 1));
  d.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d.head_dim)));
}

}  // namespace

ModelDesc describe_llama(const TensorSource& source) {
  ModelDesc d;
  ConfigReader config(source, "llama");
  d.layers = config.u32("block_count", 1, 4096);
  d.hidden = config.u32("embedding_length", 1, 1u << 20);
  d.ffn = config.u32("feed_forward_length", 1, 1u << 22);
  d.context = config.u32("context_length", 1, 1u << 30);
  read_attention(config, d);
  if (config.u32_or("expert_count", 0, 65536, 0) != 0 || config.u32_or("expert_used_count", 0, 65536, 0) != 0)
    fail(Code::kUnsupported, "this llama model is a mixture of experts, which stet does not run yet");
  const TensorInfo* embedding = source.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) fail(Code::kInput, "the model file has no matrix token_embd.weight; it is incomplete, get it again");
  d.vocab = static_cast<uint32_t>(embedding->shape[1]);
  if (const uint32_t declared = config.u32_or("vocab_size", 1, 1u << 26, d.vocab); declared != d.vocab)
    fail(Code::kInput, "llama.vocab_size is {}, but token_embd.weight has {} rows", declared, d.vocab);
  const uint32_t rope_dim = config.u32_or("rope.dimension_count", 2, d.head_dim, d.head_dim);
  if (rope_dim % 2 != 0) fail(Code::kInput, "llama.rope.dimension_count is {}, not even", rope_dim);
  d.rope = read_rope(config, rope_dim, d.context, read_rope_freqs(source, rope_dim));
  config.finish(kHarmlessKeys);
  d.tied = source.find("output.weight") == nullptr;
  d.tensors = tensor_table(d);
  if (source.find("rope_freqs.weight") != nullptr) d.tensors.push_back({"rope_freqs.weight", {rope_dim / 2}});
  d.record_body = record_body;
  d.record_head = record_head;
  return d;
}

}  // namespace stet
