#include "stet/engine.h"

#include <chrono>
#include <ctime>

#include "base/error.h"
#include "engine/logprobs.h"
#include "engine/parts.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace stet {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Tokens to the text that a reader may see: end tokens are silent, a stop string ends it.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const std::vector<std::string>& stops) : stops_(stops) {
    if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer);
  }
  std::string push(int32_t token) { return detokenizer_ ? stops_.push(detokenizer_->push(token)) : ""; }
  bool stopped() const { return stops_.found().has_value(); }
  // What was held back for a character or a stop string that never came.
  std::string finish() {
    if (!detokenizer_ || stopped()) return "";
    std::string text = stops_.push(detokenizer_->flush());
    if (!stopped()) text += stops_.flush();
    return text;
  }

 private:
  std::optional<Detokenizer> detokenizer_;
  StopStrings stops_;
};

struct Cancelled {};

using OnCycle = std::function<bool(const CycleEvent&)>;
using OnPrefill = std::function<bool(uint32_t, uint32_t)>;

// One request on its way through the engine.
class Run {
 public:
  Run(Engine::Parts& parts, const Request& request, const OnCycle& on_cycle, const OnPrefill& on_prefill)
      : p_(parts), request_(request), on_cycle_(on_cycle), sampler_(*p_.kernels, request.sampling, p_.desc.vocab),
        text_(p_.tokenizer.get(), request.stop), start_(now()), on_device_(p_.cycles && !request.top_logprobs) {
    g_.cached_tokens = p_.session->begin(request.prompt, request.reuse_prefix);
    g_.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
    if (p_.draft) p_.draft->begin(request.sampling);
    p_.decoder->set_between_passes([this, &on_prefill](uint32_t done, uint32_t total) {
      if (on_prefill && g_.cycles.empty() && !on_prefill(done, total)) throw Cancelled{};
    });
  }
  ~Run() {
    p_.decoder->set_between_passes(nullptr);
    end_device_cycles();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Generation to_the_end() {
    running_ = p_.session->room() > 0;
    if (!running_) g_.finish = Finish::context;
    try {
      while (running_) cycle();
    } catch (const Cancelled&) {
      g_.finish = Finish::cancelled;
      g_.text += text_.finish();
    }
    g_.total_seconds = now() - start_;
    return std::move(g_);
  }

 private:
  uint32_t limit() const { return request_.max_tokens == 0 ? UINT32_MAX : request_.max_tokens; }
  bool is_stop(int32_t token) const { return !request_.ignore_eos && p_.tokenizer && p_.tokenizer->is_stop(token); }
  void end(Finish finish) {
    g_.finish = finish;
    running_ = false;
  }

  struct Timed {
    StepResult result;
    double draft_seconds;
  };

  Timed step_on_host() {
    double propose = 0.0, verify = 0.0;
    const auto clock = [&](Txn::Phase phase) {
      if (phase == Txn::Phase::propose) propose = now();
      if (phase == Txn::Phase::verify) verify = now();
    };
    StepResult r = step(*p_.session, sampler_,
                        {.draft = p_.draft.get(), .depth = p_.info.draft_depth, .is_stop = [this](int32_t t) { return is_stop(t); },
                         .max_tokens = limit() - static_cast<uint32_t>(g_.tokens.size()), .hook = clock});
    return {std::move(r), verify - propose};
  }

  // Cycles stay on the device, unless the request wants to see logits.
  Timed next_step() {
    if (!on_device_) return step_on_host();
    if (g_.cycles.empty()) p_.cycles->begin(*p_.session, {request_.sampling, limit(), !request_.ignore_eos});
    if (auto r = p_.cycles->next()) return {std::move(*r), p_.cycles->draft_seconds()};
    // Logits that are not finite: the same step once more finds the command.
    end_device_cycles();
    return step_on_host();
  }
  void end_device_cycles() {
    if (on_device_) p_.cycles->stop();
    on_device_ = false;
  }

  void cycle() {
    const auto [r, draft_seconds] = next_step();
    const size_t before = g_.tokens.size();
    std::string text;
    for (const int32_t token : r.tokens) {
      g_.tokens.push_back(token);
      const bool last = is_stop(token);
      if (!last) text += text_.push(token);
      if (last || text_.stopped()) end(Finish::stop);
      if (!running_) break;
    }
    if (running_ && g_.tokens.size() >= limit()) end(Finish::length);
    if (running_ && p_.session->room() == 0) end(Finish::context);
    if (!running_) text += text_.finish();
    g_.text += text;
    const auto emitted = std::span<const int32_t>(g_.tokens).subspan(before);
    g_.cycles.push_back({r.proposed, r.accepted, static_cast<uint32_t>(emitted.size()), now() - start_, draft_seconds});
    if (g_.cycles.size() == 1) g_.first_token_seconds = g_.cycles[0].seconds;
    report(emitted, text, r.logits);
  }

  void report(std::span<const int32_t> tokens, const std::string& text, const float* logits) {
    if (!on_cycle_) return;
    std::vector<PositionLogprobs> logprobs;
    for (size_t i = 0; request_.top_logprobs && i < tokens.size(); ++i)
      logprobs.push_back(position_logprobs({logits + i * p_.desc.vocab, p_.desc.vocab}, tokens[i], *request_.top_logprobs));
    const bool wanted = on_cycle_({g_.cycles.back(), tokens, text, logprobs});
    if (!wanted && running_) throw Cancelled{};
  }

  Engine::Parts& p_;
  const Request& request_;
  const OnCycle& on_cycle_;
  Sampler sampler_;
  TextStream text_;
  const double start_;
  Generation g_;
  bool running_ = true;
  bool on_device_;
};

}  // namespace

