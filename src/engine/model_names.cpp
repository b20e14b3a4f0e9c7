#include "engine/model_names.h"

#include <sys/stat.h>

#include "base/error.h"
#include "device/cache_dir.h"
#include "weights/gguf.h"
#include "weights/synth.h"

namespace stet {

std::unique_ptr<TensorSource> open_model(const std::string& name, const std::string& cache_dir) {
  if (name.empty()) fail(Code::kUsage, "no model given: name a GGUF file, {}, or synth:GEOMETRY:FORMAT (-m)", kDefaultModel);
  if (SynthSource::is_name(name)) return SynthSource::create(name);
  if (name != kDefaultModel) return GgufFile::open(name);
  const std::string path = (cache_dir.empty() ? CacheDir::default_path() : cache_dir) + "/models/" + kDefaultModelFile;
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    fail(Code::kInput, "the default model {} is not in the cache ({}); run ./demo once, which fetches it", kDefaultModel, path);
  return GgufFile::open(path);
}

}  // namespace stet
