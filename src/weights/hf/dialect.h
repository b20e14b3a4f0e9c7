// How a model family's checkpoint on Hugging Face says what a GGUF file of that family says: its configuration as
// metadata of the family's namespace, its tensors by the names that src/models asks for.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strict_json.h"
#include "weights/hf/quantization.h"
#include "weights/tensor_source.h"

namespace stet {

// What a tensor of the checkpoint is.
struct HfName {
  std::string name;  // as src/models calls it; empty: it cannot change the answer and is left out
  uint32_t rotated_heads =
      0;               // its rows are this many heads with the pairs of a rotation half a head apart; 0: any rows
  bool draft = false;  // of a block that proposes tokens: left out unless such a draft is asked for
  bool whole_numbers = false;  // an I64 table of ids below 2^24: read as F32, which holds each of them exactly
  bool expert = false;         // of an expert that a router chooses
};

struct HfDialect {
  Metadata metadata;
  std::string refusal;  // why stet does not run the family or this checkpoint, and only shows it; empty: it does
  bool scaled = false;  // its family may store matrices as codes and scales (scaled_matrix.h)
  std::optional<HfQuantization> quantization;  // read_hf_dialect() sets it for such a family
  // Nothing: the family has no such tensor. Scales are not asked for: they are named after their codes.
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

// A key or a name of a checkpoint, and what src/models calls it.
struct HfRename {
  std::string_view theirs, ours;
};
// The entry of a table for `theirs`; null: it has none.
const HfRename* hf_find(std::span<const HfRename> table, std::string_view theirs);
// "12.mlp.up_proj.weight" as {"12", "mlp.up_proj.weight"}; nothing: it does not begin with a number as one writes it.
std::optional<std::pair<std::string_view, std::string_view>> hf_split_index(std::string_view name);
// A number of things: from 1 to 2^30.
uint32_t hf_count(StrictObject& config, std::string_view key);
bool hf_given(StrictObject& config, std::string_view key);  // there and not null; counts as asked for
// Throws Error(kUnsupported) unless the key is absent, null or `value`.
void hf_require(StrictObject& config, std::string_view key, const Json& value);
// Throws Error(kUnsupported) that names the first key that nobody asked for. whose: " for 'llama'", or nothing.
void hf_all_known(const StrictObject& config, std::string_view whose = "");

}  // namespace stet
