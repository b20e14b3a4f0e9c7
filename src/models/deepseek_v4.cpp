// DeepSeek V4 (inference/model.py of deepseek-ai/DeepSeek-V4-Flash): m residual streams mixed by hyper-connections;
// attention over a window of raw rows and a set of pooled entries; a mixture of experts with one that is shared.
//
//   twice a layer:  y, post, comb = gates(streams);  o = site(norm(y));  streams_k = post_k o + sum_j comb_jk streams_j
//   attention:  q = heads of Wq_b norm(Wq_a h), each normed;  row = norm(Wkv h), key and value of all heads;  the last
//               elements of both turned;  one softmax over window, entries and a sink;  the result turned back;
//               Wb (Wa, by groups of heads)
//   entries:    every `ratio` rows pooled into one. Ratio 4: entries overlap, and an indexer chooses which ones a row
//               attends to
//   experts:    the best by sqrt(softplus(Wr h)) + bias, or those of a table by token id;  SwiGLU with clamped inputs
//   logits:     Whead norm(sum_j pre_j streams_j)
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "models/deepseek_v4_parts.h"
#include "models/rope_frequencies.h"

namespace stet::deepseek_v4 {
namespace {

constexpr std::array<std::string_view, 1> kNoConsequence = {"context_length"};

// ---- layer program

// Records the layers of one list.
class Program {
 public:
  Program(const ModelDesc& desc, const ModelWeights& weights, ListBuilder& builder, Rows rows = Rows::stored)
      : d(desc),
        s(settings(desc)),
        rounded(desc.activations == ActivationMode::checkpoint),
        w(weights),
        list(builder),
        streams(list.buffer("streams", d.hidden * s.streams)),
        h(list.buffer("h", d.hidden)),
        out(list.buffer("site_out", d.hidden)),
        rows_(rows) {}

  void layer(uint32_t l) {
    layer_ = l;
    begin_site("attn");
    attention();
    end_site("attn");
    begin_site("ffn");
    experts();
    end_site("ffn");
  }

  void kept_row(uint32_t l, const Buffer* x) {
    layer_ = l;
    if (x == nullptr) begin_site("attn");
    const Buffer* kv = list.buffer("kv", d.head_dim);
    site_ = "attn";
    eight_of_ = nullptr;
    eight_bit_product("attn_kv", x == nullptr ? h : x, kv);
    keep_row(kv, w.ropes[s.ratio(l) == 0 ? 0 : 1]);
  }

 private:
  std::string name(std::string_view op) const { return named(layer_, op); }
  const PackedMatrix& matrix(std::string_view tensor) const { return w.matrix(name(tensor) + ".weight"); }
  const float* vector(std::string_view tensor) const { return w.vector(name(tensor) + ".weight"); }
  void product(std::string_view tensor, const Buffer* in, const Buffer* to) {
    list.matvec(name(tensor), matrix(tensor), in, to);
  }
  // A product whose result a checkpoint rounds to bf16.
  void narrow_product(std::string_view tensor, const Buffer* in, const Buffer* to) {
    list.matvec(name(tensor), matrix(tensor), in, to).rounded = rounded;
  }
  void norm(std::string_view tensor, const Buffer* in, const Buffer* to) {
    list.rmsnorm(name(tensor), in, vector(tensor), d.norm_eps, to).rounded = rounded;
  }
  // The input of a product that a checkpoint makes in 8 bits: runs of in->width / runs elements. Weights that are kept
  // in 8 bits or fewer round their input themselves.
  const Buffer* eight_bit(const PackedMatrix& m, const Buffer* in, uint32_t runs = 1) {
    if (!rounded || m.input == ActKind::e4m3) return in;
    if (eight_of_ != in) eight_ = deepseek_v4::eight_bit(list, name(site_ + "_" + in->name + "_8"), in, runs);
    eight_of_ = in;
    return eight_;
  }
  void eight_bit_product(std::string_view tensor, const Buffer* in, const Buffer* to) {
    narrow_product(tensor, eight_bit(matrix(tensor), in), to);
  }
  // Of several matrices one that does not round its input, if there is any.
  static const PackedMatrix& plain_one(const std::vector<PackedMatrix>& matrices) {
    const auto it = std::ranges::find_if(matrices, [](const PackedMatrix& m) { return m.input != ActKind::e4m3; });
    return it == matrices.end() ? matrices.front() : *it;
  }
  // A buffer of layers that agree on its width.
  const Buffer* sized(std::string_view what, uint32_t width) {
    return list.buffer(fmt::format("{}.{}", what, width), width);
  }

