#include "lab/prove_run.h"

#include <algorithm>

#include "base/hash.h"
#include "engine/model_names.h"
#include "models/draft_desc.h"

namespace stet {
namespace {

// Proposes the known answer with every `period`-th token wrong; period 1 lies always.
class ScriptedDraft : public Draft {
 public:
  ScriptedDraft(const std::vector<int32_t>& answer, uint32_t period, uint32_t vocab) : answer_(answer), period_(period), vocab_(vocab) {}
  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    const size_t at = view.tokens.size() - view.prompt_tokens;
    for (size_t i = at; i < at + depth && i < answer_.size(); ++i) {
      const bool lie = (i + 1) % period_ == 0;
      proposals.push_back(lie ? static_cast<int32_t>((static_cast<uint32_t>(answer_[i]) + 1) % vocab_) : answer_[i]);
    }
  }

 private:
  const std::vector<int32_t>& answer_;
  uint32_t period_, vocab_;
};

// A second copy of the target's weights may use a quarter of what memory leaves.
bool fits_twice(const Engine::Parts& engine) { return engine.pack->bytes() < memory_budget().available_bytes / 4; }

}  // namespace

std::string ProveTimeline::digest(size_t first) const {
  Sha256 hash;
  first = std::min(first, tokens.size());
  hash.update(tokens.data(), first * sizeof(int32_t));
  hash.update(logits.data(), first * sizeof(uint64_t));
  return hash.hex().substr(0, 16);
}

ProveRunner::ProveRunner(Engine::Parts& engine, const ProveOptions& options) : engine_(engine), options_(options) {
  drafts_ = {"none", "ngram", "liar", "mixed"};
  // The target drafts for itself, where its vocabulary can be told to be its own.
  if (!options.draft_model.empty() || (engine.tokenizer != nullptr && fits_twice(engine))) drafts_.push_back("model");
  if (engine.desc.draft != nullptr) drafts_.push_back(engine.desc.draft->kind);
}

uint32_t ProveRunner::context() const { return static_cast<uint32_t>(options_.prompt.size()) + options_.tokens + 2 * kNarrowRows; }

DecoderOptions ProveRunner::decoder_options(const ProveSetting& s) const {
  DecoderOptions options = {context(), kv_format(engine_.options.kv)};
  if (s.cuda) options.cuda = &*engine_.cuda;
  return options;
}

ProveRunner::Machine& ProveRunner::machine(const ProveSetting& s) {
  const bool wrong = options_.wrong_kernels != nullptr && options_.wrong_kernels->isa == s.isa && s.threads != engine_.pool->threads();
  Machine& m = machines_[{s.isa, s.threads, wrong, s.cuda}];
  if (!m.decoder) {
    WorkerPool::Options pool_options;
    pool_options.threads = s.threads;
    m.pool = std::make_unique<WorkerPool>(pool_options);
    m.decoder = std::make_unique<Decoder>(engine_.desc, *engine_.pack, wrong ? *options_.wrong_kernels : kernels(s.isa), *m.pool,
                                          decoder_options(s), ArmOptions{.qualify = Qualify::skip, .cache_dir = "", .progress = nullptr});
  }
  m.decoder->set_mode(s.mode);
  m.decoder->set_prompt_rows(s.prompt_rows);
  return m;
}

SamplingParams ProveRunner::sampling(bool sampled) const {
  SamplingParams p;
  if (!sampled) return p;
  p.temperature = 0.8f;
  p.top_k = 50;
  p.top_p = 0.95f;
  p.min_p = 0.02f;
  p.repetition_penalty = 1.1f;
  p.presence_penalty = 0.1f;
  p.frequency_penalty = 0.1f;
  p.seed = 20260101;
  return p;
}

Draft* ProveRunner::draft(const ProveSetting& s, Machine& m, std::unique_ptr<Draft>& own) {
  if (s.draft == "none") return nullptr;
  if (s.draft == "liar" || s.draft == "mixed") {
    own = std::make_unique<ScriptedDraft>(answer_[s.sampled], s.draft == "liar" ? 1 : 3, engine_.desc.vocab);
    return own.get();
  }
  const std::string file = options_.draft_model.empty() ? engine_.options.model : options_.draft_model;
  std::unique_ptr<Draft>& slot = s.draft == "model" ? m.model : is_own_draft(s.draft) ? m.own : own;
  if (!slot) {
    DraftContext context = engine_.draft_context(s.draft == "model" ? file : "");
    context.context = this->context();
    context.decoder = m.decoder.get();
    slot = draft_kind(s.draft).make(context);
  }
  return slot.get();
}

