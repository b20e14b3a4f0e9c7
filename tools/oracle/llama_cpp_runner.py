"""llama.cpp as an oracle of logits: a thin layer over llama-cpp-python's ctypes interface.

With a file of F32 tensors and a float32 KV cache this is llama.cpp's float path; with integer formats it is its integer
path (activations rounded to int8 blocks), with repacked weights where llama.cpp's build has kernels for them.
"""

from __future__ import annotations

import ctypes

import llama_cpp
import numpy as np

_KV = {"f32": llama_cpp.GGML_TYPE_F32, "f16": llama_cpp.GGML_TYPE_F16}
_SILENT = llama_cpp.llama_log_callback(lambda _level, _text, _user: None)


class LlamaCpp:
    """One model and one context of `n_ctx` tokens."""

    def __init__(self, path: str, n_ctx: int, threads: int = 1, kv: str = "f16", flash: bool = False,
                 repack: bool = True):  # fmt: skip
        llama_cpp.llama_log_set(_SILENT, None)
        llama_cpp.llama_backend_init()
        model_params = llama_cpp.llama_model_default_params()
        model_params.use_extra_bufts = repack
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), model_params)
        if not self.model:
            raise SystemExit(f"llama.cpp could not load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = n_ctx
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = _KV[kv]
        params.flash_attn_type = 1 if flash else 0
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit(f"llama.cpp could not make a context of {n_ctx} tokens for {path}")
        self.n_ctx = n_ctx
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.vocab = llama_cpp.llama_vocab_n_tokens(self.vocabulary)

    def tokenize(self, text: bytes) -> list[int]:
        """As llama-perplexity does: BOS where the model asks for it, control tokens not parsed."""
        buffer = (llama_cpp.llama_token * (len(text) + 8))()
        count = llama_cpp.llama_tokenize(self.vocabulary, text, len(text), buffer, len(buffer), True, False)
        if count < 0:
            raise SystemExit(f"llama.cpp needs {-count} tokens for {len(text)} bytes")
        return list(buffer[:count])

    def bos(self) -> int | None:
        """The token that each window begins with, or None where the model does not add one."""
        if not llama_cpp.llama_vocab_get_add_bos(self.vocabulary):
            return None
        return llama_cpp.llama_vocab_bos(self.vocabulary)

    def logits(self, tokens: list[int], first: int = 0) -> np.ndarray:
        """Logits (len(tokens) - first, vocab) float32 of one pass over an empty cache."""
        count = len(tokens)
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        batch = llama_cpp.llama_batch_init(count, 0, 1)
        batch.n_tokens = count
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i] = token, i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
            batch.logits[i] = i >= first
        status = llama_cpp.llama_decode(self.context, batch)
        llama_cpp.llama_batch_free(batch)
        if status != 0:
            raise SystemExit(f"llama_decode of {count} tokens failed with {status}")
        pointer = llama_cpp.llama_get_logits(self.context)
        pointer = ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(pointer, (count - first, self.vocab)).copy()

    def close(self) -> None:
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)
