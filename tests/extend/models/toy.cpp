// A toy: per layer h = scale(x, w), then attention with a residual; no feed-forward half.
#include <array>
#include <cmath>

#include "base/error.h"
#include "models/config_reader.h"
#include "models/model_desc.h"
#include "models/rope_frequencies.h"

namespace stet {
namespace {

constexpr std::array<std::string_view, 1> kHarmlessKeys = {"context_length"};

std::string block(uint32_t layer, std::string_view tensor) { return fmt::format("blk.{}.{}.weight", layer, tensor); }

void record_body(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  const Buffer *x = list.buffer("x", d.hidden), *h = list.buffer("h", d.hidden), *q = list.buffer("q", d.hidden),
               *k = list.buffer("k", d.hidden), *v = list.buffer("v", d.hidden), *rotated = list.buffer("q_rotated", d.hidden),
               *attention = list.buffer("attention", d.hidden);
  list.embed("token_embd", w.matrix("token_embd.weight"), x);
  for (uint32_t l = 0; l < d.layers; ++l) {
    list.row(Op::scale, fmt::format("blk.{}.scale", l), x, h).weight = w.vector(block(l, "scale"));
    list.matvec(fmt::format("blk.{}.q", l), w.matrix(block(l, "q")), h, q);
    list.matvec(fmt::format("blk.{}.k", l), w.matrix(block(l, "k")), h, k);
    list.matvec(fmt::format("blk.{}.v", l), w.matrix(block(l, "v")), h, v);
    list.store(fmt::format("blk.{}.rope_store", l), &w.attend[l], q, k, v, rotated);
    list.attend(fmt::format("blk.{}.attend", l), &w.attend[l], rotated, attention);
    list.matvec(fmt::format("blk.{}.o", l), w.matrix(block(l, "o")), attention, x, true);
  }
}

void record_head(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  const Buffer* h = list.buffer("head_norm", d.hidden);
  list.rmsnorm("output_norm", list.pass_buffer("x", d.hidden), w.vector("output_norm.weight"), d.norm_eps, h);
  list.matvec("output", w.matrix("token_embd.weight"), h, list.buffer("logits", d.vocab));
}

}  // namespace

ModelDesc describe_toy(const TensorSource& source) {
  ModelDesc d;
  ConfigReader config(source, "toy");
  d.layers = config.u32("block_count", 1, 4096);
  d.hidden = config.u32("embedding_length", 1, 1u << 20);
  d.vocab = config.u32("vocab_size", 1, 1u << 26);
  d.context = config.u32("context_length", 1, 1u << 30);
  d.heads = d.kv_heads = config.u32("attention.head_count", 1, 4096);
  d.head_dim = d.hidden / d.heads;
  if (d.hidden % d.heads != 0 || d.head_dim % 8 != 0 || d.head_dim > kMaxHeadDim)
    fail(Code::kInput, "{} elements do not make {} attention heads", d.hidden, d.heads);
  d.norm_eps = 1e-5f;
  d.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d.head_dim)));
  d.rope = read_rope(config, d.head_dim, d.context, {});
  config.finish(kHarmlessKeys);
  d.tied = true;
  d.tensors = {{"token_embd.weight", {d.hidden, d.vocab}}, {"output_norm.weight", {d.hidden}}};
  for (uint32_t l = 0; l < d.layers; ++l) {
    d.tensors.push_back({block(l, "scale"), {d.hidden}});
    for (const char* name : {"q", "k", "v", "o"}) d.tensors.push_back({block(l, name), {d.hidden, d.hidden}});
  }
  d.record_body = record_body;
  d.record_head = record_head;
  return d;
}

}  // namespace stet
