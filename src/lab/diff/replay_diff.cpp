#include "lab/diff/replay_diff.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/fp.h"
#include "lab/diff/cache_compare.h"
#include "lab/diff/pass_record.h"

namespace stet {
namespace {

struct Pass {
  const char* kind;
  uint32_t position;
  std::vector<int32_t> tokens;
  uint32_t logit_rows;
};

CudaDeviceInfo first_device() {
  CudaDevices all = cuda_devices();
  if (all.devices.empty())
    fail(Code::kUnsupported, "there is no GPU for the side cuda: {}; without one compare cpu:scalar,cpu", all.why_none);
  return all.devices.front();
}

// A side and what it runs on.
class Runner {
 public:
  Runner(Engine::Parts& engine, const DiffSide& side, unsigned threads, uint32_t context) {
    WorkerPool::Options pool_options;
    pool_options.threads = threads;
    pool_ = std::make_unique<WorkerPool>(pool_options);
    if (side.cuda) device_ = first_device();
    const Kernels& table = side.wrong_kernels != nullptr ? *side.wrong_kernels : kernels(side.isa);
    const DecoderOptions options = {
        .context = context, .kv = kv_format(engine.options.kv), .cuda = device_ ? &*device_ : nullptr};
    decoder_ = std::make_unique<Decoder>(
        engine.desc, *engine.pack, table, *pool_, options,
        ArmOptions{.qualify = Qualify::skip, .cache_dir = "", .progress = engine.options.progress});
  }

  // The logits of the last rows of the pass, until the next run. The observer is not called where lists run whole.
  const float* run(const Pass& pass, ReplayMode form, StageObserver observer) {
    decoder_->set_mode(form);
    decoder_->set_observer(form == ReplayMode::replayed ? nullptr : std::move(observer));
    const float* logits = decoder_->forward(pass.tokens, pass.position, pass.logit_rows);
    decoder_->set_observer(nullptr);
    return logits;
  }
  Decoder& decoder() const { return *decoder_; }

 private:
  std::unique_ptr<WorkerPool> pool_;
  std::optional<CudaDeviceInfo> device_;
  std::unique_ptr<Decoder> decoder_;
};

uint32_t context_for(const DiffOptions& o) { return static_cast<uint32_t>(o.prompt.size()) + o.tokens; }

class Diff {
 public:
  Diff(Engine::Parts& engine, const DiffOptions& options)
      : engine_(engine),
        options_(options),
        first_(engine, options.sides[0], options.threads, context_for(options)),
        second_(engine, options.sides[1], options.threads, context_for(options)) {
    for (size_t done = 0; done < options.prompt.size();) {
      const size_t n = std::min<size_t>(kWideRows, options.prompt.size() - done);
      const auto from = options.prompt.begin() + static_cast<ptrdiff_t>(done);
      done += n;
      passes_.push_back({"prompt pass",
                         static_cast<uint32_t>(done - n),
                         {from, from + static_cast<ptrdiff_t>(n)},
                         done == options.prompt.size() ? 1u : 0u});
    }
  }

  DiffReport run() {
    for (const ReplayMode form : options_.forms) {
      form_ = form;
      for (size_t i = 0; i < passes_.size(); ++i) {
        if (options_.progress) options_.progress(form_name(form), static_cast<uint32_t>(i), total_passes());
        run_pass(passes_[i]);
        if (report_.difference) return std::move(report_);
        if (form == options_.forms[0]) extend(i);
      }
    }
    return std::move(report_);
  }

 private:
  uint32_t total_passes() const {
    return std::max(static_cast<uint32_t>(passes_.size()), prompt_passes() + options_.tokens - 1);
  }
  uint32_t prompt_passes() const { return static_cast<uint32_t>((options_.prompt.size() + kWideRows - 1) / kWideRows); }

  // Behind the last pass so far, in the first form: the token that it gave, or the verify passes once the answer is
  // there.
  void extend(size_t done) {
    if (done + 1 != passes_.size() || passes_[done].logit_rows != 1 || report_.answer.size() >= options_.tokens) return;
    report_.answer.push_back(token_);
    const uint32_t position =
        context_for(options_) - options_.tokens + static_cast<uint32_t>(report_.answer.size()) - 1;
    if (report_.answer.size() < options_.tokens) return passes_.push_back({"decode pass", position, {token_}, 1});
    const uint32_t first = static_cast<uint32_t>(options_.prompt.size()), last = options_.tokens - 1;
    // As far back as the rows are there.
    uint32_t begin = 0;
    while (first_.decoder().restorable(first + begin) != first + begin) ++begin;
    for (uint32_t i = begin; options_.rows > 1 && i < last; i += options_.rows) {
      const uint32_t n = std::min(options_.rows, last - i);
      passes_.push_back({"verify pass", first + i, {report_.answer.begin() + i, report_.answer.begin() + i + n}, n});
    }
  }

