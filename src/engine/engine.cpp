#include "stet/engine.h"

#include <chrono>
#include <ctime>

#include "base/error.h"
#include "engine/parts.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace stet {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Tokens to the text that a reader may see: end tokens are silent, a stop string ends it.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const std::vector<std::string>& stops, std::string& out,
             const std::function<bool(std::string_view)>& sink)
      : stops_(stops), out_(out), sink_(sink) {
    if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer);
  }
  // False: the reader wants no more.
  bool push(int32_t token) { return !detokenizer_ || show(stops_.push(detokenizer_->push(token))); }
  bool stopped() const { return stops_.found().has_value(); }
  void finish() {
    if (!detokenizer_ || stopped()) return;
    show(stops_.push(detokenizer_->flush()));
    if (!stopped()) show(stops_.flush());
  }

 private:
  bool show(const std::string& text) {
    out_ += text;
    if (wanted_ && sink_ && !text.empty()) wanted_ = sink_(text);
    return wanted_;
  }
  std::optional<Detokenizer> detokenizer_;
  StopStrings stops_;
  std::string& out_;
  const std::function<bool(std::string_view)>& sink_;
  bool wanted_ = true;  // false: the reader is not called again
};

struct Cancelled {};

}  // namespace

Engine::Engine(const Options& options) : parts_(std::make_unique<Parts>(options)) {}
Engine::~Engine() = default;

const EngineInfo& Engine::info() const { return parts_->info; }
Engine::Parts& Engine::parts() { return *parts_; }
bool Engine::has_vocabulary() const { return parts_->tokenizer != nullptr; }
bool Engine::has_chat_template() const { return parts_->chat != nullptr; }

std::vector<int32_t> Engine::tokenize(std::string_view text) const {
  if (!has_vocabulary()) fail(Code::kUnsupported, "the model file holds no vocabulary: give token ids (stet logits --tokens)");
  return parts_->tokenizer->encode(text, {.add_bos = true});
}

std::vector<int32_t> Engine::tokenize_chat(std::span<const ChatMessage> messages) const {
  if (!has_vocabulary()) return tokenize("");
  if (!has_chat_template()) fail(Code::kUnsupported, "the model has no chat template; use --raw");
  std::vector<Message> list;
  for (const ChatMessage& m : messages) list.push_back({m.role, m.content});
  const Tokenizer& t = *parts_->tokenizer;
  ChatOptions options;
  if (t.bos()) options.bos_token = t.token_bytes(*t.bos(), true);
  if (t.eos()) options.eos_token = t.token_bytes(*t.eos(), true);
  const std::time_t seconds = std::time(nullptr);
  localtime_r(&seconds, &options.now);
  return t.encode(parts_->chat->apply(list, options));
}

Generation Engine::generate(const Request& request, const std::function<bool(std::string_view)>& on_text,
                            const std::function<bool(uint32_t, uint32_t)>& on_prefill) {
  Parts& p = *parts_;
  Session& session = *p.session;
  Sampler sampler(*p.kernels, request.sampling, p.desc.vocab);
  Generation g;
  TextStream text(p.tokenizer.get(), request.stop, g.text, on_text);
  const double start = now();
  g.cached_tokens = session.begin(request.prompt, request.reuse_prefix);
  g.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
  if (p.draft) p.draft->begin(request.sampling);
  const auto is_stop = [&](int32_t token) { return !request.ignore_eos && p.tokenizer && p.tokenizer->is_stop(token); };
  const uint32_t limit = request.max_tokens == 0 ? UINT32_MAX : request.max_tokens;
  p.decoder->set_between_passes([&](uint32_t done, uint32_t total) {
    if (on_prefill && g.cycles.empty() && !on_prefill(done, total)) throw Cancelled{};
  });
  bool running = true;
  try {
    while (running) {
      if (session.room() == 0) {
        g.finish = Finish::context;
        break;
      }
      const StepResult r = step(session, sampler,
                                {.draft = p.draft.get(), .depth = p.info.draft_depth, .is_stop = is_stop,
                                 .max_tokens = limit - static_cast<uint32_t>(g.tokens.size()), .hook = nullptr});
      g.cycles.push_back({r.proposed, r.accepted, static_cast<uint32_t>(r.tokens.size()), now() - start});
      if (g.cycles.size() == 1) g.first_token_seconds = g.cycles[0].seconds;
      for (int32_t token : r.tokens) {
        g.tokens.push_back(token);
        const bool end = is_stop(token);
        if (!end && !text.push(token)) g.finish = Finish::cancelled, running = false;
        if (end || text.stopped()) g.finish = Finish::stop, running = false;
        if (!running) break;
      }
      if (running && g.tokens.size() >= limit) g.finish = Finish::length, running = false;
    }
  } catch (const Cancelled&) {
    g.finish = Finish::cancelled;
  } catch (...) {
    p.decoder->set_between_passes(nullptr);
    throw;
  }
  p.decoder->set_between_passes(nullptr);
  g.total_seconds = now() - start;
  text.finish();
  return g;
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
