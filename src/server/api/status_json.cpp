#include "server/api/status_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/build_id.h"
#include "base/hash.h"
#include "base/numerics_version.h"
#include "engine/file_hashes.h"

namespace stet {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string dumped(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

std::string_view state_of(const LoopStatus& status) {
  if (status.load.failed) return "failed";
  if (status.stopping) return "stopping";
  return status.load.ready ? "ready" : "loading";
}

OrderedJson load_of(const LoadStatus& load) {
  OrderedJson out;
  out["phase"] = load.phase;
  out["done"] = load.done;
  out["total"] = load.total;
  if (load.failed) out["error"] = load.error;
  return out;
}

// What engine_identity() says, and what is of use to people beside it. Names as in `stet run --json` where that has
// them.
OrderedJson identity_of(const EngineInfo& info, uint32_t vocab, const std::string& known) {
  OrderedJson out = known.empty() ? OrderedJson{{"model_sha256", "unproven"}} : OrderedJson::parse(known);
  out["model"] = file_name(info.model_name);  // where files are is nobody's business
  out["architecture"] = info.architecture;
  out["synthetic"] = info.synthetic;
  out["profile"] = info.profile;
  out["numerics_version"] = kNumericsVersion;
  out["build_id"] = build_id();
  out["activations"] = info.activations;
  out["kv"] = info.kv;
  out["context"] = info.context;
  out["trained_context"] = info.trained_context;
  out["vocab"] = vocab;
  out["isa"] = info.isa;
  out["threads"] = info.threads;
  out["threads_why"] = info.threads_why;
  out["pack"] = info.pack_key;
  out["weights"] = info.weights_place;
  out["weight_bytes"] = info.weight_bytes;
  out["kv_bytes"] = info.kv_bytes;
  out["memory_why"] = info.memory_why;
  out["draft"] = info.draft.substr(0, info.draft.find(':'));
  out["draft_depth"] = info.draft_depth;
  out["history_accelerated"] = info.history_accelerated;
  out["qualified"] = info.qualified;
  out["qualified_why"] = info.qualified_why;
  out["fingerprint"] = fingerprint(info);
  return out;
}

OrderedJson active_of(const LoopStatus& status) {
  if (!status.active) return nullptr;
  return {{"stage", stage_name(*status.active)},
          {"prompt_tokens", status.active_prompt_tokens},
          {"output_tokens", status.active_output_tokens},
          {"seconds", status.active_seconds}};
}

OrderedJson last_of(const std::optional<Generation>& last) {
  if (!last) return nullptr;
  uint64_t output = 0;
  for (const Cycle& cycle : last->cycles) output += cycle.emitted;
  OrderedJson out;
  out["finish"] = finish_name(last->finish);
  out["prompt_tokens"] = last->prompt_tokens;
  out["cached_tokens"] = last->cached_tokens;
  out["output_tokens"] = output;
  out["first_token_seconds"] = last->first_token_seconds;
  out["total_seconds"] = last->total_seconds;
  out["prefill_tokens_per_second"] = last->prefill_tokens_per_second();
  out["decode_tokens_per_second"] = last->decode_tokens_per_second();
  out["cycles"] = last->cycles.size();
  out["tokens_per_cycle"] = last->tokens_per_cycle();
  out["acceptance_by_position"] = last->acceptance_by_position();
  return out;
}

OrderedJson totals_of(const LoopStatus& s) {
  return {{"finished", s.finished},
          {"cancelled", s.cancelled},
          {"failed", s.failed},
          {"refused", s.refused},
          {"prompt_tokens", s.prompt_tokens},
          {"cached_prompt_tokens", s.cached_prompt_tokens},
          {"output_tokens", s.output_tokens},
          {"cycles", s.cycles},
          {"proposed", s.proposed},
          {"accepted", s.accepted}};
}

OrderedJson model_object(const Engine& engine, const std::string& model_id, int64_t created) {
  const EngineInfo& info = engine.info();
  OrderedJson out;
  out["id"] = model_id;
  out["object"] = "model";
  out["created"] = created;
  out["owned_by"] = "stet";
  out["root"] = file_name(info.model_name);
  out["max_model_len"] = info.context;
  out["meta"] = {{"n_ctx", info.context},     {"n_ctx_train", info.trained_context},
                 {"n_vocab", engine.vocab()}, {"architecture", info.architecture},
                 {"size", info.weight_bytes}, {"synthetic", info.synthetic}};
  return out;
}

}  // namespace

std::string status_json(const LoopStatus& status, const Engine* engine, const std::string& identity,
                        double uptime_seconds) {
  OrderedJson out;
  out["state"] = state_of(status);
  out["identity"] = engine != nullptr ? identity_of(engine->info(), engine->vocab(), identity) : OrderedJson(nullptr);
  if (!status.load.ready) out["load"] = load_of(status.load);
  out["active"] = active_of(status);
  out["queue"] = {{"waiting", status.waiting}, {"limit", status.queue_limit}};
  out["cache"] = {{"tokens", status.cached_tokens}, {"context", status.context}};
  out["epoch"] = status.epoch;
  out["uptime_seconds"] = uptime_seconds;
  out["totals"] = totals_of(status);
  out["last"] = last_of(status.last);
  return dumped(out);
}

std::string health_json(const LoopStatus& status) {
  const std::string_view state = state_of(status);
  OrderedJson out;
  out["status"] = state == "ready" ? "ok" : state;
  if (!status.load.ready) out.update(load_of(status.load));
  return dumped(out);
}

std::string model_json(const Engine& engine, const std::string& model_id, int64_t created) {
  return dumped(model_object(engine, model_id, created));
}

std::string models_json(const Engine& engine, const std::string& model_id, int64_t created) {
  OrderedJson out;
  out["object"] = "list";
  out["data"] = OrderedJson::array({model_object(engine, model_id, created)});
  return dumped(out);
}

std::string fingerprint(const EngineInfo& info) {
  const std::string all =
      fmt::format("{}\n{}\n{}\n{}\n{}", info.pack_key, info.profile, kNumericsVersion, info.activations, info.kv);
  return sha256_hex(all.data(), all.size()).substr(0, 16);
}

}  // namespace stet
