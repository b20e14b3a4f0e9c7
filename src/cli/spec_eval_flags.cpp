#include "cli/spec_eval_flags.h"

#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "cli/interrupt.h"
#include "engine/file_hashes.h"
#include "engine/model_names.h"
#include "lab/compare/arm_spec.h"
#include "base/strict_json.h"
#include "text/tokenizer.h"

namespace stet {
namespace {

bool was_interrupted() { return interrupts() > 0; }

// Everything that was chosen, files by their names.
std::string what_of(const Options& options) {
  Json what = parse_json(options_json(options), "the options of an arm");
  what.erase("cache_dir");
  what["model"] = file_name(options.model);
  if (options.draft.starts_with("model:")) what["draft"] = "model:" + file_name(options.draft.substr(6));
  return dump_line(what);
}

// The flags of an arm: those about speculation, and no other, so that nothing else can differ.
Options with_draft(const ModelFlags& base, const std::string& flag, const std::string& text) {
  ModelFlags arm = base;
  Flags parser("spec-eval", "The flags of an arm.");
  arm.declare_draft(parser);
  try {
    const std::vector<std::string> words = split_words(text);
    if (!parser.parse(words)) fail(Code::kUsage, "help is no arm");
  } catch (const Error& e) {
    fail(Code::kUsage, "{} '{}': an arm has --draft and --draft-depth, and what all arms share stands outside: {}",
         flag, text, e.what());
  }
  arm.check();
  return arm.options;
}

// 0.05 and not 0.05000000074505806.
double scale_as_written(float value) { return Json::parse(fmt::format("{}", value)).get<double>(); }

CountTokens counter(const Options& options) {
  const auto source = open_model(options.model, options.cache_dir);
  const auto tokenizer = std::make_shared<Tokenizer>(source->metadata());
  return [tokenizer](std::string_view text) { return static_cast<uint32_t>(tokenizer->encode(text).size()); };
}

void check_context(const EvalManifest& m, const std::string& identity_json) {
  const Json identity = parse_json(identity_json, "the identity of an engine");
  const uint32_t needed = tokens_needed(m.contract, m.scale);
  if (identity.contains("context") && identity["context"].is_number_unsigned() && identity["context"] < needed)
    fail(Code::kUsage,
         "the longest request needs a context of {} tokens, and the arms have {}: choose a larger --ctx, "
         "another model, or screen with a smaller --scale",
         needed, dump_line(identity["context"]));
}

}  // namespace

void SpecEvalFlags::declare(Flags& flags) {
  flags.positional("ACTION", &action, "freeze, run or trace");
  flags.positional("FILE", &argument, "run: the manifest; trace: a packet");
  model.declare_model(flags);
  model.declare_context(flags);
  flags.section("The arms: target-only has no draft, and all else is the same");
  flags.text("--current", "FLAGS", &current, "the policy that is there: '--draft model:FILE --draft-depth 2'");
  flags.text("--candidate", "FLAGS", &candidate, "the policy that is judged, of the same form");
  flags.section("freeze: what the manifest says");
  flags.text("--policy", "TEXT", &policy, "what the candidate's policy does, in words");
  flags.texts("--input", "NAME", &inputs, "what the policy reads, by the contract's names; repeatable");
  flags.texts("--policy-file", "FILE", &policy_files,
              "what else it is made of, frozen by hash; run: again; repeatable");
  flags.toggle("--attest", &attest, "you state what no program can check (docs/benchmark_judgement.md)");
  flags.number("--scale", &scale, "of all sizes in tokens: below 1 it is a screening, and nothing is promoted (1)");
  flags.text("--contract", "FILE", &contract, "other counts and gates: a screening too");
  flags.text("--label", "TEXT", &label, "for people: what this is about");
  flags.text("--class", "NAME", &idea, "the class of ideas that it belongs to, for the ledger");
  flags.texts("--cite", "ID", &cites, "a closure of that class that is known; repeatable");
  flags.section("run");
  flags.seed("--seed", &seed, "of both packs, drawn by somebody else (drawn as each pack is revealed)");
  model.declare_machine(flags);
  flags.section("Output");
  flags.text("-o,--out", "FILE|PACKET", &out, "the manifest, or the folder of the packet; it must not exist");
  flags.text("--ledger", "FILE", &ledger, "the ledger; default $XDG_DATA_HOME/stet/ledger.sqlite");
  flags.toggle("--json", &json, "run: print the packet's results instead of the text");
  flags.toggle("-q,--quiet", &model.quiet, "no progress");
  flags.footer(
      "freeze writes the manifest before any prompt exists; run makes the prompts, asks all arms, and uses the "
      "manifest up. The\nexit code is 0 for a verdict, 6 where tokens differ, 7 where the run proves nothing.");
}

void SpecEvalFlags::check_freeze() const {
  if (policy.empty()) fail(Code::kUsage, "--policy is missing: say in words what the candidate's policy does");
  if (inputs.empty())
    fail(Code::kUsage, "--input is missing: say what the policy reads; the contract allows: {}",
         fmt::join(spec_eval_contract().allowed_policy_inputs, ", "));
  if (!(scale > 0 && scale <= 1)) fail(Code::kUsage, "--scale is {}: choose a number above 0 and up to 1", scale);
  if (!argument.empty()) fail(Code::kUsage, "freeze takes no file: --out names the manifest");
  if (seed) fail(Code::kUsage, "--seed belongs to run: a manifest that knows its prompts is none");
  if (json) fail(Code::kUsage, "--json belongs to run: the manifest is JSON anyway");
}

void SpecEvalFlags::check_run() const {
  if (argument.empty()) fail(Code::kUsage, "stet spec-eval run needs the manifest that freeze wrote");
  const SpecEvalFlags none;
  if (!policy.empty() || !inputs.empty() || attest || scale != none.scale || !contract.empty() || !label.empty() ||
      !idea.empty() || !cites.empty())
    fail(Code::kUsage, "the manifest decides what stands under 'freeze': leave it out");
}

void SpecEvalFlags::check() const {
  if (action != "freeze" && action != "run" && action != "trace")
    fail(Code::kUsage, "{}; choose freeze, run or trace",
         action.empty() ? "stet spec-eval needs an action" : fmt::format("stet spec-eval has no action '{}'", action));
  if (action == "trace") {
    if (argument.empty()) fail(Code::kUsage, "stet spec-eval trace needs a packet");
    return;
  }
  model.check();
  if (current.empty() || candidate.empty())
    fail(Code::kUsage, "two policies are compared with the target alone: --current FLAGS and --candidate FLAGS");
  if (out.empty()) fail(Code::kUsage, "no {} given: --out", action == "run" ? "packet" : "manifest");
  action == "run" ? check_run() : check_freeze();
}

std::array<Options, 3> SpecEvalFlags::arm_options() const {
  const std::array<Options, 3> arms = {model.options, with_draft(model, "--current", current),
                                       with_draft(model, "--candidate", candidate)};
  if (arms[2].draft == "none") fail(Code::kUsage, "--candidate '{}' proposes nothing: give it a --draft", candidate);
  if (arms[1].draft == arms[2].draft && arms[1].draft_depth == arms[2].draft_depth)
    fail(Code::kUsage, "--current and --candidate are the same: '{}'", candidate);
  return arms;
}

std::vector<PolicyFile> SpecEvalFlags::hashed_policy_files() const {
  std::vector<PolicyFile> files;
  for (const std::string& path : policy_files) {
    const FileHash hash = file_hash(path);
    if (hash.sha256.empty()) fail(Code::kInput, "the policy file {} cannot be read", path);
    files.push_back({file_name(path), hash.bytes, hash.sha256});
  }
  return files;
}

EvalManifest SpecEvalFlags::manifest(const std::string& created) const {
  EvalManifest m;
  m.label = label;
  m.created = created;
  m.contract = contract.empty() ? spec_eval_contract() : parse_spec_eval_contract(read_text_file(contract), contract);
  m.scale = scale_as_written(scale);
  m.policy = policy;
  m.policy_inputs = inputs;
  m.contract.check_policy_inputs(inputs);
  m.policy_files = hashed_policy_files();
  m.attested = attest;
  m.bootstrap_seed = draw_seed();
  m.idea = idea;
  for (const std::string& id : cites) m.cites.push_back(static_cast<int64_t>(parse_whole("--cite", id, 1, INT64_MAX)));
  const std::array<Options, 3> options = arm_options();
  for (const EvalArm arm : kEvalArms) {
    const Options& o = options[static_cast<size_t>(arm)];
    const std::string identity = process_arm(this_program(), o, was_interrupted)->identity_json();
    check_context(m, identity);
    m.arms[static_cast<size_t>(arm)] = {what_of(o), frozen_identity(identity)};
  }
  return m;
}

EvalRun SpecEvalFlags::run() const {
  EvalRun run;
  run.manifest_json = read_text_file(argument);
  run.manifest = parse_manifest(run.manifest_json);
  const std::array<Options, 3> options = arm_options();
  for (const EvalArm arm : kEvalArms) {
    const std::string what = what_of(options[static_cast<size_t>(arm)]);
    if (what != run.manifest.arm(arm).what_json)
      fail(Code::kUsage, "the {} arm was frozen as {}, and here stands {}", eval_arm_name(arm),
           run.manifest.arm(arm).what_json, what);
  }
  run.open = [options](EvalArm arm) {
    return process_arm(this_program(), options[static_cast<size_t>(arm)], was_interrupted);
  };
  run.changed = [this, text = run.manifest_json, frozen = run.manifest.policy_files]() -> std::string {
    if (read_text_file(argument) != text) return "the manifest was changed";
    const std::vector<PolicyFile> files = hashed_policy_files();
    const auto same = [](const PolicyFile& a, const PolicyFile& b) { return a.name == b.name && a.sha256 == b.sha256; };
    if (std::equal(files.begin(), files.end(), frozen.begin(), frozen.end(), same)) return "";
    return fmt::format("the files of the policy ({} now, {} then) were changed", files.size(), frozen.size());
  };
  run.count = counter(model.options);
  run.seed = seed;
  run.packet = out;
  run.stop = was_interrupted;
  return run;
}

}  // namespace stet
