#include "harness.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/fp.h"
#include "kernels/attend/kv_element.h"

namespace stet::test {
namespace {

std::string row_difference(size_t position, const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (bits_of_float(a[i]) != bits_of_float(b[i]))
      return fmt::format("logit {} at position {} is {} ({:08x}) and {} ({:08x})", i, position, a[i], bits_of_float(a[i]), b[i],
                         bits_of_float(b[i]));
  return "";
}

void put_row(Trace& trace, size_t position, const float* row, uint32_t vocab) {
  if (trace.logits.size() <= position) trace.logits.resize(position + 1);
  trace.logits[position].assign(row, row + vocab);
}

}  // namespace

std::string difference(const Trace& a, const Trace& b) {
  for (size_t p = 0; p < std::min(a.logits.size(), b.logits.size()); ++p) {
    if (a.logits[p].empty() || b.logits[p].empty()) continue;
    if (std::string text = row_difference(p, a.logits[p], b.logits[p]); !text.empty()) return text;
  }
  for (size_t i = 0; i < std::min(a.tokens.size(), b.tokens.size()); ++i)
    if (a.tokens[i] != b.tokens[i]) return fmt::format("generated token {} is {} and {}", i, a.tokens[i], b.tokens[i]);
  if (a.tokens.size() != b.tokens.size()) return fmt::format("{} and {} tokens were generated", a.tokens.size(), b.tokens.size());
  return a.kv == b.kv ? "" : fmt::format("the KV rows hash to {:016x} and {:016x}", a.kv, b.kv);
}

Trace Machine::feed(std::span<const int32_t> tokens, const std::vector<uint32_t>& pieces, uint32_t from) {
  Trace trace;
  const uint32_t vocab = decoder_.desc().vocab;
  uint32_t done = 0;
  for (size_t i = 0; done < tokens.size(); ++i) {
    const uint32_t n = std::min(pieces[i % pieces.size()], static_cast<uint32_t>(tokens.size()) - done);
    const uint32_t rows = std::min(n, kNarrowRows);
    const float* logits = decoder_.forward(tokens.subspan(done, n), from + done, rows);
    done += n;
    for (uint32_t r = 0; r < rows; ++r) put_row(trace, from + done - rows + r, logits + size_t{r} * vocab, vocab);
  }
  trace.kv = decoder_.kv_hash(from + done);
  return trace;
}

std::unique_ptr<Draft> Machine::draft(const std::string& name) {
  const DraftKind& kind = draft_kind(name);
  if (kind.make == nullptr) return nullptr;
  return kind.make({.argument = draft_argument(name),
                    .target = decoder_.desc(),
                    .open = [](const std::string& model) { return SynthSource::create(model); },
                    .vocab_hash = [](const TensorSource&) { return std::string("same"); },
                    .target_vocab_hash = "same",
                    .kernels = kernels_,
                    .pool = pool_,
                    .context = decoder_.options().context,
                    .kv = decoder_.options().kv,
                    .pack = {},
                    .arm = unqualified(),
                    .decoder = &decoder_});
}

bool Ask::stop(int32_t token) const { return std::ranges::find(stops, token) != stops.end(); }

Trace answer(Machine& machine, Session& session, const Ask& ask, const Help& help, bool reuse) {
  const uint32_t vocab = machine.decoder().desc().vocab;
  Trace trace;
  Sampler sampler(machine.kernels(), ask.sampling, vocab);
  session.begin(ask.prompt, reuse);
  if (help.draft != nullptr) help.draft->begin(ask.sampling);
  while (trace.tokens.size() < ask.max_tokens && session.room() > 0) {
    const uint32_t row = session.committed_tokens() - 1;
    const StepResult r = step(session, sampler,
                              {.draft = help.draft,
                               .depth = help.depth,
                               .is_stop = [&](int32_t token) { return ask.stop(token); },
                               .max_tokens = ask.max_tokens - static_cast<uint32_t>(trace.tokens.size()),
                               .hook = nullptr});
    for (uint32_t i = 0; i < r.tokens.size(); ++i) put_row(trace, row + i, r.logits + size_t{i} * vocab, vocab);
    trace.tokens.insert(trace.tokens.end(), r.tokens.begin(), r.tokens.end());
    trace.proposed += r.proposed;
    trace.accepted += r.accepted;
    if (ask.stop(r.tokens.back())) break;
  }
  trace.kv = machine.decoder().kv_hash(session.cached_tokens());
  return trace;
}

Trace answer(Machine& machine, const Ask& ask, const Help& help) {
  Session session(machine.decoder());
  return answer(machine, session, ask, help);
}

Trace fresh_answer(const TestModel& model, const Way& way, const Ask& ask) {
  Machine machine(model, way);
  return answer(machine, ask);
}

void poison(Decoder& decoder, uint32_t from, uint32_t to) {
  const KvLayout& layout = decoder.kv_layout();
  for (uint32_t l = 0; l < decoder.desc().layers; ++l)
    for (uint32_t h = 0; h < layout.heads; ++h)
      for (uint32_t p = from; p < to; ++p) {
        uint8_t* layer = decoder.kv_layer(l);
        for (uint32_t d = 0; d < layout.head_dim; ++d) {
          std::memset(key_address(layout, layer, h, p, d), 0xff, layout.element_bytes());
          std::memset(value_address(layout, layer, h, p, d), 0xff, layout.element_bytes());
        }
        for (uint32_t b = 0; layout.format == KvFormat::q8 && b < layout.blocks(); ++b) {
          std::memset(key_scale(layout, layer, h, p, b), 0xff, sizeof(float));
          std::memset(value_scale(layout, layer, h, p, b), 0xff, sizeof(float));
        }
      }
}

void ScriptedDraft::propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) {
  const size_t first = view.tokens.size() - view.prompt_tokens;
  for (size_t i = first; i < first + depth; ++i) {
    const int32_t right = i < answer_.size() ? answer_[i] : static_cast<int32_t>(i % vocab_);
    proposals.push_back(rule_(i, right, vocab_));
  }
}

}  // namespace stet::test