  HyperSpec hyper(const std::string& site) const {
    return {s.streams,
            s.sinkhorn,
            d.norm_eps,
            s.hyper_eps,
            w.vector(name(site + "_hc_base")),
            w.vector(name(site + "_hc_scale"))};
  }

  // From the streams to h, the site's normed input.
  void begin_site(const std::string& site) {
    site_ = site;
    eight_of_ = nullptr;
    const Buffer *mix = list.buffer("hyper_mix", s.gates()), *gates = list.buffer("hyper_gates", s.gates());
    const Buffer* in = list.buffer("site_in", d.hidden);
    product(site + "_hc_fn", streams, mix);
    Command& gating = list.row(Op::hyper_gates, name(site + "_hc_gates"), streams, gates);
    gating.in2 = mix;
    gating.spec = hyper(site);
    Command& mixing = list.row(Op::hyper_mix, name(site + "_hc_mix"), streams, in);
    mixing.in2 = gates;
    mixing.spec = hyper(site);
    mixing.rounded = rounded;
    norm(site + "_norm", in, h);
  }

  void end_site(const std::string& site) {
    Command& post = list.row(Op::hyper_post, name(site + "_hc_post"), out, streams);
    post.in2 = streams;
    post.in3 = list.buffer("hyper_gates", s.gates());
    post.spec = hyper(site);
    post.rounded = rounded;
  }

  // Entries of one kind, and the buffers that their rows pass through.
  struct Pool {
    std::string kind;
    uint32_t size = 0, width = 0;
    const Buffer *c = nullptr, *z = nullptr;
  };
  Pool pool_products(const std::string& kind, uint32_t size) {
    const uint32_t width = s.fine(layer_) ? 2 * size : size;
    const Pool p{kind, size, width, sized(kind + "_c", width), sized(kind + "_z", width)};
    product(kind + "_kv", h, p.c);
    product(kind + "_gate", h, p.z);
    return p;
  }
  void pool_entries(const Pool& p, const RopeRows& rope) {
    const Buffer* row = sized(p.kind + "_row", 2 * p.width);
    Command& store = list.row(Op::pool_row, name(p.kind + "_row"), p.c, row);
    store.in2 = p.z;
    store.spec = PoolRowSpec{w.state(name(p.kind + "_rows")), matrix(p.kind + "_position")};
    Command& entry = list.row(Op::pool_entry, name(p.kind + "_entry"), row, sized(p.kind + "_entry", p.size));
    const PoolSpec pool{w.state(name(p.kind + "_rows")), w.state(name(p.kind + "_entries")), s.fine(layer_)};
    entry.spec = EntrySpec{pool, vector(p.kind + "_norm"), d.norm_eps, rope, rounded, p.kind == "indexer"};
  }

  // Attention's heads are normed; those of an indexer are compared.
  void turn(std::string_view what, const Buffer* in, const Buffer* to, uint32_t heads, const RopeRows& rope,
            bool indexer) {
    Command& c = list.row(Op::turn_heads, name(what), in, to);
    c.spec = HeadsSpec{in->width / heads, rope, !indexer, d.norm_eps, rounded, indexer};
    c.parts = heads;
  }

  void attention() {
    const uint32_t ratio = s.ratio(layer_), q_width = d.heads * d.head_dim;
    const bool fine = s.fine(layer_);
    const RopeRows& rope = w.ropes[ratio == 0 ? 0 : 1];
    const Buffer *q_a = list.buffer("q_a", s.q_rank), *q_low = list.buffer("q_low", s.q_rank),
                 *q = list.buffer("q", q_width);
    const Buffer *turned = list.buffer("q_turned", q_width), *result = list.buffer("attention", q_width);
    const Buffer* kv = list.buffer("kv", d.head_dim);
    const Buffer* index_weight = fine ? list.buffer("index_weight", s.index_heads) : nullptr;
    const Buffer* index_q = fine ? list.buffer("index_q", s.index_heads * s.index_dim) : nullptr;
    // All products of h stand together: one stage norms it and makes them.
    eight_bit_product("attn_q_a", h, q_a);
    eight_bit_product("attn_kv", h, kv);
    Pool main, index;
    if (ratio != 0) main = pool_products("compressor", d.head_dim);
    if (fine) index = pool_products("indexer", s.index_dim);
    if (fine) narrow_product("indexer_heads", h, index_weight);
    norm("attn_q_a_norm", q_a, q_low);
    eight_bit_product("attn_q_b", q_low, q);
    if (fine) eight_bit_product("indexer_q_b", q_low, index_q);
    turn("attn_q_turn", q, turned, d.heads, rope, false);
    const Buffer* row = keep_row(kv, rope);
    if (ratio != 0) pool_entries(main, rope);
    if (fine) pool_entries(index, rope);
    const Buffer* others = rows_ == Rows::block ? row : fine ? choose(index_q, index_weight, rope) : nullptr;
    attend(turned, others, rope, result);
    grouped_output(result);
  }