  void run_pass(const Pass& pass) {
    PassRecord record;
    const float* want =
        first_.run(pass, form_, [&](const Stage& s, const StepParams& p, uint32_t rows) { record.add(s, p, rows); });
    PassComparison comparison(record);
    const float* got = second_.run(
        pass, form_, [&](const Stage& s, const StepParams& p, uint32_t rows) { comparison.add(s, p, rows); });
    report_.passes += 1;
    report_.commands += comparison.commands();
    report_.values += comparison.values();
    std::optional<Difference> seen;
    if (comparison.mismatch()) seen = explain(pass, *comparison.mismatch());
    if (form_ == ReplayMode::replayed && pass.logit_rows > 0) seen = compare_logits(pass, want, got);
    if (const auto cache = compare_rows(pass); cache && (!seen || comes_first(*cache, *seen, record)))
      seen = explain(*cache, record);
    if (seen) {
      seen->form = form_;
      seen->pass = pass.kind;
      report_.difference = seen;
    } else if (pass.logit_rows == 1) {
      choose(want, pass);
    }
  }

  void choose(const float* logits, const Pass& pass) {
    const Argmax best = engine_.kernels->sample.argmax(logits, engine_.desc.vocab);
    if (best.first_bad < engine_.desc.vocab)
      fail(Code::kInput,
           "the model produced NaN or infinity at position {}, on both sides alike: no token can be chosen there",
           pass.position + pass.tokens.size() - 1);
    token_ = static_cast<int32_t>(best.id);
  }

  std::optional<CacheMismatch> compare_rows(const Pass& pass) {
    const uint32_t count = static_cast<uint32_t>(pass.tokens.size());
    first_.decoder().fetch_kv(pass.position + count);
    second_.decoder().fetch_kv(pass.position + count);
    return compare_cache({&first_.decoder(), &second_.decoder()}, pass.position, count, &report_.cache_values);
  }

  // Whether the command that stored this row stands before the one whose output differs. Logits of whole lists come
  // last.
  static bool comes_first(const CacheMismatch& cache, const Difference& other, const PassRecord& record) {
    const std::string store = record.store_of(cache.layer);
    return store.empty() || record.order(store) < record.order(other.command);
  }

  std::optional<Difference> compare_logits(const Pass& pass, const float* want, const float* got) {
    const uint32_t vocab = engine_.desc.vocab;
    report_.commands += 1;
    report_.values += uint64_t{pass.logit_rows} * vocab;
    for (uint32_t r = 0; r < pass.logit_rows; ++r)
      if (auto d = first_element(want + size_t{r} * vocab, got + size_t{r} * vocab, vocab)) {
        d->command = "output";
        d->tensor = "logits";
        d->row = static_cast<uint32_t>(pass.tokens.size()) - pass.logit_rows + r;
        d->position = pass.position + d->row;
        return d;
      }
    return std::nullopt;
  }

  static std::optional<Difference> first_element(const float* a, const float* b, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      if (bits_one_nan(a[i]) == bits_one_nan(b[i])) continue;
      Difference d;
      d.index = i;
      d.bits = {bits_of_float(a[i]), bits_of_float(b[i])};
      d.values = {a[i], b[i]};
      return d;
    }
    return std::nullopt;
  }

  // The first side runs the pass again, because only hashes of it were kept.
  Difference explain(const Pass& pass, const RowMismatch& m) {
    std::vector<float> row;
    first_.run(pass, form_, [&](const Stage& stage, const StepParams& params, uint32_t) {
      for (const Command* c : stage.materialised) {
        if (c->name != m.command) continue;
        const bool of_head = c->from_head || c->out->name == "logits";
        const float* x = c->out->row(m.row - (of_head ? params.head_first : 0));
        row.assign(x, x + c->out->width);
      }
    });
    std::optional<Difference> d;
    if (row.size() == m.second.size())
      d = first_element(row.data(), m.second.data(), static_cast<uint32_t>(row.size()));
    if (!d) {
      d.emplace();
      d->note = "run again, the first side gave the bits of the second: it does not repeat itself";
    }
    d->command = m.command;
    d->tensor = m.tensor;
    d->row = m.row;
    d->position = m.position;
    return *d;
  }

  static Difference explain(const CacheMismatch& m, const PassRecord& record) {
    Difference d;
    d.command = record.store_of(m.layer);
    d.tensor = m.tensor;
    d.head = m.head;
    d.layer = m.layer;
    d.position = m.position;
    d.index = m.index;
    d.bits = m.bits;
    d.values = m.values;
    return d;
  }

  Engine::Parts& engine_;
  const DiffOptions& options_;
  Runner first_, second_;
  std::vector<Pass> passes_;
  ReplayMode form_ = ReplayMode::eager;
  int32_t token_ = 0;
  DiffReport report_;
};

}  // namespace

DiffReport diff_replays(Engine::Parts& engine, const DiffOptions& options) {
  STET_CHECK(!options.prompt.empty() && options.tokens >= 1 && !options.forms.empty() && options.rows >= 1 &&
             options.rows <= kNarrowRows);
  return Diff(engine, options).run();
}

}  // namespace stet
