// How a model family's checkpoint on Hugging Face says what a GGUF file of that family says: its configuration as
// metadata of the family's namespace, its tensors by the names that src/models asks for.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/strict_json.h"
#include "weights/tensor_source.h"

namespace stet {

// What a tensor of the checkpoint is.
struct HfName {
  std::string name;  // as src/models calls it; empty: it cannot change the answer and is left out
  uint32_t rotated_heads =
      0;  // its rows are this many heads with the pairs of a rotation half a head apart; 0: any rows
  bool whole_numbers = false;  // an I64 table of ids below 2^24: read as F32, which holds each of them exactly
};

struct HfDialect {
  Metadata metadata;
  std::string refusal;  // why stet does not run the family or this checkpoint, and only shows it; empty: it does
  // Nothing: the family has no such tensor.
  std::function<std::optional<HfName>(const std::string& theirs)> translate;
  std::vector<std::string> required;                   // theirs; whose absence would mean something else to src/models
  std::map<std::string, std::vector<float>> computed;  // tensors that a GGUF file stores and the configuration implies
};

// config: config.json. Every key of a family that stet runs is used, cannot change the answer, or is refused by name:
// throws Error(kUnsupported) for what stet does not run, Error(kInput) for contradictions. Of another family only the
// name is read.
HfDialect read_hf_dialect(const Json& config, const std::string& file);

// One family each, in <id>_dialect.cpp. The caller sees to keys that it did not ask for.
#define DIALECT(id) HfDialect read_hf_##id(StrictObject& config);
#include "weights/hf/dialects.def"
#undef DIALECT

// What the families share.
bool hf_given(StrictObject& config, std::string_view key);  // there and not null; counts as asked for
// Throws Error(kUnsupported) unless the key is absent, null or `value`.
void hf_require(StrictObject& config, std::string_view key, const Json& value);

}  // namespace stet
