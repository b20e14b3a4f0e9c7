"""Hugging Face transformers' LlamaForCausalLM on given weights, in float32 as it comes and in true float64.

A model is described by the dictionary that make_llama_models.py calls a variant.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, modeling_rope_utils
from transformers.models.llama import modeling_llama

from double_torch import DoubleTorch


def trained_context(spec: dict) -> int:
    rope = spec["rope"] or {}
    return int(rope["factor"] * rope["original_max_position_embeddings"]) if rope.get("rope_type") == "yarn" else 512


def rope_factors(spec: dict) -> np.ndarray:
    """The divisors that llama.cpp's converter stores for llama3 scaling: 1, a blend, or the factor."""
    rope, dim = spec["rope"], spec["head_dim"]
    wavelength = 2 * math.pi * spec["theta"] ** (np.arange(0, dim, 2) / dim)
    original = rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    smooth = np.clip((original / wavelength - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1.0 - smooth) / rope["factor"] + smooth)).astype(np.float32)


def build(spec: dict, values: dict[str, torch.Tensor], dtype: torch.dtype) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], intermediate_size=spec["ffn"],
        num_hidden_layers=spec["layers"], num_attention_heads=spec["heads"], num_key_value_heads=spec["kv_heads"],
        head_dim=spec["head_dim"], max_position_embeddings=trained_context(spec),
        rms_norm_eps=float(np.float32(spec["eps"])),
        tie_word_embeddings=spec["tied"], attn_implementation="eager",
        rope_parameters={"rope_theta": spec["theta"], **(spec["rope"] or {"rope_type": "default"})},
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    state = dict(values)
    if spec["tied"]:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model.to(dtype)


def logits(spec: dict, values: dict[str, torch.Tensor], tokens: list[int], dtype: torch.dtype) -> np.ndarray:
    ids = torch.tensor([tokens])
    if dtype == torch.float32:
        with torch.no_grad():
            return build(spec, values, dtype)(ids, use_cache=False).logits[0].numpy()
    with DoubleTorch(modeling_llama, modeling_rope_utils), torch.no_grad():
        model = build(spec, values, dtype)
        rotary = model.model.rotary_emb
        if (spec["rope"] or {}).get("rope_type") == "llama3":
            # The file carries the divisors in float32; the golden follows the file. They agree to one rounding.
            plain = spec["theta"] ** (-torch.arange(0, spec["head_dim"], 2, dtype=torch.float64) / spec["head_dim"])
            from_file = plain / torch.from_numpy(rope_factors(spec)).double()
            assert torch.allclose(from_file, rotary.inv_freq, rtol=2.0**-23, atol=0), "rope_freqs differ from llama3"
            rotary.inv_freq = from_file
        assert rotary.inv_freq.dtype == torch.float64
        return model(ids, use_cache=False).logits[0].numpy()
