// What the running process is and what it loaded, said by itself: for evidence (packets, /status).
//
// Every member is always there; what cannot be known is the string "unproven". No user, host or folder is named:
// libraries and models are file names with the SHA-256 of their content.
#pragma once

#include <string>

#include "stet/engine.h"

namespace stet {

// A JSON object on one line: program, version, build_id, commit, commit_state ("clean", "changed"), compiler,
// build_type, flags, numerics_version, libraries [{name, sha256}] (every file mapped as code, this program first),
// cpu_model, cpu_governor, cpu_max_khz, cpu_cores_online, memory_bytes (of the machine), kernel_release. Libraries are hashed at the first call (about
// 0.1 s) and again when others are mapped.
std::string process_identity();

// The same with what an engine runs on: model, architecture, synthetic, weight_formats [{format, bytes}], model_sha256, model_files [{name, bytes,
// sha256}], tokenizer_sha256, chat_template_sha256, pack, draft, draft_sha256, draft_depth, history_accelerated,
// profile, activations, isa, kv, replay, context, prompt_rows, threads, pin, lists_key, qualified, device. model_sha256
// is the hash of the one file; of a split model, of the lines "sha256  bytes  name" of its parts; of a synthetic model,
// "unproven". Hashing a file reads all of it, once per process; without hash_files these members are "unproven". May run beside a
// generation.
std::string engine_identity(const Engine& engine, bool hash_files);

}  // namespace stet
