// A suite: what is sent, in which order, as a data file (docs/benchmark_servers.md has its format). Another byte is
// another suite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

struct SuiteMessage {
  std::string role, content;
};

struct SuiteStep {
  std::string id;  // unique in the suite
  std::string step_class;
  std::vector<SuiteMessage> messages;
  uint32_t max_tokens = 0;
  uint32_t round = 0;                // of the repeated block that it stands in, from 1; 0: it stands alone
  std::optional<std::string> ideal;  // what a perfect model would answer: for task accuracy, never for exactness
  std::optional<uint32_t> cancel_after_tokens;  // the client leaves after so many tokens; 0: before the first
  std::vector<std::string> stop;                // the answer ends before one of these
  bool ignore_eos = false;
};

struct Suite {
  std::string id;
  uint32_t version = 0;
  std::string description;
  std::string sha256;            // of the file's bytes
  bool cold = true;              // no prompt token may come out of a cache
  bool repeats_allowed = false;  // a prompt may be sent more than once
  bool ordered = false;          // the order is part of the test
  bool nonce = false;            // every prompt begins with text of its own, from the plan's seed
  std::vector<SuiteStep> steps;  // blocks unrolled, in the order in which they are sent

  uint32_t most_tokens() const;  // the largest max_tokens
};

// Throws Error(kInput) that names `what`, the step and the member.
Suite parse_suite(std::string_view bytes, const std::string& what);

// One of those in the binary ("canary-v1"), or a file. Throws Error(kUsage) that lists them for a name that is neither.
Suite load_suite(const std::string& name_or_file);

std::vector<std::string_view> suite_names();

// The suite with the steps whose ids are given, in the suite's order; a step of a repeated block counts with all its
// rounds. Throws Error(kUsage) for an unknown id.
Suite with_steps(const Suite& suite, const std::vector<std::string>& ids);

// The messages of a step with the nonce as the first words of the first message; without a nonce, as they are.
std::vector<SuiteMessage> step_messages(const Suite& suite, const SuiteStep& step, uint64_t nonce_seed,
                                        uint32_t repeat);

// [{"role":...,"content":...},...] as one line: what a record calls its prompt.
std::string messages_json(const std::vector<SuiteMessage>& messages);
// Throws Error(kInput) beginning with `what`.
std::vector<SuiteMessage> parse_messages(std::string_view json, const std::string& what);

}  // namespace stet
