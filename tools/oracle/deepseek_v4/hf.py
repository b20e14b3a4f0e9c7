"""Hugging Face transformers' DeepseekV4ForCausalLM on given weights, in float32 as it comes and in true float64.

The configuration and the weights are those of a published checkpoint (checkpoint.load). transformers reads only some of
the published keys when the ratios are not 0, 4 and 128, so its configuration is written out here.
"""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import torch
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM, DynamicCache, modeling_rope_utils
from transformers.models.deepseek_v4 import modeling_deepseek_v4

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from double_torch import DoubleTorch  # noqa: E402

SLIDING, FINE, COARSE = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"

# Published name to transformers' module name, for what is not an expert; the first pattern that fits counts.
NAMES = (
    (r"^embed\.", "model.embed_tokens."),
    (r"^head\.", "lm_head."),
    (r"^norm\.", "model.norm."),
    (r"^hc_head_", "model.hc_head.hc_"),
    (r"\.hc_(attn|ffn)_(\w+)$", r".\1_hc.\2"),
    (r"\.attn_norm\.", ".input_layernorm."),
    (r"\.ffn_norm\.", ".post_attention_layernorm."),
    (r"\.attn\.indexer\.compressor\.norm\.", ".self_attn.compressor.indexer.kv_norm."),
    (r"\.attn\.indexer\.compressor\.wkv\.", ".self_attn.compressor.indexer.kv_proj."),
    (r"\.attn\.indexer\.compressor\.wgate\.", ".self_attn.compressor.indexer.gate_proj."),
    (r"\.attn\.indexer\.compressor\.ape", ".self_attn.compressor.indexer.position_bias"),
    (r"\.attn\.indexer\.weights_proj\.", ".self_attn.compressor.indexer.scorer.weights_proj."),
    (r"\.attn\.indexer\.wq_b\.", ".self_attn.compressor.indexer.q_b_proj."),
    (r"\.attn\.compressor\.norm\.", ".self_attn.compressor.kv_norm."),
    (r"\.attn\.compressor\.wkv\.", ".self_attn.compressor.kv_proj."),
    (r"\.attn\.compressor\.wgate\.", ".self_attn.compressor.gate_proj."),
    (r"\.attn\.compressor\.ape", ".self_attn.compressor.position_bias"),
    (r"\.attn\.attn_sink", ".self_attn.sinks"),
    (r"\.attn\.q_norm\.", ".self_attn.q_a_norm."),
    (r"\.attn\.kv_norm\.", ".self_attn.kv_norm."),
    (r"\.attn\.wkv\.", ".self_attn.kv_proj."),
    (r"\.attn\.w([qo]_[ab])\.", r".self_attn.\1_proj."),
    (r"\.ffn\.gate\.bias", ".mlp.gate.e_score_correction_bias"),
    (r"\.ffn\.gate\.", ".mlp.gate."),
    (r"\.ffn\.shared_experts\.w1\.", ".mlp.shared_experts.gate_proj."),
    (r"\.ffn\.shared_experts\.w2\.", ".mlp.shared_experts.down_proj."),
    (r"\.ffn\.shared_experts\.w3\.", ".mlp.shared_experts.up_proj."),
)