Engine::Engine(const Options& options) : parts_(std::make_unique<Parts>(options)) {}
Engine::~Engine() = default;

const EngineInfo& Engine::info() const { return parts_->info; }
Engine::Parts& Engine::parts() { return *parts_; }
const Engine::Parts& Engine::parts() const { return *parts_; }
uint32_t Engine::vocab() const { return parts_->desc.vocab; }
uint32_t Engine::cached_tokens() const { return parts_->session->cached_tokens(); }
bool Engine::has_vocabulary() const { return parts_->tokenizer != nullptr; }
bool Engine::has_chat_template() const { return parts_->chat != nullptr; }

std::vector<int32_t> Engine::tokenize(std::string_view text, bool add_bos) const {
  if (!has_vocabulary()) fail(Code::kUnsupported, "the model file holds no vocabulary: give token ids (stet logits --tokens)");
  return parts_->tokenizer->encode(text, {.add_bos = add_bos});
}

std::string Engine::detokenize(std::span<const int32_t> tokens, bool special) const {
  if (!has_vocabulary()) fail(Code::kUnsupported, "the model file holds no vocabulary, so its ids have no text");
  return parts_->tokenizer->decode(tokens, special);
}

std::vector<int32_t> Engine::tokenize_chat(std::span<const ChatMessage> messages, bool add_generation_prompt,
                                           std::optional<bool> thinking) const {
  if (!has_vocabulary()) return tokenize("");
  if (!has_chat_template()) fail(Code::kUnsupported, "the model has no chat template; use --raw");
  std::vector<Message> list;
  for (const ChatMessage& m : messages) list.push_back({m.role, m.content});
  const Tokenizer& t = *parts_->tokenizer;
  parts_->chat->check_vocabulary(t);
  ChatOptions options{.add_generation_prompt = add_generation_prompt, .bos_token = "", .eos_token = ""};
  options.thinking = thinking;
  if (t.bos()) options.bos_token = t.token_bytes(*t.bos(), true);
  if (t.eos()) options.eos_token = t.token_bytes(*t.eos(), true);
  // UTC: the local time zone would be one more thing that the ids depend on.
  const std::time_t seconds = std::time(nullptr);
  gmtime_r(&seconds, &options.now);
  return t.encode(parts_->chat->apply(list, options));
}

Generation Engine::generate(const Request& request, const OnCycle& on_cycle, const OnPrefill& on_prefill) {
  return Run(*parts_, request, on_cycle, on_prefill).to_the_end();
}

void Engine::logits(std::span<const int32_t> tokens,
                    const std::function<void(uint32_t, std::span<const float>)>& sink) {
  Parts& p = *parts_;
  if (tokens.empty()) fail(Code::kUsage, "no tokens given");
  // The session's own checks: ids and context. Its rows are overwritten, so nothing of it may be reused.
  p.session = std::make_unique<Session>(*p.decoder);
  for (int32_t token : tokens)
    if (token < 0 || static_cast<uint32_t>(token) >= p.desc.vocab)
      fail(Code::kUsage, "token {} is outside the vocabulary of {} tokens", token, p.desc.vocab);
  p.decoder->forward_all(tokens, 0, [&](uint32_t position, const float* row) { sink(position, {row, p.desc.vocab}); });
}

}  // namespace stet
