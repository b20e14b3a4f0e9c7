// One model, one active generation.
//
//   stet::Engine engine({.model = "model.gguf", .draft = "ngram"});
//   stet::Request request;
//   request.prompt = engine.tokenize_chat({{"user", "Why is the sky blue?"}});
//   stet::Generation answer = engine.generate(request, [](const stet::CycleEvent& cycle) { show(cycle.text); return true; });
//
// Every function throws stet::Error (base/error.h), whose code says what it asks of the caller.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/sampling.h"
#include "stet/options.h"

namespace stet {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct Request {
  std::vector<int32_t> prompt;       // token ids, at least one
  uint32_t max_tokens = 0;           // 0: what fits into the context
  SamplingParams sampling;           // the seed is part of the question: draw_seed() where the user gave none
  std::vector<std::string> stop;     // the answer ends before the first of these
  bool ignore_eos = false;
  bool reuse_prefix = true;          // keep KV rows of a common beginning with the request before
  std::optional<uint32_t> top_logprobs;  // report log-probabilities: of each output token, and of so many most probable ones
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0f;
};

// Natural logarithms of the softmax of the model's own logits: before bias, penalties, temperature and cuts.
struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // most probable first, ties to the lower id
};

enum class Finish : uint8_t { stop, length, context, cancelled };
std::string_view finish_name(Finish finish);

// One transaction of a generation.
struct Cycle {
  uint32_t proposed = 0;
  uint32_t accepted = 0;
  uint32_t emitted = 0;  // tokens that became part of the answer: fewer than were committed where a stop string ends it
  double seconds = 0.0;  // since the request began, when its tokens were committed
  double draft_seconds = 0.0;  // of it: until the verify pass began; the first cycle's holds the draft's own pass over the prompt
};

// A cycle while it is fresh: what it added to the answer. Views hold until the listener returns.
struct CycleEvent {
  const Cycle& cycle;
  std::span<const int32_t> tokens;             // cycle.emitted ids, an end token included
  std::string_view text;                       // what became final: never half a character, never part of a stop string
  std::span<const PositionLogprobs> logprobs;  // one a token where the request asked for them
};

struct Generation {
  std::vector<int32_t> tokens;  // the output ids, an end token included
  std::string text;             // what a reader sees: without end tokens and the stop string
  Finish finish = Finish::length;
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;   // of the prompt, whose KV rows were there already
  double first_token_seconds = 0.0;
  double total_seconds = 0.0;
  std::vector<Cycle> cycles;

  std::string digest() const;                    // SHA-256 of the output ids as little-endian i32, in hex
  double prefill_tokens_per_second() const;      // prompt tokens that were run, up to the first token
  // Tokens after the first cycle over the time since: tokens that arrive together share one time. 0 when there is only one cycle.
  double decode_tokens_per_second() const;
  double tokens_per_cycle() const;               // the target's own token included
  std::vector<double> acceptance_by_position() const;  // share of cycles with a proposal at a position that accepted it
};

// What the engine is running on, for people and for evidence.
struct EngineInfo {
  std::string model_name, architecture, pack_key;
  bool synthetic = false;
  std::string profile;      // "portable"
  std::string activations;  // "a8" or "f32"
  std::string isa, kv, draft;
  std::string device;         // "cpu" or "cuda"
  std::string device_why;     // why, where the choice was stet's
  std::string device_name, device_uuid;  // of the GPU; empty on the processor
  int device_driver = 0;      // CUDA version of the driver: 13000 is 13.0
  uint64_t device_bytes = 0;  // of GPU memory: weights, cache, buffers
  std::string qualified;      // kernels and lists compared with the reference: "now", "cached" (an earlier start did), "no" (not asked)
  std::string qualified_why;  // what was compared, and why the verdict was not kept where it could not be
  bool history_accelerated = false;
  unsigned threads = 0;
  std::string threads_why;
  uint32_t context = 0, trained_context = 0;
  std::string weights_place;  // "in huge pages", "mapped: ..." and why
  uint64_t weight_bytes = 0, kv_bytes = 0;  // kv_bytes: of the whole context
  std::string memory_why;
  uint32_t draft_depth = 0;
};

class Engine {
 public:
  explicit Engine(const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineInfo& info() const;  // any thread, also beside generate(); so are the functions of text below

  // Text to ids: plain text, or messages through the model's chat template. add_bos: begin with the token that begins a text, if the
  // model wants one. add_generation_prompt: end with what introduces the assistant's answer. thinking: reason before the answer, or
  // answer at once; nothing: as the model does by itself. Throw Error(kUnsupported) for a model without a vocabulary or without a
  // template; Error(kInput), naming the message, where the template refuses or drops one, and where it has no switch for `thinking`.
  std::vector<int32_t> tokenize(std::string_view text, bool add_bos = true) const;
  std::vector<int32_t> tokenize_chat(std::span<const ChatMessage> messages, bool add_generation_prompt = true,
                                     std::optional<bool> thinking = {}) const;
  uint32_t vocab() const;  // token ids are below this
  bool has_vocabulary() const;
  bool has_chat_template() const;

  // The exact bytes that ids stand for, which need not be valid UTF-8; control tokens are left out unless `special`. Throws
  // Error(kUsage) for an id outside the vocabulary, Error(kUnsupported) for a model without one.
  std::string detokenize(std::span<const int32_t> tokens, bool special = false) const;

  // Runs a request. on_cycle is called once after every cycle, whether or not text became final, and on_prefill as prompt tokens
  // are done; where one returns false the generation ends before the next cycle or pass (Finish::cancelled).
  Generation generate(const Request& request, const std::function<bool(const CycleEvent& cycle)>& on_cycle = nullptr,
                      const std::function<bool(uint32_t done, uint32_t total)>& on_prefill = nullptr);

  // Tokens that have KV rows now: the next request may reuse what it has in common with them. Not beside generate().
  uint32_t cached_tokens() const;

  // Logits of every position of `tokens`, in order: sink(position, logits of vocab floats). Leaves no timeline behind.
  void logits(std::span<const int32_t> tokens, const std::function<void(uint32_t position, std::span<const float> logits)>& sink);

  // For prove, profile and tests inside this project.
  struct Parts;
  Parts& parts();
  const Parts& parts() const;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace stet
