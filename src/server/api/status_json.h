// What the server says of itself.
#pragma once

#include <string>

#include "server/loop/generation_loop.h"

namespace stet {

// /status (docs/api.md). engine: null while it is loaded. identity: engine_identity(), or empty while that is not
// known.
std::string status_json(const LoopStatus& status, const Engine* engine, const std::string& identity,
                        double uptime_seconds);

// /health: "ok", "loading" with how far it is, "failed", "stopping".
std::string health_json(const LoopStatus& status);

// /v1/models and /v1/models/ID.
std::string models_json(const Engine& engine, const std::string& model_id, int64_t created);
std::string model_json(const Engine& engine, const std::string& model_id, int64_t created);

// 16 hex digits of a hash of all that tokens depend on apart from the request: weights, numerics, KV format.
std::string fingerprint(const EngineInfo& info);

}  // namespace stet