def config_of(published: dict) -> DeepseekV4Config:
    ratios, layers = published["compress_ratios"], published["num_hidden_layers"]
    hashed = published["num_hash_layers"]
    coarse = sorted({r for r in ratios} - {0, 4}) or [128]
    if len(coarse) > 1:
        raise ValueError("transformers has one coarse ratio a model")
    share = published["qk_rope_head_dim"] / published["head_dim"]
    main = {"rope_type": "default", "rope_theta": published["rope_theta"], "partial_rotary_factor": share}
    compress = {**main, "rope_theta": published["compress_rope_theta"]}
    if yarn := published["rope_scaling"]:
        compress |= {"rope_type": "yarn", "attention_factor": 1.0}
        compress |= {key: value for key, value in yarn.items() if key != "type"}
    same = (
        "vocab_size", "hidden_size", "moe_intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "head_dim", "q_lora_rank", "o_groups", "o_lora_rank", "n_routed_experts",
        "n_shared_experts", "num_experts_per_tok", "routed_scaling_factor", "scoring_func", "swiglu_limit",
        "sliding_window", "index_n_heads", "index_head_dim", "index_topk", "hc_mult", "hc_sinkhorn_iters", "hc_eps",
        "rms_norm_eps", "max_position_embeddings",
    )  # fmt: skip
    config = DeepseekV4Config(
        **{name: published[name] for name in same},
        layer_types=[SLIDING if r == 0 else FINE if r == 4 else COARSE for r in ratios[:layers]],
        mlp_layer_types=["hash_moe" if layer < hashed else "moe" for layer in range(layers)],
        compress_rates={FINE: 4, COARSE: coarse[0]},
        rope_parameters={"main": main, "compress": compress},
        partial_rotary_factor=share,
        attn_implementation="eager",
    )  # fmt: skip
    config._experts_implementation = "eager"
    return config


def module_name(name: str) -> str:
    for pattern, replacement in NAMES:
        renamed, found = re.subn(pattern, replacement, name)
        if found:
            return "model." + renamed if renamed.startswith("layers.") else renamed
    raise ValueError(f"no module for {name}")


def state_of(published: dict, weights: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """transformers' state: experts of a layer in one tensor, w1 above w3; it has no drafts."""
    plain = [name for name in weights if ".experts." not in name and not name.startswith("mtp.")]
    state = {module_name(name): torch.from_numpy(weights[name]) for name in plain}
    for layer in range(published["num_hidden_layers"]):
        part = lambda e, which: weights[f"layers.{layer}.ffn.experts.{e}.{which}.weight"]
        every = range(published["n_routed_experts"])
        gate_up = np.stack([np.concatenate([part(e, "w1"), part(e, "w3")]) for e in every])
        state[f"model.layers.{layer}.mlp.experts.gate_up_proj"] = torch.from_numpy(gate_up)
        down = np.stack([part(e, "w2") for e in every])
        state[f"model.layers.{layer}.mlp.experts.down_proj"] = torch.from_numpy(down)
    return state


def build(published: dict, weights: dict[str, np.ndarray], dtype: torch.dtype) -> DeepseekV4ForCausalLM:
    model = DeepseekV4ForCausalLM(config_of(published)).eval().to(dtype)
    model.load_state_dict(state_of(published, weights), strict=True)
    return model


def _prompt(model, tokens: list[int]) -> np.ndarray:
    return model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()


def _in_pieces(model, tokens: list[int], pieces: list[int]) -> np.ndarray:
    cache, rows, start = DynamicCache(config=model.config), [], 0
    for count in pieces:
        ids = torch.tensor([tokens[start : start + count]])
        rows.append(model(ids, cache=cache, use_cache=True).logits[0].numpy())
        start += count
    return np.concatenate(rows)


def logits(published, weights, tokens: list[int], dtype: torch.dtype, pieces: list[int] | None = None) -> np.ndarray:
    """Logits (n, vocab): of the whole prompt without a cache, or in pieces that go through transformers' cache."""
    run = lambda model: _in_pieces(model, tokens, pieces) if pieces else _prompt(model, tokens)
    if dtype == torch.float32:
        with torch.no_grad():
            return run(build(published, weights, dtype))
    with DoubleTorch(modeling_deepseek_v4, modeling_rope_utils), torch.no_grad():
        model = build(published, weights, dtype)
        for name, buffer in model.named_buffers():
            if "inv_freq" in name and torch.equal(buffer, buffer.to(torch.float32).to(buffer.dtype)):
                raise ValueError(f"{name} went through float32")
        return run(model)
