// The drafts that checkpoints of DeepSeek V4 bring along, under mtp.* (the reference's MTPBlock and DSparkBlock).
//
//   MTP: one block. Row i joins the target's streams of position i and the token behind it:
//          streams_k = We norm(embedding) + Wh norm(h_k);  block, with a window of its own rows;  own gates and norm
//        It goes on by itself: its streams take the place of the target's.
//   DSpark: stages of one block each, and a block of B rows: the target's next token, then noise.
//          tap = [mean of the streams after each of some layers];  x = norm(W tap);  stage: row = norm(Wkv x), stored
//          every row sees the window of stored rows and the whole block;  logits of the last stage, U
//          one after the other:  e = W1[token before];  logits = U + W2 e;  confidence = Wc [x, e]
#include <algorithm>

#include "base/error.h"
#include "models/deepseek_v4_parts.h"
#include "models/draft_desc.h"

namespace stet::deepseek_v4 {
namespace {

constexpr uint32_t kFirst = kDraftBlock;
constexpr const char* kStreams = "mtp.streams";  // MTP: a row of the target's, as they leave its last layer

std::string last_stage(const Settings& s) { return named(kFirst + s.draft.stages - 1, ""); }

// ---- tensors

void add_head_tensors(const ModelDesc& d, const std::string& prefix, std::vector<TensorSpec>& t) {
  t.push_back({prefix + "output_norm.weight", {d.hidden}});
  add_hyper_tensors(d, prefix + "output_hc", settings(d).streams, 1, t);
}

void add_mtp_tensors(const ModelDesc& d, std::vector<TensorSpec>& t) {
  add_block_tensors(d, kFirst, t);
  for (const char* side : {"e", "h"}) {
    t.push_back({named(kFirst, fmt::format("{}_proj.weight", side)), {d.hidden, d.hidden}});
    t.push_back({named(kFirst, fmt::format("{}_norm.weight", side)), {d.hidden}});
  }
  add_head_tensors(d, named(kFirst, ""), t);
}

void add_dspark_tensors(const ModelDesc& d, std::vector<TensorSpec>& t) {
  const DraftSettings& draft = settings(d).draft;
  for (uint32_t i = 0; i < draft.stages; ++i) add_block_tensors(d, kFirst + i, t);
  t.push_back({named(kFirst, "main_proj.weight"), {draft.tap_layers.size() * uint64_t{d.hidden}, d.hidden}});
  t.push_back({named(kFirst, "main_norm.weight"), {d.hidden}});
  const std::string last = last_stage(settings(d));
  add_head_tensors(d, last, t);
  t.push_back({last + "markov_embd.weight", {draft.markov_rank, d.vocab}});
  t.push_back({last + "markov_output.weight", {draft.markov_rank, d.vocab}});
  t.push_back({last + "confidence.weight", {d.hidden + uint64_t{draft.markov_rank}, 1}});
}

// ---- programs

// What the product named so takes: in mode `checkpoint` in 8 bits, unless its weights round their input themselves.
const Buffer* eight_bit_input(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, const std::string& product,
                              const Buffer* in) {
  const bool itself = w.matrix(product + ".weight").input == ActKind::e4m3;
  return d.activations != ActivationMode::checkpoint || itself ? in : eight_bit(list, product + "_8", in);
}

// The streams of a row: what MTP makes of a position's and of the token behind it.
void record_joined(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, bool own) {
  const uint32_t m = settings(d).streams;
  const bool rounded = d.activations == ActivationMode::checkpoint;
  const auto name = [](std::string_view op) { return named(kFirst, op); };
  const Buffer *token = list.buffer("token", d.hidden), *token_normed = list.buffer("token_normed", d.hidden),
               *e = list.buffer("joined_e", d.hidden);
  list.embed(name("token_embd"), w.matrix("token_embd.weight"), token);
  list.rmsnorm(name("e_norm"), token, w.vector(name("e_norm.weight")), d.norm_eps, token_normed).rounded = rounded;
  const Buffer* token8 = eight_bit_input(d, w, list, name("e_proj"), token_normed);
  list.matvec(name("e_proj"), w.matrix(name("e_proj.weight")), token8, e).rounded = rounded;
  const Buffer *streams = list.buffer("streams", d.hidden * m), *before = list.buffer("streams_before", d.hidden * m);
  if (own) {
    list.row(Op::repeat, name("streams_before"), streams, before);
  } else {
    list.row(Op::load_row, name("streams_before"), nullptr, before).spec = KeepSpec{w.state(kStreams)};
  }
  const Buffer *one = list.buffer("stream", d.hidden), *normed = list.buffer("stream_normed", d.hidden);
  const Buffer* joined = nullptr;
  for (uint32_t k = 0; k < m; ++k) {
    const Buffer* x = list.buffer(fmt::format("joined.{}", k), d.hidden);
    list.row(Op::slice, name(fmt::format("stream.{}", k)), before, one).spec = SliceSpec{k * d.hidden};
    list.row(Op::repeat, name(fmt::format("joined_e.{}", k)), e, x);
    list.rmsnorm(name(fmt::format("h_norm.{}", k)), one, w.vector(name("h_norm.weight")), d.norm_eps, normed).rounded =
        rounded;
    const Buffer* normed8 = eight_bit_input(d, w, list, name("h_proj"), normed);
    list.matvec(name(fmt::format("h_proj.{}", k)), w.matrix(name("h_proj.weight")), normed8, x, true).rounded = rounded;
    if (joined != nullptr) {
      const Buffer* all = k + 1 == m ? streams : list.buffer(fmt::format("joined_to.{}", k), d.hidden * (k + 1));
      list.row(Op::join, name(fmt::format("joined_to.{}", k)), joined, all).in2 = x;
      x = all;
    }
    joined = x;
  }
  if (m == 1) list.row(Op::repeat, name("joined"), joined, streams);
}

void record_mtp(const ModelDesc& d, const ModelWeights& w, DraftPass pass, ListBuilder& list) {
  if (pass == DraftPass::head) return record_head(d, w, list, named(kFirst, ""));
  record_joined(d, w, list, pass == DraftPass::next);
  if (pass == DraftPass::rows) return record_kept_row(d, w, list, kFirst, nullptr);
  record_block(d, w, list, kFirst, Rows::stored);
}

void record_choice(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  const uint32_t rank = settings(d).draft.markov_rank;
  const std::string last = last_stage(settings(d));
  const Buffer *e = list.buffer("markov_e", rank), *both = list.buffer("confidence_in", d.hidden + rank);
  list.embed(last + "markov_embd", w.matrix(last + "markov_embd.weight"), e);
  Command& joined = list.row(Op::join, last + "confidence_in", list.buffer("head_x", d.hidden), both);
  joined.in2 = e;
  joined.from_head = true;
  list.matvec(last + "confidence", w.matrix(last + "confidence.weight"), both, list.buffer(kDraftConfidence, 1));
  const Buffer* logits = list.buffer(kDraftLogits, d.vocab);
  list.row(Op::repeat, last + "logits", list.buffer("logits", d.vocab), logits).from_head = true;
  list.matvec(last + "markov_output", w.matrix(last + "markov_output.weight"), e, logits, true);
}

void record_dspark(const ModelDesc& d, const ModelWeights& w, DraftPass pass, ListBuilder& list) {
  const Settings& s = settings(d);
  if (pass == DraftPass::head) return record_head(d, w, list, last_stage(s));
  if (pass == DraftPass::choose) return record_choice(d, w, list);
  const Buffer* token = list.buffer("token", d.hidden);
  list.embed(named(kFirst, "token_embd"), w.matrix("token_embd.weight"), token);
  list.row(Op::repeat, named(kFirst, "streams"), token, list.buffer("streams", d.hidden * s.streams));
  for (uint32_t i = 0; i < s.draft.stages; ++i) record_block(d, w, list, kFirst + i, Rows::block);
}

const Buffer* tap_buffer(const ModelDesc& d, ListBuilder& list, size_t taps) {
  return list.buffer(fmt::format("tap.{}", taps), d.hidden * static_cast<uint32_t>(taps));
}

// ---- description

bool has(const TensorSource& source, std::string_view tensor) { return source.find(named(kFirst, tensor)) != nullptr; }

void check_dspark(const ModelDesc& d, const DraftSettings& draft) {
  const auto lacks = [](bool it, std::string_view key) {
    if (it) fail(Code::kInput, "config.json lacks {}, which the blocks mtp.* of a DSpark draft need", key);
  };
  lacks(draft.tap_layers.empty(), "dspark_target_layer_ids");
  lacks(draft.markov_rank == 0, "dspark_markov_rank");
  lacks(draft.noise == kNoToken, "dspark_noise_token_id");
  if (draft.noise >= d.vocab)
    fail(Code::kInput, "dspark_noise_token_id is {}, and the vocabulary has {} tokens", draft.noise, d.vocab);
  for (size_t i = 0; i < draft.tap_layers.size(); ++i) {
    if (draft.tap_layers[i] >= d.layers)
      fail(Code::kInput, "dspark_target_layer_ids names layer {}, and there are {}", draft.tap_layers[i], d.layers);
    if (i > 0 && draft.tap_layers[i] <= draft.tap_layers[i - 1])
      fail(Code::kUnsupported, "dspark_target_layer_ids is not ascending: {} stands behind {}", draft.tap_layers[i],
           draft.tap_layers[i - 1]);
  }
}

}  // namespace

void read_draft_keys(ConfigReader& config, DraftSettings& draft) {
  constexpr uint32_t kDefaultBlock = 5, kMost = 1u << 20;
  draft.block_size = config.u32_or("dspark.block_size", 1, kMost, kDefaultBlock);
  draft.markov_rank = config.u32_or("dspark.markov_rank", 1, kMost, 0);
  draft.noise = config.u32_or("dspark.noise_token_id", 0, 1u << 30, kNoToken);
  if (config.has("dspark.target_layers")) draft.tap_layers = config.u32_list("dspark.target_layers", 0, 4095);
}

void add_draft(const TensorSource& source, ModelDesc& d, Settings& s) {
  DraftDesc draft;
  draft.window = s.window;
  if (has(source, "e_proj.weight")) {
    s.draft.stages = 1;
    draft.kind = "mtp";
    draft.depth = 1;
    draft.states = {{named(kFirst, "rows"), d.head_dim, 1}};
    draft.record = record_mtp;
    // Rows of the window before the position that the target runs next.
    d.states.push_back({kStreams, d.hidden * s.streams, 1, s.window + 1});
    add_mtp_tensors(d, d.tensors);
  } else if (has(source, "main_proj.weight")) {
    check_dspark(d, s.draft);
    while (source.find(named(kFirst + s.draft.stages, "attn_norm.weight")) != nullptr) ++s.draft.stages;
    if (s.draft.stages == 0) fail(Code::kInput, "the DSpark draft lacks the tensors of its first stage, mtp.0");
    draft.kind = "dspark";
    draft.depth = s.draft.block_size;
    draft.noise = static_cast<int32_t>(s.draft.noise);
    draft.record = record_dspark;
    // A block sees the window before it, which ends a row earlier than that of a stored row.
    for (uint32_t i = 0; i < s.draft.stages; ++i)
      d.states.push_back({named(kFirst + i, "rows"), d.head_dim, 1, s.window + 1});
    add_dspark_tensors(d, d.tensors);
  } else {
    return;
  }
  d.draft = std::make_shared<const DraftDesc>(std::move(draft));
}

void record_tap(const ModelDesc& d, ListBuilder& list, uint32_t layer) {
  if (d.draft == nullptr || d.draft->kind != "dspark") return;
  const std::vector<uint32_t>& taps = settings(d).draft.tap_layers;
  const auto it = std::ranges::find(taps, layer);
  if (it == taps.end()) return;
  const size_t before = static_cast<size_t>(it - taps.begin());
  const Buffer* streams = list.buffer("streams", d.hidden * settings(d).streams);
  const Buffer* mean = before == 0 ? tap_buffer(d, list, 1) : list.buffer("tap_mean", d.hidden);
  list.row(Op::mean_streams, named(layer, "tap_mean"), streams, mean).rounded =
      d.activations == ActivationMode::checkpoint;
  if (before == 0) return;
  list.row(Op::join, named(layer, "tap"), tap_buffer(d, list, before), tap_buffer(d, list, before + 1)).in2 = mean;
}

void record_draft_rows(const ModelDesc& d, const ModelWeights& w, ListBuilder& list) {
  if (d.draft == nullptr) return;
  const Settings& s = settings(d);
  if (d.draft->kind == "mtp") {
    const uint32_t width = d.hidden * s.streams;
    list.row(Op::keep_row, kStreams, list.buffer("streams", width), list.buffer("kept_streams", width)).spec =
        KeepSpec{w.state(kStreams)};
    return;
  }
  const Buffer *projected = list.buffer("main", d.hidden), *x = list.buffer("main_normed", d.hidden);
  const bool rounded = d.activations == ActivationMode::checkpoint;
  const Buffer* tap8 =
      eight_bit_input(d, w, list, named(kFirst, "main_proj"), tap_buffer(d, list, s.draft.tap_layers.size()));
  list.matvec(named(kFirst, "main_proj"), w.matrix(named(kFirst, "main_proj.weight")), tap8, projected).rounded =
      rounded;
  list.rmsnorm(named(kFirst, "main_norm"), projected, w.vector(named(kFirst, "main_norm.weight")), d.norm_eps, x)
      .rounded = rounded;
  for (uint32_t i = 0; i < s.draft.stages; ++i) record_kept_row(d, w, list, kFirst + i, x);
}

}  // namespace stet::deepseek_v4
