// Model names: a file, the default model, or a synthetic one.
#pragma once

#include <memory>
#include <string>

#include "weights/tensor_source.h"

namespace stet {

inline constexpr const char* kDefaultModel = "smollm2-135m";
inline constexpr const char* kDefaultModelFile = "SmolLM2-135M-Instruct.Q4_1.gguf";

// Opens a model by name. cache_dir: where the default model lies below models/; empty: the user's. Throws Error(kInput) that says how
// to fetch it when the default model is not there, and what the readers throw.
// drafts: with the blocks of a checkpoint that propose tokens for it, where it has any.
std::unique_ptr<TensorSource> open_model(const std::string& name, const std::string& cache_dir, bool drafts = false);

// The draft that the model's own checkpoint holds blocks of, by its name on the command line; empty: none. Throws what reading
// the blocks' description throws.
std::string own_draft(const std::string& name, const std::string& cache_dir);

// Where the file of a model lies that is not synthetic; whether it is there is not checked.
std::string model_path(const std::string& name, const std::string& cache_dir);

}  // namespace stet
