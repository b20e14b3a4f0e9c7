// The promise, checked on one prompt: every way of running it that this machine has gives the same tokens and the same logits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/parts.h"

namespace stet {

// One way of running the prompt. The default is the base point.
struct ProveSetting {
  Isa isa = Isa::scalar;
  unsigned threads = 1;
  uint32_t prompt_rows = kWideRows;
  ReplayMode mode = ReplayMode::replayed;
  // none, ngram, liar (always wrong), mixed (right and wrong by turns), model, that of the checkpoint's own blocks
  std::string draft = "none";
  uint32_t depth = 1;
  std::string history = "fresh";  // fresh, requests (others ran before), rollbacks (rejected work everywhere before)
  bool warm = false;            // the prompt's KV rows are there already
  bool sampled = false;
  bool cuda = false;            // on the engine's GPU

  std::string text() const;
};

struct ProveRow {
  std::string what;     // the setting
  std::string digest;   // of tokens and logits
  uint32_t tokens = 0;
  bool equal = false;   // to the reference row of its kind
  double seconds = 0;
};

struct ProveReport {
  std::vector<ProveRow> rows;
  std::string divergence;  // empty: none; else the first differing row, position and command
  bool equal() const { return divergence.empty(); }
};

struct ProveOptions {
  std::vector<int32_t> prompt;
  uint32_t tokens = 64;
  std::string draft_model;  // a smaller model for the draft "model"; empty: the target itself, where it fits twice
  std::string only;         // for tests: rows whose text contains this
  std::function<void(const ProveRow& row, size_t done, size_t total)> progress;
  const Kernels* wrong_kernels = nullptr;  // for tests: used by the rows that are not a base point
};

// Runs until the first row that differs, names the first command whose bytes differ there, and stops.
ProveReport prove(Engine::Parts& engine, const ProveOptions& options);

}  // namespace stet