// Leaves other requests' rows, or rejected rows at every position to come, in the cache.
void ProveRunner::make_history(const ProveSetting& s, Session& session) {
  if (s.history == "fresh") return;
  std::vector<int32_t> other(options_.prompt.rbegin(), options_.prompt.rend());
  Sampler sampler(*engine_.kernels, {}, engine_.desc.vocab);
  session.begin(other, false);
  if (s.history == "requests") {
    for (int i = 0; i < 4; ++i) step(session, sampler, {});
    return;
  }
  const std::vector<int32_t> wrong(kMaxDepth, other[0]);
  ScriptedDraft liar(wrong, 1, engine_.desc.vocab);
  Txn txn(session);
  txn.propose(&liar, kMaxDepth);
  txn.verify(sampler, nullptr);
}

ProveTimeline ProveRunner::run(const ProveSetting& s, uint32_t tokens) {
  Machine& m = machine(s);
  Session session(*m.decoder);
  make_history(s, session);
  if (s.warm) {
    Sampler sampler(*engine_.kernels, {}, engine_.desc.vocab);
    session.begin(options_.prompt, false);
    step(session, sampler, {});
  }
  session.begin(options_.prompt, s.warm);
  Sampler sampler(*engine_.kernels, sampling(s.sampled), engine_.desc.vocab);
  std::unique_ptr<Draft> own;
  Draft* draft = this->draft(s, m, own);
  if (draft != nullptr) draft->begin(sampling(s.sampled));
  ProveTimeline out;
  while (out.tokens.size() < tokens) {
    const uint32_t left = tokens - static_cast<uint32_t>(out.tokens.size());
    const StepResult r = step(session, sampler, {.draft = draft, .depth = draft ? s.depth : 0, .is_stop = nullptr, .max_tokens = left, .hook = nullptr});
    for (size_t i = 0; i < r.tokens.size(); ++i) {
      out.tokens.push_back(r.tokens[i]);
      out.logits.push_back(xxh3(r.logits + i * engine_.desc.vocab, size_t{engine_.desc.vocab} * sizeof(float)));
    }
  }
  return out;
}

std::vector<uint64_t> ProveRunner::teacher_forced(const ProveSetting& s, std::span<const int32_t> timeline) {
  std::vector<uint64_t> hashes;
  machine(s).decoder->forward_all(timeline, 0, [&](uint32_t, const float* logits) {
    hashes.push_back(xxh3(logits, size_t{engine_.desc.vocab} * sizeof(float)));
  });
  return hashes;
}

// Hashes of what each command leaves for one position, in list order. Eager runs are watched eagerly, all others stage by stage.
std::vector<std::pair<std::string, uint64_t>> ProveRunner::trace(const ProveSetting& s, std::span<const int32_t> timeline,
                                                                 uint32_t position) {
  Decoder& decoder = *machine(s).decoder;
  decoder.set_mode(s.mode == ReplayMode::eager ? ReplayMode::eager : ReplayMode::recorded);
  std::vector<std::pair<std::string, uint64_t>> out;
  decoder.set_observer([&](const Stage& stage, const StepParams& params, uint32_t rows) {
    for (const Command* c : stage.materialised) {
      const uint32_t first = params.position + (c->out->name == "logits" || c->from_head ? params.head_first : 0);
      if (position < first || position >= first + rows) continue;
      out.emplace_back(c->name, xxh3(c->out->row(position - first), size_t{c->out->width} * sizeof(float)));
    }
  });
  decoder.forward_all(timeline.first(position + 1), 0, [](uint32_t, const float*) {});
  decoder.set_observer(nullptr);
  return out;
}

std::string ProveRunner::first_difference(const ProveSetting& a, const ProveSetting& b, std::span<const int32_t> timeline,
                                          uint32_t position) {
  for (uint32_t p = 0; p <= position; ++p) {
    std::map<std::string, uint64_t> seen;
    for (const auto& [name, hash] : trace(a, timeline, p)) seen[name] = hash;
    for (const auto& [name, hash] : trace(b, timeline, p))
      if (const auto it = seen.find(name); it != seen.end() && it->second != hash)
        return fmt::format("command {} at position {}", name, p);
  }
  return "";
}

}  // namespace stet
