// tokenizer.json (the `tokenizers` library) as the metadata tokenizer.ggml.* that src/text reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/strict_json.h"
#include "weights/tensor_source.h"

namespace stet {

// Ids that config.json and generation_config.json name.
struct HfTokenIds {
  std::optional<uint64_t> bos, pad;
  std::vector<uint64_t> eos;
};

// Adds the vocabulary to metadata: byte-level BPE with a pre-tokenizer that src/text has, recognised by what
// tokenizer.json says it does. Rows of embeddings behind the last token become UNUSED tokens. Throws Error(kInput) for
// a file that contradicts itself, and Error(kUnsupported), by name, for what src/text does not do.
void add_hf_tokenizer(const LargeJson& tokenizer, const std::string& file, uint64_t vocab_size, const HfTokenIds& ids,
                      Metadata& metadata);

// The name in tokenizer.ggml.pre of what the member pre_tokenizer does; empty: none that stet has.
std::string hf_pre_tokenizer_name(const LargeJson& pre_tokenizer, bool ignore_merges);

}  // namespace stet
