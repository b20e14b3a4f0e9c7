// The flags of stet bench, and the job that they describe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/model_flags.h"
#include "cli/sampling_flags.h"
#include "lab/bench/bench.h"

namespace stet {

// What is measured: a server that was found, or an engine that will be started.
struct BenchTarget {
  std::unique_ptr<HttpClient> client;
  std::optional<Connected> server;
  std::string program;
};

struct BenchFlags {
  ModelFlags model;
  SamplingParams sampling;
  std::optional<uint64_t> seed, nonce_seed;
  std::string endpoint, server = "auto", model_id, key_file;
  std::string suite, steps, out, teacher, ledger, idea, label;
  std::vector<std::string> cites;
  uint32_t starts = 0, repeats = 1, max_tokens = 0, timeout = 900;
  bool as_teacher = false, ignore_eos = false, json = false;

  void declare(Flags& flags);
  // What contradicts itself. Throws Error(kUsage).
  void check() const;
  std::vector<int64_t> cited() const;

  // Finds the server, or the program that will be started. stop: see HttpClient.
  BenchTarget target(std::function<bool()> stop) const;
  // Keeps references to the target.
  BenchJob job(BenchTarget& target, const std::string& created, std::function<bool()> stop) const;

 private:
  void declare_target(Flags& flags);
  void declare_questions(Flags& flags);
  BenchQuestions questions() const;
  void take_teachers(BenchQuestions& questions) const;
  bool teaches_itself() const { return teacher == "self"; }
  uint32_t teacher_starts() const;
  void add_endpoint_arm(BenchTarget& target, BenchJob& job) const;
  void add_engine_arms(BenchTarget& target, const std::function<bool()>& stop, BenchJob& job) const;
};

}  // namespace stet
