#include "engine/model_names.h"

#include <sys/stat.h>

#include "base/error.h"
#include "device/cache_dir.h"
#include "models/draft_desc.h"
#include "weights/gguf.h"
#include "weights/hf/checkpoint.h"
#include "weights/synth.h"

namespace stet {

std::unique_ptr<TensorSource> open_model(const std::string& name, const std::string& cache_dir, bool drafts) {
  if (name.empty()) fail(Code::kUsage, "no model given: name a GGUF file, the folder of a checkpoint from Hugging Face, {}, or synth:GEOMETRY:FORMAT (-m)", kDefaultModel);
  if (SynthSource::is_name(name)) return open_synthetic(name, drafts);
  const std::string path = model_path(name, cache_dir);
  struct stat status;
  const bool there = stat(path.c_str(), &status) == 0;
  if (name == kDefaultModel && !there)
    fail(Code::kInput, "the default model {} is not in the cache ({}); run ./demo once, which fetches it", kDefaultModel, path);
  if (there && S_ISDIR(status.st_mode)) return HfCheckpoint::open(path, drafts);
  if (path.ends_with(".safetensors")) fail(Code::kUsage, "{}: name the folder of the checkpoint, not one of its files (-m)", path);
  return GgufFile::open(path);
}

std::string own_draft(const std::string& name, const std::string& cache_dir) {
  const ModelDesc desc = describe_model(*open_model(name, cache_dir, true));
  return desc.draft == nullptr ? "" : desc.draft->kind;
}

std::string model_path(const std::string& name, const std::string& cache_dir) {
  if (name != kDefaultModel) return name;
  return (cache_dir.empty() ? CacheDir::default_path() : cache_dir) + "/models/" + kDefaultModelFile;
}

}  // namespace stet
