#include "lab/spec_eval/manifest.h"

#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr const char* kSchema = "stet-spec-eval-manifest-1";
constexpr const char* kUnprovenIdentity = "unproven";

// Not among them: what a machine decides at every start (place of the weights, length of the context) and what changes
// no answer and no speed.
constexpr const char* kFrozen[] = {"program",
                                   "version",
                                   "build_id",
                                   "commit",
                                   "commit_state",
                                   "compiler",
                                   "build_type",
                                   "flags",
                                   "numerics_version",
                                   "libraries",
                                   "cpu_model",
                                   "kernel_release",
                                   "model",
                                   "synthetic",
                                   "model_sha256",
                                   "model_files",
                                   "tokenizer_sha256",
                                   "chat_template_sha256",
                                   "pack",
                                   "draft",
                                   "draft_sha256",
                                   "draft_depth",
                                   "history_accelerated",
                                   "profile",
                                   "activations",
                                   "isa",
                                   "kv",
                                   "replay",
                                   "prompt_rows",
                                   "threads",
                                   "pin",
                                   "device"};
constexpr const char* kProving[] = {"build_id", "model_sha256", "tokenizer_sha256", "numerics_version"};

std::string identity_text(const Json& json) { return json.is_string() ? json.get<std::string>() : dump_line(json); }

Json arm_json(const FrozenArm& arm) {
  return {{"what", parse_json(arm.what_json, "an arm")}, {"identity", parse_json(arm.identity_json, "an identity")}};
}

Json policy_json(const EvalManifest& m) {
  Json files = Json::array();
  for (const PolicyFile& f : m.policy_files)
    files.push_back({{"name", f.name}, {"bytes", f.bytes}, {"sha256", f.sha256}});
  return {{"what", m.policy}, {"inputs", m.policy_inputs}, {"files", files}};
}

Json arms_json(const EvalManifest& m) {
  Json arms = Json::object();
  for (const EvalArm arm : kEvalArms) arms[std::string(eval_arm_name(arm))] = arm_json(m.arm(arm));
  return arms;
}

std::vector<std::string> texts(StrictObject& object, std::string_view key) {
  const Json& list = object.any(key);
  std::vector<std::string> all;
  for (const Json& item : list) {
    if (!list.is_array() || !item.is_string()) fail(Code::kInput, "{}: '{}' is no list of texts", object.what(), key);
    all.push_back(item.get<std::string>());
  }
  return all;
}

double finite_number(StrictObject& object, std::string_view key) {
  const Json& value = object.any(key);
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    fail(Code::kInput, "{}: '{}' is no number", object.what(), key);
  return value.get<double>();
}

void read_contract(const Json& json, EvalManifest& m) {
  StrictObject object(json, "the contract of the manifest");
  const std::string sha256 = object.text("sha256");
  m.contract = parse_spec_eval_contract(object.text("text"), "the contract of the manifest");
  m.scale = finite_number(object, "scale");
  object.finish();
  if (m.contract.sha256 != sha256)
    fail(Code::kInput, "the contract of the manifest has the hash {}..., and the manifest names {}...",
         m.contract.sha256.substr(0, 12), sha256.substr(0, 12));
  if (!(m.scale > 0 && m.scale <= 1)) fail(Code::kInput, "the scale of the manifest is {}, outside 0 .. 1", m.scale);
}

void read_policy(const Json& json, EvalManifest& m) {
  StrictObject object(json, "the policy of the manifest");
  m.policy = object.text("what");
  m.policy_inputs = texts(object, "inputs");
  for (const Json& entry : object.any("files")) {
    StrictObject file(entry, "a file of the policy");
    m.policy_files.push_back({file.text("name"), file.optional_u64("bytes").value_or(0), file.text("sha256")});
    file.finish();
  }
  object.finish();
  if (m.policy.empty() || m.policy_inputs.empty())
    fail(Code::kInput, "the manifest does not say what the policy does and what it reads");
  m.contract.check_policy_inputs(m.policy_inputs);
}

