// The metadata of a synthetic model: what a llama GGUF file of its geometry carries, with a vocabulary of single bytes.
#pragma once

#include "weights/synth.h"

namespace stet {

// A vocabulary and a chat template. Tokens: 0 <|bos|>, 1 <|endoftext|>, 2 <|im_start|>, 3 <|im_end|> (control), 4..259
// the bytes 0..255 in the GPT-2 byte alphabet, then <synth_000260> and so on up to the vocabulary's size. No merges: a
// text becomes its bytes.
void add_synth_tokenizer(Metadata& metadata, uint32_t vocab);

Metadata synth_metadata(const SynthGeometry& geometry, Format format);

}  // namespace stet
