#include "weights/synth_metadata.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace stet {
namespace {

constexpr std::string_view kControlTokens[] = {"<|bos|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"};
constexpr uint32_t kBytes = 256;
constexpr int64_t kTokenNormal = 1, kTokenControl = 3;

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// The GPT-2 byte alphabet: printable Latin-1 stands for itself, the other 68 bytes in order for U+0100 and on.
std::string byte_token(uint32_t byte) {
  const auto printable = [](uint32_t b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad); };
  uint32_t code = byte;
  if (!printable(byte)) {
    code = 0x100;
    for (uint32_t b = 0; b < byte; ++b) code += !printable(b);
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// general.file_type, a label.
uint64_t file_type(Format format) {
  switch (format) {
    case Format::f32:
      return 0;
    case Format::f16:
      return 1;
    case Format::bf16:
      return 32;
    case Format::q4_0:
      return 2;
    case Format::q4_1:
      return 3;
    case Format::q8_0:
      return 7;
    case Format::q6_k:
      return 18;
    case Format::e4m3:
      return 1024;  // of no type of GGUF's
    case Format::mxfp4:
      return 38;
  }
  STET_CHECK(false);
}

MetaValue strings(std::vector<std::string> values) {
  return {std::make_shared<const std::vector<std::string>>(std::move(values))};
}

}  // namespace

void add_synth_tokenizer(Metadata& m, uint32_t vocab) {
  STET_CHECK(vocab >= std::size(kControlTokens) + kBytes);
  std::vector<std::string> tokens(std::begin(kControlTokens), std::end(kControlTokens));
  for (uint32_t byte = 0; byte < kBytes; ++byte) tokens.push_back(byte_token(byte));
  while (tokens.size() < vocab) tokens.push_back(fmt::format("<synth_{:06}>", tokens.size()));
  MetaArray types(vocab, MetaValue{kTokenNormal});
  std::fill_n(types.begin(), std::size(kControlTokens), MetaValue{kTokenControl});
  m["tokenizer.ggml.model"] = {std::string("gpt2")};
  m["tokenizer.ggml.pre"] = {std::string("gpt-2")};
  m["tokenizer.ggml.tokens"] = strings(std::move(tokens));
  m["tokenizer.ggml.token_type"] = {std::make_shared<const MetaArray>(std::move(types))};
  m["tokenizer.ggml.merges"] = strings({});
  m["tokenizer.ggml.bos_token_id"] = {uint64_t{0}};
  m["tokenizer.ggml.eos_token_id"] = {uint64_t{3}};
  m["tokenizer.ggml.add_bos_token"] = {false};
  m["tokenizer.chat_template"] = {std::string(kChatTemplate)};
}

Metadata synth_metadata(const SynthGeometry& g, Format format) {
  Metadata m;
  const auto count = [&](const char* key, uint64_t value) { m[key] = {value}; };
  const auto number = [&](const char* key, float value) { m[key] = {static_cast<double>(value)}; };
  m["general.architecture"] = {std::string("llama")};
  m["general.name"] = {fmt::format("synthetic {} {}", g.name, traits(format).name)};
  m["stet.synthetic"] = {true};
  count("general.file_type", file_type(format));
  count("general.quantization_version", 2);
  count("llama.context_length", g.context);
  count("llama.embedding_length", g.hidden);
  count("llama.block_count", g.layers);
  count("llama.feed_forward_length", g.ffn);
  count("llama.rope.dimension_count", g.head_dim);
  count("llama.attention.head_count", g.heads);
  count("llama.attention.head_count_kv", g.kv_heads);
  count("llama.attention.key_length", g.head_dim);
  count("llama.attention.value_length", g.head_dim);
  count("llama.vocab_size", g.vocab);
  number("llama.rope.freq_base", static_cast<float>(g.rope_base));
  number("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  add_synth_tokenizer(m, g.vocab);
  return m;
}

}  // namespace stet
