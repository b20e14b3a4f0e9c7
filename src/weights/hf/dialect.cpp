#include "weights/hf/dialect.h"

#include <algorithm>

#include "base/error.h"
#include "base/visible_text.h"

namespace stet {
namespace {

struct Family {
  std::string_view model_type;
  HfDialect (*read)(StrictObject& config);
};
constexpr Family kFamilies[] = {
#define DIALECT(id) {#id, read_hf_##id},
#include "weights/hf/dialects.def"
#undef DIALECT
};

// Keys of any configuration that cannot change the answer: about training, about other programs, or read elsewhere (the
// ids). So are those that begin with an underline, which transformers writes for itself.
constexpr std::string_view kHarmless[] = {
    "architectures",
    "attention_dropout",
    "bos_token_id",
    "chunk_size_feed_forward",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "id2label",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "is_llama_config",
    "label2id",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "return_dict",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "sep_token_id",
    "transformers.js_config",
    "transformers_version",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
};

std::string families() {
  std::string all;
  for (const Family& f : kFamilies) all += (all.empty() ? "" : ", ") + std::string(f.model_type);
  return all;
}

void skip_harmless(const Json& json, StrictObject& config) {
  for (const auto& [key, value] : json.items())
    if (key.starts_with('_') || std::ranges::find(kHarmless, key) != std::end(kHarmless)) config.any(key);
}

// Why a quantised checkpoint is not run; empty: it is, or is not quantised.
std::string quantised(StrictObject& config, HfDialect& dialect) {
  if (!hf_given(config, "quantization_config")) return "";
  const Json& q = config.any("quantization_config");
  const std::string method = q.is_object() && q.contains("quant_method") && q["quant_method"].is_string()
                                 ? q["quant_method"].get<std::string>()
                                 : "?";
  if (dialect.scaled && method == "fp8") {
    dialect.quantization = read_hf_quantization(config);
    const auto& family = std::get<std::string>(dialect.metadata.at("general.architecture").value);
    dialect.metadata[family + ".activations"] = {std::string("checkpoint")};
    return "";
  }
  return fmt::format("{}: the checkpoint is quantised ({}); of this family stet runs F32, F16{}", config.what(),
                     shown_name(method), dialect.scaled ? ", BF16 and what DeepSeek calls fp8" : " and BF16");
}

// Of a checkpoint that is not run: its tensors are shown by their own names.
void show_only(HfDialect& dialect, const std::string& refusal) {
  dialect.refusal = refusal;
  dialect.scaled = false;
  dialect.required.clear();
  dialect.computed.clear();
  dialect.translate = [](const std::string& name) { return HfName{name}; };
}

}  // namespace

const HfRename* hf_find(std::span<const HfRename> table, std::string_view theirs) {
  const auto found = std::ranges::find(table, theirs, &HfRename::theirs);
  return found == table.end() ? nullptr : &*found;
}

std::optional<std::pair<std::string_view, std::string_view>> hf_split_index(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view index = name.substr(0, dot);
  const bool digits = std::ranges::all_of(index, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || index.empty() || (index.size() > 1 && index[0] == '0')) return std::nullopt;
  return std::pair(index, name.substr(dot + 1));
}

uint32_t hf_count(StrictObject& config, std::string_view key) {
  return static_cast<uint32_t>(config.whole(key, 1, 1 << 30));
}

bool hf_given(StrictObject& config, std::string_view key) { return config.has(key) && !config.any(key).is_null(); }

void hf_require(StrictObject& config, std::string_view key, const Json& value) {
  if (hf_given(config, key) && config.any(key) != value)
    fail(Code::kUnsupported, "{}: {} is {}; stet runs {}", config.what(), key, shown_name(dump_line(config.any(key))),
         value.dump());
}

void hf_all_known(const StrictObject& config, std::string_view whose) {
  if (const std::string unknown = config.not_asked_for(); !unknown.empty())
    fail(Code::kUnsupported, "{}: sets {}, which stet does not know{}: it could change the answer", config.what(),
         shown_name(unknown), whose);
}

HfDialect read_hf_dialect(const Json& json, const std::string& file) {
  StrictObject config(json, file);
  const std::string type = config.text("model_type");
  for (const Family& family : kFamilies) {
    if (family.model_type != type) continue;
    HfDialect dialect = family.read(config);
    const std::string refusal = quantised(config, dialect);
    if (!refusal.empty()) show_only(dialect, refusal);
    skip_harmless(json, config);
    hf_all_known(config, fmt::format(" for '{}'", type));
    return dialect;
  }
  HfDialect other;
  other.metadata["general.architecture"] = {type};
  show_only(other, fmt::format("{}: model_type '{}' is not supported; as checkpoints of Hugging Face stet runs: {}",
                               file, shown_name(type), families()));
  return other;
}

}  // namespace stet