void read_arms(const Json& json, EvalManifest& m) {
  StrictObject arms(json, "the arms of the manifest");
  for (const EvalArm which : kEvalArms) {
    const std::string name(eval_arm_name(which));
    StrictObject arm(arms.any(name), fmt::format("the arm '{}' of the manifest", name));
    FrozenArm& frozen = m.arms[static_cast<size_t>(which)];
    frozen.what_json = arm.object("what");
    frozen.identity_json = arm.object("identity");
    arm.finish();
    if (frozen_identity(frozen.identity_json) != frozen.identity_json)
      fail(Code::kInput, "the identity of the arm '{}' of the manifest lacks members, or has other ones", name);
  }
  arms.finish();
}

}  // namespace

std::string_view eval_arm_name(EvalArm arm) {
  constexpr std::array<std::string_view, 3> kNames = {"target", "current", "candidate"};
  return kNames[static_cast<size_t>(arm)];
}

bool EvalManifest::screening() const { return scale != 1 || contract.sha256 != spec_eval_contract().sha256; }

std::string manifest_json(const EvalManifest& m) {
  const Json json = {{"kind", "spec-eval"},
                     {"schema", kSchema},
                     {"label", m.label},
                     {"created", m.created},
                     {"contract", {{"sha256", m.contract.sha256}, {"scale", m.scale}, {"text", m.contract.bytes}}},
                     {"policy", policy_json(m)},
                     {"attested", m.attested},
                     {"bootstrap_seed", m.bootstrap_seed},
                     {"arms", arms_json(m)},
                     {"idea", m.idea},
                     {"cites", m.cites}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

EvalManifest parse_manifest(std::string_view text) {
  const Json json = parse_json(text, "the manifest");
  StrictObject object(json, "the manifest");
  if (object.text("kind") != "spec-eval" || object.text("schema") != kSchema)
    fail(Code::kInput, "the manifest is none of stet spec-eval, or of another version");
  EvalManifest m;
  m.label = object.text("label");
  m.created = object.text("created");
  read_contract(object.any("contract"), m);
  read_policy(object.any("policy"), m);
  m.attested = object.flag("attested");
  m.bootstrap_seed = object.optional_u64("bootstrap_seed").value_or(0);
  read_arms(object.any("arms"), m);
  m.idea = object.text("idea");
  for (const Json& cited : object.any("cites")) {
    if (!cited.is_number_integer()) fail(Code::kInput, "the manifest cites something that is no entry of a journal");
    m.cites.push_back(cited.get<int64_t>());
  }
  object.finish();
  return m;
}

std::string eval_subject_sha256(const EvalManifest& m) {
  const std::string subject = dump_line(
      {{"contract", m.contract.sha256}, {"scale", m.scale}, {"policy", policy_json(m)}, {"arms", arms_json(m)}});
  return sha256_hex(subject.data(), subject.size());
}

std::string frozen_identity(std::string_view identity_json) {
  const Json identity = parse_json(identity_json, "the identity of an engine");
  Json frozen = Json::object();
  for (const char* key : kFrozen) frozen[key] = identity.contains(key) ? identity[key] : Json(kUnprovenIdentity);
  return dump_line(frozen);
}

std::string identity_change(std::string_view frozen_json, std::string_view identity_json) {
  const Json frozen = parse_json(frozen_json, "the frozen identity");
  const Json now = parse_json(frozen_identity(identity_json), "the identity of an engine");
  for (const char* key : kFrozen) {
    const Json was = frozen.contains(key) ? frozen[key] : Json(kUnprovenIdentity);
    if (was != now[key]) return fmt::format("{} was {} and is {}", key, identity_text(was), identity_text(now[key]));
  }
  return "";
}

std::vector<std::string> unproven_members(std::string_view frozen_json) {
  const Json frozen = parse_json(frozen_json, "the frozen identity");
  std::vector<std::string> members;
  for (const char* key : kProving)
    if (!frozen.contains(key) || frozen[key] == kUnprovenIdentity) members.emplace_back(key);
  return members;
}

}  // namespace stet
