// The manifest of an evaluation: everything that decides what is judged and how, written before any of its prompts
// exist. Its bytes are the plan of the packet.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/ledger/ledger.h"
#include "lab/spec_eval/contract.h"

namespace stet {

// The three arms, in the launch order of the first pack; the second has it reversed.
enum class EvalArm : uint8_t { target, current, candidate };
inline constexpr std::array<EvalArm, 3> kEvalArms = {EvalArm::target, EvalArm::current, EvalArm::candidate};
std::string_view eval_arm_name(EvalArm arm);

// A file that the policy is made of, frozen by its hash.
struct PolicyFile {
  std::string name;  // without folders
  uint64_t bytes = 0;
  std::string sha256;
};

struct FrozenArm {
  std::string what_json;      // options of the engine: an object without paths
  std::string identity_json;  // what a process of this arm said of itself when it was frozen: frozen_identity()
};

struct EvalManifest {
  std::string label, created;  // created: UTC
  SpecEvalContract contract;
  double scale = 1;    // of all sizes in tokens
  std::string policy;  // what it does, in words
  std::vector<std::string> policy_inputs;
  std::vector<PolicyFile> policy_files;
  bool attested = false;  // the operator states what no program can check (contract.attested)
  uint64_t bootstrap_seed = 0;
  std::array<FrozenArm, 3> arms;
  std::string idea;
  std::vector<int64_t> cites;

  const FrozenArm& arm(EvalArm which) const { return arms[static_cast<size_t>(which)]; }
  // Sizes or gates are not the contract's own: whatever comes out, nothing is promoted.
  bool screening() const;
};

std::string manifest_json(const EvalManifest& manifest);
// Throws Error(kInput) that names the member; Error(kUsage) for a policy input that the contract forbids.
EvalManifest parse_manifest(std::string_view json);
// SHA-256 of what is judged: the same for manifests that differ in label, date and bootstrap seed only.
std::string eval_subject_sha256(const EvalManifest& manifest);

// The part of what a process says of itself that must not change between freezing and running; what it does not say is
// "unproven".
std::string frozen_identity(std::string_view identity_json);
// "build_id was X and is Y" for the first member that changed; empty: none.
std::string identity_change(std::string_view frozen_json, std::string_view identity_json);
// Members of a frozen identity that prove which program and model ran, and are "unproven".
std::vector<std::string> unproven_members(std::string_view frozen_json);

}  // namespace stet
