#!/usr/bin/env python3
"""Makes the tiny random `llama` models of tests/golden/llama and the logits that an engine must reproduce.

For each variant: a GGUF file without a vocabulary, token ids, the logits of Hugging Face transformers in float64 and in
float32 at chosen positions, and tolerances derived from rounding errors (see llama_reference.py and the README that
this script writes). Nothing is random between runs: the generators are seeded by the variant's name.

  python tools/oracle/make_llama_models.py [--out tests/golden/llama] [--trials 64] [--only NAME]

Needs torch, transformers, gguf and numpy; the versions used are written into the README.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import zlib
from dataclasses import replace
from importlib.metadata import version

import gguf
import numpy as np
import torch
import transformers
from gguf.quants import dequantize, quantize

import golden_readme
import hf_llama
import llama_reference

Q = gguf.GGMLQuantizationType
TOLERANCE_FACTOR = 8.0  # deviations; a Gaussian exceeds them once in 1e15
FILE_TYPES = {Q.F32: 0, Q.F16: 1, Q.Q4_0: 2, Q.Q4_1: 3, Q.Q8_0: 7, Q.Q6_K: 18, Q.BF16: 32}


def variant(**changes) -> dict:
    base = {
        "hidden": 48, "heads": 4, "kv_heads": 4, "head_dim": 12, "ffn": 88, "layers": 2, "vocab": 101, "tied": False,
        "theta": 10000.0, "rope": None, "tokens": 150, "weights": Q.F16, "head": None, "vocab_key": True, "extra": {},
        "eps": 1e-4,
    }  # fmt: skip
    return {**base, **changes}


LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}

VARIANTS = {
    # Multi-head attention, a head of its own, float32; the file has no tokenizer key at all.
    "mha": variant(weights=Q.F32, vocab_key=False, hidden=32, head_dim=8, ffn=56),
    # Grouped queries (3 a group), embedding used as the head, N not a multiple of 16.
    "gqa_tied": variant(hidden=48, heads=6, kv_heads=2, head_dim=8, tied=True, ffn=68, vocab=131),
    # 300 positions: three chunks of attention, frequencies of theta 100000.
    "long": variant(hidden=32, heads=2, kv_heads=1, head_dim=16, ffn=56, tied=True, theta=100000.0, tokens=300),
    "linear": variant(hidden=40, heads=4, kv_heads=2, head_dim=10, ffn=72, eps=1e-3,
                      rope={"rope_type": "linear", "factor": 2.5}),
    "llama3": variant(hidden=56, heads=2, kv_heads=1, head_dim=32, ffn=50, theta=500000.0, rope=LLAMA3, tied=True),
    "yarn": variant(hidden=48, heads=2, kv_heads=2, head_dim=32, ffn=40, rope=YARN, tied=True),
    # Every YaRN parameter set, by the keys that carry transformers' values as they are.
    "yarn_explicit": variant(hidden=48, heads=2, kv_heads=1, head_dim=32, ffn=40, tied=True,
                             rope={**YARN, "attention_factor": 1.25, "beta_fast": 4.0, "beta_slow": 0.5}),
    # The older key: rope.scaling.attn_factor multiplies YaRN's own 1 + 0.1 ln(factor).
    "yarn_attn_factor": variant(hidden=32, heads=2, kv_heads=1, head_dim=16, ffn=48, tied=True,
                                rope={**YARN, "attention_factor": 1.125 * (1 + 0.1 * math.log(4.0))},
                                extra={"rope.scaling.attn_factor": 1.125}),
    # head_dim is not hidden / heads.
    "key_length_64": variant(hidden=56, heads=2, kv_heads=1, head_dim=64, ffn=64, weights=Q.BF16, layers=1),
    "key_length_128": variant(hidden=40, heads=2, kv_heads=1, head_dim=128, ffn=64, layers=1),
    # K above 128 and not a multiple of it.
    "odd_sizes": variant(hidden=136, heads=2, kv_heads=1, head_dim=20, ffn=135, layers=1, vocab=67, tied=True),
    # Integer formats: the float path over dequantised weights.
    "q8_0": variant(hidden=96, heads=3, kv_heads=1, head_dim=32, ffn=96, weights=Q.Q8_0, vocab=103, layers=1),
    "q4_0": variant(hidden=160, heads=5, kv_heads=1, head_dim=32, ffn=224, weights=Q.Q4_0, tied=True, layers=1),
    "q4_1": variant(hidden=96, heads=3, kv_heads=1, head_dim=32, ffn=160, weights=Q.Q4_1, head=Q.Q8_0, tied=True,
                    layers=1),
    "q6_k": variant(hidden=256, heads=2, kv_heads=1, head_dim=64, ffn=32, weights=Q.Q4_0, head=Q.Q6_K, layers=1),
}  # fmt: skip


def random_q6_k(random: np.random.Generator, rows: int, columns: int, deviation: float) -> np.ndarray:
    """Q6_K blocks of random codes and scales; no encoder is needed to have every bit pattern."""
    blocks = random.integers(0, 256, size=(rows, columns // 256, 210), dtype=np.uint8)
    scale = np.float16(deviation / (18.5 * 73.0))  # deviations of a 6-bit code and of an 8-bit scale
    blocks[..., 208:210] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
    return blocks.reshape(rows, -1)


class Weights:
    """Draws weights, keeps for each tensor its GGUF bytes and the exact values they stand for (PyTorch's order)."""

    def __init__(self, spec: dict, seed: int):
        self.spec, self.random = spec, np.random.default_rng(seed)
        self.stored: dict[str, tuple[np.ndarray, Q]] = {}
        self.values: dict[str, torch.Tensor] = {}

    def permute(self, w: np.ndarray) -> np.ndarray:
        """Rows of q and k as GGUF orders them: halves (i, i + d/2) of a head become neighbours (2i, 2i + 1)."""
        heads = w.shape[0] // self.spec["head_dim"]
        return w.reshape(heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)

    def unpermute(self, w: np.ndarray) -> np.ndarray:
        heads = w.shape[0] // self.spec["head_dim"]
        return w.reshape(heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)

    def vector(self, name: str, gguf_name: str) -> None:
        value = (1.0 + 0.25 * self.random.standard_normal(self.spec["hidden"])).astype(np.float32)
        self.stored[gguf_name] = (value, Q.F32)
        self.values[name] = torch.from_numpy(value)

    def matrix(self, name: str, gguf_name: str, rows: int, columns: int, deviation: float, kind: Q) -> None:
        if kind == Q.Q6_K:
            data = random_q6_k(self.random, rows, columns, deviation)
        else:
            data = (deviation * self.random.standard_normal((rows, columns))).astype(np.float32)
            rotated = gguf_name.endswith(("attn_q.weight", "attn_k.weight"))
            data = quantize(self.permute(data) if rotated else data, kind)
        value = dequantize(data, kind).astype(np.float32).reshape(rows, columns)
        if gguf_name.endswith(("attn_q.weight", "attn_k.weight")):
            value = self.unpermute(value)
        self.stored[gguf_name] = (data, kind)
        self.values[name] = torch.from_numpy(np.ascontiguousarray(value))

    def draw(self) -> None:
        s = self.spec
        hidden, ffn, kind = s["hidden"], s["ffn"], s["weights"]
        head_kind = s["head"] or kind
        q_rows, kv_rows = s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"]
        # Scores with a deviation near 2 make attention neither uniform nor one-hot; logits get one near 3.
        self.matrix("model.embed_tokens.weight", "token_embd.weight", s["vocab"], hidden, 3 / math.sqrt(hidden)
                    if s["tied"] else 1.0, head_kind if s["tied"] else kind)
        for i in range(s["layers"]):
            hf, file = f"model.layers.{i}", f"blk.{i}"
            self.vector(f"{hf}.input_layernorm.weight", f"{file}.attn_norm.weight")
            for part, out, inp, gain in (
                ("q", q_rows, hidden, 1.5), ("k", kv_rows, hidden, 1.5), ("v", kv_rows, hidden, 1.0),
            ):  # fmt: skip
                self.matrix(f"{hf}.self_attn.{part}_proj.weight", f"{file}.attn_{part}.weight", out, inp,
                            gain / math.sqrt(inp), kind)
            self.matrix(f"{hf}.self_attn.o_proj.weight", f"{file}.attn_output.weight", hidden, q_rows,
                        1.0 / math.sqrt(q_rows), kind)
            self.vector(f"{hf}.post_attention_layernorm.weight", f"{file}.ffn_norm.weight")
            for part, out, inp in (("gate", ffn, hidden), ("up", ffn, hidden), ("down", hidden, ffn)):
                self.matrix(f"{hf}.mlp.{part}_proj.weight", f"{file}.ffn_{part}.weight", out, inp,
                            1.0 / math.sqrt(inp), kind)
        self.vector("model.norm.weight", "output_norm.weight")
        if not s["tied"]:
            self.matrix("lm_head.weight", "output.weight", s["vocab"], hidden, 3 / math.sqrt(hidden), head_kind)


def write_gguf(path: str, name: str, spec: dict, stored: dict[str, tuple[np.ndarray, Q]]) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(f"stet golden {name}")
    writer.add_file_type(FILE_TYPES[spec["weights"]])
    if spec["vocab_key"]:
        writer.add_tokenizer_model("none")
    writer.add_vocab_size(spec["vocab"])
    writer.add_context_length(hf_llama.trained_context(spec))
    writer.add_embedding_length(spec["hidden"])
    writer.add_block_count(spec["layers"])
    writer.add_feed_forward_length(spec["ffn"])
    writer.add_head_count(spec["heads"])
    writer.add_head_count_kv(spec["kv_heads"])
    writer.add_layer_norm_rms_eps(spec["eps"])
    writer.add_rope_dimension_count(spec["head_dim"])
    writer.add_rope_freq_base(spec["theta"])
    if spec["head_dim"] * spec["heads"] != spec["hidden"]:
        writer.add_key_length(spec["head_dim"])
        writer.add_value_length(spec["head_dim"])
    rope = spec["rope"] or {"rope_type": "default"}
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if "beta_fast" in rope:
            writer.add_rope_scaling_yarn_attn_factor(rope["attention_factor"])
            writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    for key, value in spec["extra"].items():
        writer.add_float32(f"llama.{key}", value)
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", hf_llama.rope_factors(spec))
    for tensor_name, (data, kind) in stored.items():
        writer.add_tensor(tensor_name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tolerances(path: str, spec: dict, tokens: list[int], positions: list[int], trials: int) -> dict[str, float]:
    """Per kind of arithmetic: TOLERANCE_FACTOR times the largest deviation of a logit, in logits."""
    model = llama_reference.load(path)
    kinds = {"f32": {}, "f32_kv_f16": {"kv_f16": True}, "hf_float32": {"float32_angles": True}}
    if spec["weights"] not in (Q.F32, Q.F16, Q.BF16):
        kinds["a8_kv_f16"] = {"kv_f16": True, "a8": True}
    respond = lambda options: llama_reference.response(model, tokens, positions, trials, **options)
    return {kind: TOLERANCE_FACTOR * respond(options) for kind, options in kinds.items()}


def mutants(model: llama_reference.Llama, spec: dict) -> dict[str, llama_reference.Llama]:
    """Engines that got one thing wrong; each must miss the tolerance, or the golden proves nothing about it."""
    plain = spec["theta"] ** (-np.arange(0, model.head_dim, 2) / model.head_dim)
    rows = lambda name, order: {n: order(w) if n.endswith(name) else w for n, w in model.weights.items()}
    halves = lambda w: w.reshape(-1, model.head_dim // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
    turned = lambda w: w.reshape(model.kv_heads, model.head_dim, -1)[::-1].reshape(w.shape)
    wrong = {
        "epsilon": replace(model, eps=model.eps * 0.1),
        "halves rotated": replace(model, weights=rows(("attn_q.weight", "attn_k.weight"), halves)),
    }
    if spec["rope"]:
        wrong["frequencies unscaled"] = replace(model, frequencies=plain)
    if model.rope_scale != 1.0:
        wrong["rotation not magnified"] = replace(model, rope_scale=1.0)
    if model.kv_heads > 1:
        wrong["KV heads swapped"] = replace(model, weights=rows("attn_v.weight", turned))
    if "beta_fast" in (spec["rope"] or {}):
        blend, _ = llama_reference.yarn(lambda key, default=None: default, model.head_dim, spec["theta"],
                                        YARN["factor"], plain, YARN["original_max_position_embeddings"])
        wrong["default YaRN betas"] = replace(model, frequencies=blend)
    return wrong


def weakest_mutant(path: str, spec: dict, tokens: list[int], positions: list[int], double, bound: float) -> dict:
    model = llama_reference.load(path)
    error = {
        name: float(np.abs(llama_reference.forward(wrong, tokens)[positions] - double).max()) / bound
        for name, wrong in mutants(model, spec).items()
    }
    name = min(error, key=error.get)
    if error[name] < 2.0:
        raise SystemExit(f"{path}: the mutant '{name}' stays within {error[name]:.2g} of the tolerance")
    return {"mutant": name, "error_over_tolerance": float(f"{error[name]:.3g}")}


def make(name: str, spec: dict, out: str, trials: int) -> None:
    seed = zlib.crc32(name.encode())
    weights = Weights(spec, seed)
    weights.draw()
    path = os.path.join(out, f"{name}.gguf")
    write_gguf(path, name, spec, weights.stored)

    tokens = [int(t) for t in np.random.default_rng(seed + 1).integers(0, spec["vocab"], spec["tokens"])]
    last = spec["tokens"] - 1
    positions = sorted({p for p in (0, 1, 16, 63, 127, 128, 129, 256, last) if p <= last})
    double = hf_llama.logits(spec, weights.values, tokens, torch.float64)[positions]
    single = hf_llama.logits(spec, weights.values, tokens, torch.float32)[positions]
    reference = llama_reference.forward(llama_reference.load(path), tokens)[positions]
    disagreement = float(np.abs(reference - double).max())
    if disagreement > 1e-9:
        raise SystemExit(f"{name}: the file and the transformers model differ by {disagreement:.3g}")

    bound = tolerances(path, spec, tokens, positions, trials)
    weakest = weakest_mutant(path, spec, tokens, positions, double, bound["f32"])
    observed = float(np.abs(single - double).max())
    np.save(os.path.join(out, f"{name}.logits.npy"), double)
    np.save(os.path.join(out, f"{name}.logits_f32.npy"), single)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    record = {
        "name": name,
        "gguf_sha256": digest,
        "tokens": tokens,
        "positions": positions,
        "tolerance": {kind: float(f"{value:.3g}") for kind, value in bound.items()},
        "formula": f"{TOLERANCE_FACTOR:g} * largest standard deviation of a logit, {trials} draws, "
        "errors as in tools/oracle/llama_reference.py",
        "largest_logit": float(f"{np.abs(double).max():.4g}"),
        "transformers_float32_error": float(f"{observed:.3g}"),
        "weakest_mutant": weakest,
        "transformers_float32_error_over_tolerance": float(f"{observed / bound['hf_float32']:.3g}"),
    }
    with open(os.path.join(out, f"{name}.tokens.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
        file.write("\n")
    print(name, os.path.getsize(path), record["tolerance"], "hf f32", observed, f"ref {disagreement:.1g}", flush=True)


def table(out: str) -> list[str]:
    """Versions, and a line for each model that is there."""
    files = [os.path.join(out, f"{name}.tokens.json") for name in VARIANTS]
    records = [json.loads(open(name, encoding="utf-8").read()) for name in files if os.path.exists(name)]
    lines = [
        f"Made with transformers {transformers.__version__}, torch {torch.__version__}, gguf {version('gguf')}, "
        f"numpy {np.__version__}, Python {sys.version.split()[0]}.",
        "",
        "| model | f32 | f16 KV | int8 activations | transformers float32: error / f32 | weakest mutant: error / f32 |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for record in records:
        bound, weakest = record["tolerance"], record["weakest_mutant"]
        lines.append(
            f"| {record['name']} | {bound['f32']:.3g} | {bound['f32_kv_f16']:.3g} | {bound.get('a8_kv_f16', '-')} "
            f"| {record['transformers_float32_error'] / bound['f32']:.2f} "
            f"| {weakest['mutant']}: {weakest['error_over_tolerance']:.3g} |"
        )
    return lines


def main() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(root, "tests", "golden", "llama"))
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--only", choices=VARIANTS)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    torch.set_num_threads(1)
    for name, spec in VARIANTS.items():
        if args.only in (None, name):
            make(name, spec, args.out, args.trials)
    golden_readme.write_table(args.out, table(args.out))


if __name__ == "__main__":
    main()
