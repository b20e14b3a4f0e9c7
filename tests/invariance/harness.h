// Runs of a tiny model, and what they leave behind, compared byte by byte. Every test of an invariance compares two traces; every
// mutant is a run whose trace must differ.
#pragma once

#include <string>
#include <vector>

#include "spec/step.h"
#include "state/test_model.h"

namespace stet::test {

// What a run leaves behind: everything that the promise is about.
struct Trace {
  std::vector<std::vector<float>> logits;  // by position of the row; empty where none were asked for
  std::vector<int32_t> tokens;             // generated
  uint64_t kv = 0;                         // hash of the KV rows that count
  uint32_t proposed = 0, accepted = 0;     // by a draft; not compared
};

// Empty when all that both traces hold is equal, bit for bit; otherwise what differs first.
std::string difference(const Trace& a, const Trace& b);

// A way of running: everything that must not change a bit.
struct Way {
  const Kernels* kernels = &stet::kernels(available_isas().back());
  WorkerPool::Options pool = pool_options(1);
  DecoderOptions decoder = {.context = 512};
  ArmOptions arm = unqualified();  // nothing but these tests is to notice a mutant
};

class Machine {
 public:
  Machine(const TestModel& model, const Way& way)
      : kernels_(*way.kernels), pool_(way.pool), decoder_(model.desc, *model.pack, kernels_, pool_, way.decoder, way.arm) {}

  // Runs tokens from position `from` on in pieces of the given lengths, over and over. Each piece gives the logits of its last rows,
  // at most kNarrowRows.
  Trace feed(std::span<const int32_t> tokens, const std::vector<uint32_t>& pieces, uint32_t from = 0);

  Decoder& decoder() { return decoder_; }
  WorkerPool& pool() { return pool_; }
  const Kernels& kernels() const { return kernels_; }
  // Makes a draft by its command-line name; models are synthetic, and their ids mean the same.
  std::unique_ptr<Draft> draft(const std::string& name);

 private:
  const Kernels& kernels_;
  WorkerPool pool_;
  Decoder decoder_;
};

// A question.
struct Ask {
  std::vector<int32_t> prompt;
  uint32_t max_tokens = 32;
  SamplingParams sampling = {};
  std::vector<int32_t> stops = {};  // tokens after which the answer ends

  bool stop(int32_t token) const;
};

struct Help {
  Draft* draft = nullptr;
  uint32_t depth = 0;
};

// Answers it with Session::begin and step(), as the engine does, until a stop token, max_tokens or the end of the context.
Trace answer(Machine& machine, Session& session, const Ask& ask, const Help& help = {}, bool reuse = false);
// The same in a session of its own.
Trace answer(Machine& machine, const Ask& ask, const Help& help = {});
// The same on a machine of its own.
Trace fresh_answer(const TestModel& model, const Way& way, const Ask& ask);

// Fills keys and values of positions [from, to) with NaN, all layers. The memory must have been reached by a pass.
void poison(Decoder& decoder, uint32_t from, uint32_t to);

// A draft that knows the answer and makes of it what `rule` says.
class ScriptedDraft : public Draft {
 public:
  using Rule = int32_t (*)(size_t index, int32_t right, uint32_t vocab);
  ScriptedDraft(std::vector<int32_t> answer, uint32_t vocab, Rule rule)
      : answer_(std::move(answer)), vocab_(vocab), rule_(rule) {}
  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override;

 private:
  const std::vector<int32_t> answer_;
  const uint32_t vocab_;
  const Rule rule_;
};

inline int32_t always_right(size_t, int32_t right, uint32_t) { return right; }
inline int32_t always_lies(size_t, int32_t right, uint32_t vocab) { return (right + 1) % static_cast<int32_t>(vocab); }
// Right for a run of tokens of changing length, then wrong once.
inline int32_t sometimes_right(size_t index, int32_t right, uint32_t vocab) {
  return index * index % 7 == 2 ? always_lies(index, right, vocab) : right;
}

// Splitmix64: the numbers of the property tests.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(next() % n); }
  uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }

 private:
  uint64_t state_;
};

}  // namespace stet::test
