// A smaller model with the same vocabulary: it continues the session by itself, with the sampling parameters and the
// noise of the target, so that it also agrees with a sampled answer as often as it can.
#include <algorithm>

#include "base/error.h"
#include "device/memory.h"
#include "spec/sampling_draft.h"

namespace stet {
namespace {

class ModelDraft : public SamplingDraft {
 public:
  ModelDraft(const DraftContext& c, std::unique_ptr<TensorSource> source)
      : SamplingDraft(c),
        source_(std::move(source)),
        desc_(describe(c, *source_)),
        pack_(PackedModel::load(*source_, pack_options_for(desc_, c.pack))),
        decoder_(desc_, *pack_, c.kernels, c.pool, {.context = c.context, .kv = c.kv, .cuda = c.cuda}, c.arm) {}

  static ModelDesc describe(const DraftContext& c, const TensorSource& source) {
    ModelDesc desc = describe_model(source);
    choose_activations(desc, c.target.activations == ActivationMode::f32 ? "f32" : "auto");
    return desc;
  }

  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    std::vector<int32_t> timeline(view.tokens.begin(), view.tokens.end());
    uint32_t cached = 0;
    const uint32_t limit =
        std::min<uint32_t>(static_cast<uint32_t>(seen_.size()), static_cast<uint32_t>(timeline.size()) - 1);
    while (cached < limit && seen_[cached] == timeline[cached]) ++cached;
    cached = decoder_.restorable(cached);
    for (uint32_t i = 0; i < depth; ++i) {
      seen_.resize(cached);  // a pass that fails leaves the rows behind these undefined
      const float* logits = decoder_.forward(std::span(timeline).subspan(cached), cached, 1);
      cached = static_cast<uint32_t>(timeline.size());
      seen_ = timeline;
      if (!sample(logits, view.prompt_tokens, timeline, proposals)) return;
    }
  }

  DeviceDraft on_device() override {
    if (decoder_.cuda() == nullptr) return {};
    return {.kind = DeviceDraft::Kind::model, .decoder = &decoder_, .seen = &seen_};
  }

 private:
  std::unique_ptr<TensorSource> source_;
  ModelDesc desc_;
  std::unique_ptr<PackedModel> pack_;
  Decoder decoder_;
  std::vector<int32_t> seen_;  // tokens with KV rows in decoder_
};

// The draft's KV cache grows beside the target's: both have to fit, when full, into what may be used.
void check_memory(const DraftContext& c, const ModelDesc& draft) {
  const uint64_t own = kv_bytes(draft, c.kv, c.context), target = kv_bytes(c.target, c.kv, c.context);
  const MemoryBudget budget = memory_budget();
  const uint64_t usable = budget.available_bytes / 10 * 8;
  if (own + target <= usable) return;
  const auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  fail(Code::kResource,
       "a context of {} tokens needs {:.1f} MiB of KV cache for the target and {:.1f} MiB for the draft; {:.1f} MiB "
       "may be used (80 % of "
       "what is left: {}): choose a smaller --ctx or no draft",
       c.context, mib(target), mib(own), mib(usable), budget.explain());
}

}  // namespace

std::unique_ptr<Draft> make_draft_model(const DraftContext& c) {
  if (c.argument.empty()) fail(Code::kUsage, "the draft 'model' needs a file: --draft model:FILE");
  std::unique_ptr<TensorSource> source = c.open(c.argument);
  const ModelDesc desc = describe_model(*source);
  if (desc.vocab != c.target.vocab || c.vocab_hash(*source) != c.target_vocab_hash)
    fail(Code::kUsage,
         "the draft {} has another vocabulary ({} tokens) than the target ({}): its token ids mean other text; use a "
         "draft made for "
         "this model's tokenizer",
         c.argument, desc.vocab, c.target.vocab);
  check_memory(c, desc);
  return std::make_unique<ModelDraft>(c, std::move(source));
}

}  // namespace stet
