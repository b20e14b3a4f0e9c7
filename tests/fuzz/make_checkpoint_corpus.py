#!/usr/bin/env python3
"""Writes the seeds of fuzz_safetensors and fuzz_checkpoint.

  python3 tests/fuzz/make_checkpoint_corpus.py
"""

import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
LAYER = "model.layers.0."


def safetensors(header: object, data: bytes = b"", text: str = "") -> bytes:
    encoded = (text or json.dumps(header)).encode()
    return struct.pack("<Q", len(encoded)) + encoded + data


def tensor(dtype: str, shape: list, begin: int, end: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


FILES = {
    "plain": safetensors({"__metadata__": {"format": "pt"}, "a": tensor("F32", [2, 2], 0, 16), "b": tensor("BF16", [3], 16, 22)}, bytes(22)),
    "types": safetensors({"x": tensor("F8_E4M3", [4], 0, 4), "s": tensor("F8_E8M0", [1, 1], 4, 5), "q": tensor("I8", [2], 5, 7),
                          "t": tensor("I64", [1], 7, 15), "n": tensor("F4", [4], 15, 17)}, bytes(17)),
    "scaled": safetensors({"a.weight": tensor("F8_E4M3", [2, 128], 0, 256), "a.scale": tensor("F8_E8M0", [1, 1], 256, 257),
                           "b.weight": tensor("I8", [3, 32], 257, 353), "b.scale": tensor("F8_E8M0", [3, 2], 353, 359)}, bytes(range(120)) * 3)[:-1],
    "scaled-odd": safetensors({"a.weight": tensor("F8_E4M3", [2, 100], 0, 200), "a.scale": tensor("F8_E8M0", [1, 1], 200, 201)}, bytes(201)),
    "empty": safetensors({}),
    "scalar": safetensors({"one": tensor("F64", [], 0, 8), "none": tensor("U8", [0, 9], 8, 8)}, bytes(8)),
    "overlap": safetensors({"a": tensor("U8", [4], 0, 4), "b": tensor("U8", [4], 2, 6)}, bytes(6)),
    "overflow": safetensors({"a": tensor("F32", [1 << 62, 1 << 62], 0, 4)}, bytes(4)),
    "unknown": safetensors({"a": tensor("F128", [1], 0, 16)}, bytes(16)),
    "twice": safetensors(None, b"xx", '{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "a": 1}'),
    "deep": safetensors(None, b"", '{"a": ' + "[" * 70 + "]" * 70 + "}"),
}  # fmt: skip

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 320, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": [2, 3],
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1, "attention_factor": 1.1, "original_max_position_embeddings": 64}
DEEPSEEK = {
    "model_type": "deepseek_v4", "vocab_size": 4, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8,
    "qk_rope_head_dim": 4, "q_lora_rank": 16, "o_lora_rank": 16, "o_groups": 2, "sliding_window": 8, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 64, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "num_hash_layers": 1,
    "routed_scaling_factor": 1.5, "swiglu_limit": 10.0, "expert_dtype": "fp4", "rope_theta": 10000, "compress_rope_theta": 160000,
    "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1},
    "compress_ratios": [0, 4], "index_n_heads": 4, "index_head_dim": 8, "index_topk": 2, "hc_mult": 4, "hc_sinkhorn_iters": 20,
    "hc_eps": 1e-6,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "scale_fmt": "ue8m0",
                            "weight_block_size": [128, 128]},
}  # fmt: skip
TOKENIZER = {
    "added_tokens": [{"id": 3, "content": "<s>", "special": True}, {"id": 4, "content": "<t>", "special": False}], "normalizer": None,
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                                            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "b"}}, {"Sequence": {"id": "A"}}]},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]], "unk_token": "a"},
}  # fmt: skip

JSON = {
    "config": ("c", CONFIG), "config-llama3": ("c", {**CONFIG, "rope_scaling": LLAMA3, "rope_theta": 5e5}),
    "config-yarn": ("c", {**CONFIG, "rope_parameters": {**YARN, "rope_theta": 1e4}}), "config-other": ("c", {"model_type": "mamba"}),
    "config-fp8": ("c", DEEPSEEK), "config-awq": ("c", {**DEEPSEEK, "quantization_config": {"quant_method": "awq"}}),
    "config-quantised": ("c", {**CONFIG, "quantization_config": {"quant_method": "fp8"}}),
    "index": ("i", {"metadata": {"total_size": 5}, "weight_map": {LAYER + "mlp.up_proj.weight": "a.safetensors", "x": "b.safetensors"}}),
    "index-outside": ("i", {"weight_map": {"x": "../b.safetensors"}}), "tokenizer": ("t", TOKENIZER),
    "tokenizer-words": ("t", {**TOKENIZER, "model": {"type": "WordPiece"}}),
}  # fmt: skip


def main() -> None:
    for folder in ("safetensors", "checkpoint"):
        (CORPUS / folder).mkdir(exist_ok=True)
    for name, data in FILES.items():
        (CORPUS / "safetensors" / f"{name}.safetensors").write_bytes(data)
    for name, (kind, content) in JSON.items():
        (CORPUS / "checkpoint" / f"{name}.json").write_text(kind + json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    main()
