// One row of a proof: builds what the setting asks for, runs it, and keeps what was seen.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "lab/prove.h"

namespace stet {

// What a run leaves: the output tokens and a hash of each one's logits row.
struct ProveTimeline {
  std::vector<int32_t> tokens;
  std::vector<uint64_t> logits;
  std::string digest(size_t first) const;  // of the first so many tokens
};

class ProveRunner {
 public:
  ProveRunner(Engine::Parts& engine, const ProveOptions& options);

  ProveTimeline run(const ProveSetting& setting, uint32_t tokens);
  // Logits of the first positions of `timeline`, `rows` tokens a pass: one hash each.
  std::vector<uint64_t> teacher_forced(const ProveSetting& setting, std::span<const int32_t> timeline);
  // The first command (in list order) whose output for `position` of the timeline differs between two settings, or "" when none
  // does in the form that can be watched.
  std::string first_difference(const ProveSetting& a, const ProveSetting& b, std::span<const int32_t> timeline, uint32_t position);

  const std::vector<std::string>& drafts() const { return drafts_; }
  // The right answer, for the drafts that need it.
  void set_answer(bool sampled, std::vector<int32_t> tokens) { answer_[sampled] = std::move(tokens); }

 private:
  struct Machine {
    std::unique_ptr<WorkerPool> pool;
    std::unique_ptr<Decoder> decoder;
    std::unique_ptr<Draft> model;  // the draft "model", made when first used
    std::unique_ptr<Draft> own;    // that of the checkpoint's blocks, likewise
  };
  Machine& machine(const ProveSetting& setting);
  std::unique_ptr<Draft> make_draft(const ProveSetting& setting);
  Draft* draft(const ProveSetting& setting, Machine& m, std::unique_ptr<Draft>& own);
  void make_history(const ProveSetting& setting, Session& session);
  std::vector<std::pair<std::string, uint64_t>> trace(const ProveSetting& setting, std::span<const int32_t> timeline, uint32_t position);
  SamplingParams sampling(bool sampled) const;
  uint32_t context() const;
  DecoderOptions decoder_options(const ProveSetting& setting) const;

  Engine::Parts& engine_;
  const ProveOptions& options_;
  std::vector<std::string> drafts_;
  std::map<std::tuple<Isa, unsigned, bool, bool>, Machine> machines_;
  std::vector<int32_t> answer_[2];
};

}  // namespace stet