  const Buffer* keep_row(const Buffer* kv, const RopeRows& rope) {
    const Buffer *normed = list.buffer("kv_normed", d.head_dim), *row = list.buffer("kv_row", d.head_dim);
    norm("attn_kv_norm", kv, normed);
    const StateRows rows = rows_ == Rows::stored ? w.state(name("rows")) : StateRows{};
    list.row(Op::cache_row, name("attn_kv_row"), normed, row).spec = CacheSpec{rows, rope, rounded};
    return row;
  }

  const Buffer* choose(const Buffer* q, const Buffer* weight, const RopeRows& rope) {
    const Buffer *turned = list.buffer("index_q_turned", q->width),
                 *chosen = list.buffer("chosen_entries", s.index_top);
    turn("indexer_q_turn", q, turned, s.index_heads, rope, true);
    Command& c = list.row(Op::choose_entries, name("indexer_choose"), turned, chosen);
    c.in2 = weight;
    const double scale = 1.0 / std::sqrt(static_cast<double>(s.index_dim) * s.index_heads);
    c.spec =
        ChooseSpec{w.state(name("indexer_entries")), s.index_heads, s.index_top, static_cast<float>(scale), rounded};
    return chosen;
  }

  // others: the entries that are chosen, or the rows of the pass.
  void attend(const Buffer* q, const Buffer* others, const RopeRows& rope, const Buffer* result) {
    UnionSpec u;
    u.rows = w.state(name("rows"));
    if (s.ratio(layer_) != 0) u.entries = w.state(name("compressor_entries"));
    u.window = s.window;
    u.top = s.fine(layer_) ? s.index_top : 0;
    u.heads = d.heads;
    u.scale = d.attention_scale;
    u.sinks = w.vector(name("attn_sinks"));
    u.rounded = rounded;
    Command& c = list.row(rows_ == Rows::block ? Op::block_attend : Op::union_attend, name("attend"), q, result);
    c.in2 = others;
    c.spec = UnionAttendSpec{u, rope};
    c.parts = d.heads;
  }

  void grouped_output(const Buffer* result) {
    const Buffer* low = list.buffer("attention_low", s.o_groups * s.o_rank);
    Command& c = list.row(Op::grouped, name("attn_output_a"), result, low);
    c.matrix = w.matrix(name("attn_output_a.weight"));
    if (rounded) c.matrix.input = ActKind::f32;  // the one product with weights in FP8 that takes bf16
    c.spec = GroupedSpec{s.o_groups};
    c.parts = c.matrix.tiles();
    c.rounded = rounded;
    eight_bit_product("attn_output_b", low, out);
  }

  void route(const Buffer* routes) {
    const Buffer* logits = list.buffer("router", s.experts);
    product("ffn_router", h, logits);
    Command& c = list.row(Op::route, name("ffn_route"), logits, routes);
    const bool hashed = layer_ < s.hash_layers;
    if (hashed) c.matrix = matrix("ffn_experts_of_token");
    c.spec = RouteSpec{s.experts, s.chosen, s.expert_scale, hashed ? nullptr : w.vector(name("ffn_router_bias"))};
  }

  void experts() {
    const Buffer *routes = list.buffer("routes", 2 * s.chosen), *inner = list.buffer("expert_inner", s.chosen * d.ffn);
    const Buffer *gate = list.buffer("gate", d.ffn), *up = list.buffer("up", d.ffn), *act = list.buffer("act", d.ffn);
    const Buffer* shared = list.buffer("shared", d.hidden);
    auto first = std::make_shared<ExpertsSpec>(), second = std::make_shared<ExpertsSpec>();
    first->chosen = second->chosen = s.chosen;
    first->limit = s.limit;
    first->rounded = second->rounded = rounded;
    for (uint32_t e = 0; e < s.experts; ++e) {
      first->gate.push_back(w.matrix(name(fmt::format("expert.{}.gate.weight", e))));
      first->up.push_back(w.matrix(name(fmt::format("expert.{}.up.weight", e))));
      second->down.push_back(w.matrix(name(fmt::format("expert.{}.down.weight", e))));
    }
    route(routes);
    eight_bit_product("ffn_shared_gate", h, gate);
    eight_bit_product("ffn_shared_up", h, up);
    Command& clamped = list.row(Op::swiglu_limit, name("ffn_shared_swiglu"), gate, act);
    clamped.in2 = up;
    clamped.spec = LimitSpec{s.limit};
    clamped.rounded = rounded;
    eight_bit_product("ffn_shared_down", act, shared);
    const PackedMatrix& any =
        plain_one(first->gate).input == ActKind::e4m3 ? plain_one(first->up) : plain_one(first->gate);
    const Buffer* h8 = eight_bit(any, h);
    Command& half = list.row(Op::expert_gate, name("ffn_expert_gate"), h8, inner);
    half.in2 = routes;
    half.parts = s.chosen * parts_of(first->gate[0].tiles());
    half.spec = std::shared_ptr<const ExpertsSpec>(first);
    Command& down =
        list.row(Op::expert_down, name("ffn_expert_down"), eight_bit(plain_one(second->down), inner, s.chosen), out);
    down.in2 = routes;
    down.in3 = shared;
    down.parts = parts_of(second->down[0].tiles());
    down.spec = std::shared_ptr<const ExpertsSpec>(second);
  }

