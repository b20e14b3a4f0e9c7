// Feeds arbitrary JSON to what reads the files beside the weights of a checkpoint: the first byte says which file it
// is. Anything but metadata or a clean refusal is a bug.
#include <cstdlib>

#include "base/error.h"
#include "base/strict_json.h"
#include "weights/hf/dialect.h"
#include "weights/hf/shards.h"
#include "weights/hf/tokenizer.h"

namespace {

void use_checkpoint(char kind, std::string_view text) {
  if (kind == 'c') {
    const stet::HfDialect dialect = stet::read_hf_dialect(stet::parse_json(text, "fuzz"), "fuzz");
    for (const char* name : {"lm_head.weight", "model.layers.0.self_attn.q_proj.weight", "layers.0.attn.wkv.weight",
                             "mtp.0.ffn.experts.1.w2.weight", "x"})
      (void)dialect.translate(name);
    for (const char* dtype : {"I8", "F8_E4M3", "BF16"})
      for (const bool expert : {false, true}) (void)stet::hf_dtype_problem(dialect.quantization, expert, dtype);
  } else if (kind == 'i') {
    if (stet::read_hf_index(stet::parse_large_json(text, "fuzz"), "fuzz").shards.empty()) std::abort();
  } else {
    stet::Metadata metadata;
    stet::add_hf_tokenizer(stet::parse_large_json(text, "fuzz"), "fuzz", 1000, {.bos = 1, .pad = {}, .eos = {2}},
                           metadata);
    if (!metadata.contains("tokenizer.ggml.tokens")) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    use_checkpoint(static_cast<char>(data[0]), {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const stet::Error& e) {
    // The file's fault, never ours.
    if (e.code() != stet::Code::kInput && e.code() != stet::Code::kUnsupported) std::abort();
  }
  return 0;
}