  const ModelDesc& d;
  const Settings& s;
  const bool rounded;  // as a checkpoint has it
  const ModelWeights& w;
  ListBuilder& list;
  const Buffer *streams, *h, *out;
  const Rows rows_;
  uint32_t layer_ = 0;
  std::string site_;
  const Buffer *eight_of_ = nullptr,
               *eight_ = nullptr;  // the last input of this site that was rounded, and what it became
};

void record_streams(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  const Buffer* token = list.buffer("token", d.hidden);
  list.embed("token_embd", w.matrix("token_embd.weight"), token);
  list.row(Op::repeat, "streams", token, list.buffer("streams", d.hidden * settings(d).streams));
  Program program(d, w, list);
  for (uint32_t l = 0; l < d.layers; ++l) {
    program.layer(l);
    record_tap(d, list, l);
  }
  record_draft_rows(d, w, list);
}

void record_logits(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) { record_head(d, w, list, ""); }

}  // namespace

const Buffer* eight_bit(ListBuilder& list, std::string name, const Buffer* in, uint32_t runs) {
  const Buffer* to = list.buffer(in->name + "_8", in->width);
  Command& c = list.row(Op::round_e4m3, std::move(name), in, to);
  c.spec = RoundSpec{in->width / runs};
  c.parts = runs;
  return to;
}

void record_block(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, uint32_t block, Rows rows) {
  Program(d, w, list, rows).layer(block);
}

void record_kept_row(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, uint32_t block, const Buffer* x) {
  Program(d, w, list).kept_row(block, x);
}

void record_head(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, const std::string& prefix) {
  const Settings& s = settings(d);
  const bool rounded = d.activations == ActivationMode::checkpoint;
  const Buffer *streams = list.buffer("head_streams", d.hidden * s.streams), *mix = list.buffer("head_mix", s.streams);
  const Buffer *gates = list.buffer("head_gates", s.streams), *x = list.buffer("head_x", d.hidden),
               *h = list.buffer("head_norm", d.hidden);
  list.row(Op::repeat, "head_streams", list.pass_buffer("streams", streams->width), streams).from_head = true;
  list.matvec(prefix + "output_hc_fn", w.matrix(prefix + "output_hc_fn.weight"), streams, mix);
  const HyperSpec spec{
      s.streams, 0, d.norm_eps, s.hyper_eps, w.vector(prefix + "output_hc_base"), w.vector(prefix + "output_hc_scale")};
  Command& gating = list.row(Op::hyper_gates, prefix + "output_hc_gates", streams, gates);
  gating.in2 = mix;
  gating.spec = spec;
  Command& mixing = list.row(Op::hyper_mix, prefix + "output_hc_mix", streams, x);
  mixing.in2 = gates;
  mixing.spec = spec;
  mixing.rounded = rounded;
  list.rmsnorm(prefix + "output_norm", x, w.vector(prefix + "output_norm.weight"), d.norm_eps, h).rounded = rounded;
  list.matvec("output", w.matrix("output.weight"), h, list.buffer("logits", d.vocab));
}

namespace {

// ---- configuration

void read_heads(ConfigReader& config, ModelDesc& d, Settings& s) {
  d.heads = config.u32("attention.head_count", 1, 4096);
  d.head_dim = config.u32("attention.key_length", 2, kMaxUnionDim);
  d.norm_eps = static_cast<float>(config.number("attention.layer_norm_rms_epsilon", 0, 1));
  d.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d.head_dim)));
  s.q_rank = config.u32("attention.q_lora_rank", 1, 1u << 20);
  s.o_rank = config.u32("attention.output_lora_rank", 1, 1u << 20);
  s.o_groups = config.u32("attention.output_group_count", 1, d.heads);
  s.window = config.u32("attention.sliding_window", 1, 1u << 30);
  s.index_heads = config.u32("attention.indexer.head_count", 1, 4096);
  s.index_dim = config.u32("attention.indexer.key_length", 2, 4096);
  s.index_top = config.u32("attention.indexer.top_k", 1, 1u << 20);
  s.ratios = config.u32_list("attention.compress_ratios", d.layers, 0, kSlots);
  if (d.heads % s.o_groups != 0) fail(Code::kInput, "{} attention heads do not make {} groups", d.heads, s.o_groups);
  for (const uint32_t ratio : s.ratios)
    if (ratio != 0 && !std::has_single_bit(ratio))
      fail(Code::kUnsupported, "entries of {} rows are not supported: a power of two up to {} is needed", ratio,
           kSlots);
}

void read_rotations(ConfigReader& config, ModelDesc& d, const Settings& s) {
  const uint32_t dim = config.u32("rope.dimension_count", 2, std::min(d.head_dim, s.index_dim));
  if (dim % 2 != 0) fail(Code::kInput, "deepseek_v4.rope.dimension_count is {}, not even", dim);
  d.rope = read_rope(config, dim, d.context, {});
  d.further_ropes = {read_rope(config, dim, d.context, {}, "compress.rope.")};
}

void read_experts(ConfigReader& config, ModelDesc& d, Settings& s) {
  d.ffn = config.u32("expert_feed_forward_length", 1, 1u << 22);
  s.experts = config.u32("expert_count", 1, 65536);
  s.chosen = config.u32("expert_used_count", 1, std::min(s.experts, kMaxChosen));
  s.hash_layers = config.u32("expert_hash_layers", 0, 4096);
  s.expert_scale = static_cast<float>(config.number("expert_weights_scale", 0, 1e6));
  s.limit = static_cast<float>(config.number("swiglu_limit", 0, 1e30));
  s.streams = config.u32("hyper_connection.count", 1, kMaxStreams);
  s.sinkhorn = config.u32("hyper_connection.sinkhorn_iterations", 1, 1024);
  s.hyper_eps = static_cast<float>(config.number("hyper_connection.epsilon", 0, 1));
}

// The experts that a table names are there. (What a table lacks, check_tensors says.)
void check_table(const TensorSource& source, const std::string& name, uint32_t experts) {
  const TensorInfo* t = source.find(name);
  if (t == nullptr) return;
  if (t->format != Format::f32)
    fail(Code::kUnsupported, "tensor {} is {}; ids are read as F32", name, traits(t->format).name);
  std::vector<float> ids(t->elements());
  source.read(*t, 0, std::as_writable_bytes(std::span(ids)));
  for (const float id : ids)
    if (!(id >= 0.0f && id < static_cast<float>(experts)) || id != std::floor(id))
      fail(Code::kInput, "tensor {} names expert {}, and there are {}", name, id, experts);
}

}  // namespace
}  // namespace stet::deepseek_v4

namespace stet {

ModelDesc describe_deepseek_v4(const TensorSource& source) {
  using namespace deepseek_v4;
  ModelDesc d;
  const auto s = std::make_shared<Settings>();
  ConfigReader config(source, "deepseek_v4");
  d.layers = config.u32("block_count", 1, 4096);
  d.hidden = config.u32("embedding_length", 1, 1u << 20);
  d.context = config.u32("context_length", 1, 1u << 30);
  d.vocab = config.u32("vocab_size", 1, 1u << 24);
  read_heads(config, d, *s);
  read_rotations(config, d, *s);
  read_experts(config, d, *s);
  read_draft_keys(config, s->draft);
  const std::string activations = config.text_or("activations", "");
  if (!activations.empty() && activations != "checkpoint")
    fail(Code::kUnsupported, "deepseek_v4.activations is '{}'; stet knows checkpoint", activations);
  config.finish(kNoConsequence);
  for (uint32_t l = 0; l < std::min(d.layers, s->hash_layers); ++l)
    check_table(source, named(l, "ffn_experts_of_token.weight"), s->experts);
  d.settings = s;
  d.has_checkpoint_mode = true;
  d.declares_checkpoint_mode = !activations.empty();
  d.states = all_states(d);
  d.tensors = all_tensors(d);
  d.record_body = record_streams;
  d.record_head = record_logits;
  add_draft(source, d, *s);
  return d;
}

}  // namespace stet
