#!/usr/bin/env python3
"""Makes the tiny random DeepSeek V4 models of tests/golden/deepseek_v4 and what an engine must reproduce of them.

For each variant: a checkpoint with the published names, token ids, transformers' logits in float64 and in float32, and
the reference's logits and streams in mode checkpoint (reference.py). Nothing is written unless transformers and
reference.py agree in float64 to 1e-9: of the whole prompt, and of single tokens and pieces through transformers' cache.
Nothing is random between runs: generators are seeded by the variant's name.

  python tools/oracle/deepseek_v4/make_models.py [--out tests/golden/deepseek_v4] [--trials 64] [--only NAME]

Needs torch, transformers and numpy; the versions used are written into the README.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import zlib

import numpy as np
import torch
import transformers

import cache_f16
import checkpoint
import hf
import mutants
import reference
import rounding_errors

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import golden_readme  # noqa: E402

TOLERANCE_FACTOR = 8.0  # deviations; a Gaussian exceeds them once in 1e15
LEAST_MARGIN = 1e-3  # of a choice in mode f32: float32 errors are some 1e-5
PUBLISHED_KEYS = {
    "torch_dtype": "bfloat16",
    "expert_dtype": "fp4",
    "quantization_config": {
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "scale_fmt": "ue8m0",
        "weight_block_size": [128, 128],
    },
}  # fmt: skip


def variant(tokens: int, published: bool = False, **changes) -> dict:
    """tokens: length of the prompt; published: keep the weights in the published formats, not in float32."""
    config = {
        "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "torch_dtype": "float32",
        "vocab_size": 61, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": False, "hidden_size": 24,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 24,
        "qk_rope_head_dim": 8, "q_lora_rank": 16, "o_lora_rank": 16, "o_groups": 2, "sliding_window": 8,
        "rms_norm_eps": 1e-6, "attention_bias": False, "hidden_act": "silu", "max_position_embeddings": 32768,
        "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "num_hash_layers": 2, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": True,
        "routed_scaling_factor": 1.5, "swiglu_limit": 1.5, "rope_theta": 10000.0, "compress_rope_theta": 1000.0,
        "rope_scaling": {
            "type": "yarn", "factor": 8, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
        },
        "compress_ratios": [0, 4, 8, 4], "index_n_heads": 4, "index_head_dim": 16, "index_topk": 2,
        "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "num_nextn_predict_layers": 0,
    }  # fmt: skip
    config |= PUBLISHED_KEYS if published else {}
    return {"config": {**config, **changes}, "tokens": tokens, "published": published}


VARIANTS = {
    # Every kind of layer: a window, fine and coarse entries, hashed and chosen experts.
    "mixed": variant(60),
    # No YaRN, three heads a group, a list of keys that is longer than the 64 of a block, a Sinkhorn far from its limit.
    "fine": variant(100, num_hidden_layers=1, num_hash_layers=0, compress_ratios=[4], num_attention_heads=6,
                    o_groups=2, sliding_window=66, index_topk=3, index_head_dim=8, rope_scaling=None,
                    hc_sinkhorn_iters=3),
    # Entries of 16 rows, then a window; three experts of six.
    "coarse": variant(56, num_hidden_layers=2, num_hash_layers=1, compress_ratios=[16, 0], sliding_window=5,
                      n_routed_experts=6, num_experts_per_tok=3),
    # The published formats. Every row and block is full, as in the published model: K a multiple of 128, 64 rotated
    # dimensions of 128, a cached group of 64; wo_b has two blocks along K.
    "full_blocks": variant(33, published=True, vocab_size=31, num_hidden_layers=1, num_hash_layers=0,
                           compress_ratios=[4], hidden_size=128, num_attention_heads=2, head_dim=128, qk_rope_head_dim=64, q_lora_rank=128,
                           o_lora_rank=128, o_groups=2, n_routed_experts=3, moe_intermediate_size=128,
                           index_n_heads=2, index_head_dim=128, index_topk=4),
}  # fmt: skip


class Draw:
    """Random weights that the published formats hold exactly. What transformers starts at 0 or 1 is random too."""

    def __init__(self, config: dict, seed: int):
        self.config, self.random, self.weights = config, np.random.default_rng(seed), {}

    def normal(self, name: str, *shape: int, deviation: float = 1.0, mean: float = 0.0) -> None:
        value = mean + deviation * self.random.standard_normal(shape)
        self.weights[name] = checkpoint.representable(name, value)

    def matrix(self, name: str, rows: int, columns: int, gain: float = 1.0) -> None:
        self.normal(name + ".weight", rows, columns, deviation=gain / math.sqrt(columns))

    def norm(self, name: str, size: int, mean: float = 1.0) -> None:
        self.normal(name + ".weight", size, deviation=0.25, mean=mean)

    def hc(self, name: str, rows: int, scales: int) -> None:
        wide = self.config["hc_mult"] * self.config["hidden_size"]
        self.normal(name + "_fn", rows, wide, deviation=1.0 / math.sqrt(wide))
        self.normal(name + "_base", rows, deviation=0.5)
        self.normal(name + "_scale", scales, deviation=0.2, mean=1.0)

    def compressor(self, name: str, size: int, ratio: int) -> None:
        width = 2 * size if ratio == 4 else size
        for part in ("wkv", "wgate"):
            self.matrix(f"{name}.{part}", width, self.config["hidden_size"], 1.5)
        self.normal(name + ".ape", ratio, width)
        self.norm(name + ".norm", size)

    def attention(self, name: str, ratio: int) -> None:
        c = self.config
        hidden, width = c["hidden_size"], c["num_attention_heads"] * c["head_dim"]
        self.matrix(name + ".wq_a", c["q_lora_rank"], hidden)
        self.norm(name + ".q_norm", c["q_lora_rank"])
        self.matrix(name + ".wq_b", width, c["q_lora_rank"])
        self.matrix(name + ".wkv", c["head_dim"], hidden)
        self.norm(name + ".kv_norm", c["head_dim"], mean=1.5)
        self.normal(name + ".attn_sink", c["num_attention_heads"])
        self.matrix(name + ".wo_a", c["o_groups"] * c["o_lora_rank"], width // c["o_groups"])
        self.matrix(name + ".wo_b", hidden, c["o_groups"] * c["o_lora_rank"])
        if ratio:
            self.compressor(name + ".compressor", c["head_dim"], ratio)
        if ratio == 4:
            self.matrix(name + ".indexer.wq_b", c["index_n_heads"] * c["index_head_dim"], c["q_lora_rank"])
            self.matrix(name + ".indexer.weights_proj", c["index_n_heads"], hidden)
            self.compressor(name + ".indexer.compressor", c["index_head_dim"], ratio)

    def experts(self, name: str, hashed: bool) -> None:
        c = self.config
        hidden, inner, count = c["hidden_size"], c["moe_intermediate_size"], c["n_routed_experts"]
        self.matrix(name + ".gate", count, hidden, 1.5)
        if hashed:
            rows = [self.random.permutation(count)[: c["num_experts_per_tok"]] for _ in range(c["vocab_size"])]
            self.weights[name + ".gate.tid2eid"] = np.array(rows, np.int64)
        else:
            self.normal(name + ".gate.bias", count, deviation=0.3)
        for expert in [f"experts.{e}" for e in range(count)] + ["shared_experts"]:
            self.matrix(f"{name}.{expert}.w1", inner, hidden, 1.5)
            self.matrix(f"{name}.{expert}.w2", hidden, inner)
            self.matrix(f"{name}.{expert}.w3", inner, hidden, 1.5)

    def block(self, name: str, ratio: int, hashed: bool) -> None:
        m, hidden = self.config["hc_mult"], self.config["hidden_size"]
        for site in ("attn", "ffn"):
            self.norm(f"{name}.{site}_norm", hidden)
            self.hc(f"{name}.hc_{site}", (2 + m) * m, 3)
        self.attention(name + ".attn", ratio)
        self.experts(name + ".ffn", hashed)

    def model(self) -> dict[str, np.ndarray]:
        """Attention's scores get a deviation near 1.5 and logits one near 3."""
        c = self.config
        self.normal("embed.weight", c["vocab_size"], c["hidden_size"])
        for layer in range(c["num_hidden_layers"]):
            self.block(f"layers.{layer}", c["compress_ratios"][layer], layer < c["num_hash_layers"])
        self.norm("norm", c["hidden_size"])
        self.hc("hc_head", c["hc_mult"], 1)
        self.matrix("head", c["vocab_size"], c["hidden_size"], 3.0)
        return self.weights


def draw(name: str, spec: dict) -> tuple[dict[str, np.ndarray], list[int], float]:
    """Weights, tokens and the least margin: the first draw in which float32 errors change no choice."""
    first = zlib.crc32(name.encode())
    for seed in range(first, first + 1000):
        weights = Draw(spec["config"], seed).model()
        vocab = spec["config"]["vocab_size"]
        tokens = [int(t) for t in np.random.default_rng(seed + 1).integers(0, vocab, spec["tokens"])]
        model = reference.Model(spec["config"], weights, "f32")
        model.forward(tokens)
        if min(model.margins, default=1.0) > LEAST_MARGIN:
            return weights, tokens, min(model.margins, default=1.0)
    raise SystemExit(f"{name}: every draw has a choice that is nearly a tie")


def largest(difference: np.ndarray) -> float:
    return float(np.abs(difference).max())


def short(value: float) -> float:
    return float(f"{value:.3g}")


def compare_with_transformers(config: dict, weights: dict, tokens: list[int]) -> tuple[np.ndarray, np.ndarray, dict]:
    """transformers' logits in float64 and float32, and the largest differences; stops unless float64 agrees."""
    n = len(tokens)
    double = hf.logits(config, weights, tokens, torch.float64)
    single = hf.logits(config, weights, tokens, torch.float32)
    model = reference.Model(config, weights, "f32")
    state = model.state()
    steps = np.concatenate([model.forward([token], state) for token in tokens])
    pieces = [n // 3] + [1] * (n // 3) + [n - 2 * (n // 3)]
    error = {
        "reference": largest(model.forward(tokens) - double),
        "reference, token by token": largest(steps - double),
        "transformers, token by token": largest(hf.logits(config, weights, tokens, torch.float64, [1] * n) - double),
        "transformers, in pieces": largest(hf.logits(config, weights, tokens, torch.float64, pieces) - double),
    }
    if max(error.values()) > 1e-9:
        raise SystemExit(f"in float64 these differ from transformers: {error}")
    by_step = hf.logits(config, weights, tokens, torch.float32, [1] * n)
    error["transformers float32"] = largest(single - double)
    error["transformers float32, token by token"] = largest(by_step - double)
    return double, single, {name: short(value) for name, value in error.items()}


def mathematics(config: dict, weights: dict, tokens: list[int], double: np.ndarray, bound: float) -> dict[str, float]:
    """Each wrong engine's error over the tolerance; stops if one passes."""
    errors = {}
    for name, mutant in mutants.MATHEMATICS.items():
        if wrong := mutant(config, weights):
            wrong_class, wrong_config, wrong_weights = wrong
            logits = wrong_class(wrong_config, wrong_weights, "f32").forward(tokens)
            errors[name] = short(largest(logits - double) / bound)
    passed = [name for name, error in errors.items() if error < 2.0]
    if passed:
        raise SystemExit(f"wrong, and within the tolerance: {passed}, {errors}")
    return errors


def layer_by_layer(model: reference.Model, streams: np.ndarray, tokens: list[int]) -> np.ndarray:
    """(layers, n, m, hidden): what each layer makes of the golden streams, less the golden streams after it."""
    positions = np.arange(len(tokens))
    outs = [
        model.causal_block(f"layers.{layer}", streams[layer], tokens, positions, reference.LayerState())
        for layer in range(model.config.num_hidden_layers)
    ]
    return np.array(outs) - streams[1:]


def measure(differences: list[np.ndarray], streams: np.ndarray) -> dict[str, float]:
    """The worst of the differences: share of elements that change, root mean square over that of the streams."""
    scale = np.sqrt(np.mean(streams[1:] ** 2))
    return {
        "share": short(max(float(np.mean(d != 0)) for d in differences)),
        "rms": short(max(float(np.sqrt(np.mean(d * d)) / scale) for d in differences)),
    }


def roundings(config: dict, weights: dict, tokens: list[int], streams: np.ndarray, trials: int) -> dict:
    """What float32 errors change in mode checkpoint, and what wrong roundings do; stops if one is as good as right."""
    model = reference.Model(config, weights, "checkpoint")
    seen = []
    for trial in range(trials):
        model.round = rounding_errors.PublishedDraws(2000 + trial)
        seen.append(layer_by_layer(model, streams, tokens))
    result = {"float32 errors": measure(seen, streams)}
    for name, mutant in mutants.ROUNDINGS.items():
        if wrong := mutant(config, weights):
            model = wrong[0](wrong[1], wrong[2], "checkpoint")
            result[name] = measure([layer_by_layer(model, streams, tokens)], streams)
            if all(result[name][what] < 2.0 * result["float32 errors"][what] for what in ("share", "rms")):
                raise SystemExit(f"the rounding '{name}' changes no more than float32 errors: {result}")
    return result


def bf16_bits(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def chosen_positions(config: dict, count: int) -> list[int]:
    """The first rows, those around the ends of windows and entries, and the last."""
    window = config["sliding_window"]
    near = {k * window + d for k in (1, 2, 3) for d in (-1, 0)}
    for ratio in {r for r in config["compress_ratios"] if r}:
        near |= {k * ratio + d for k in (1, 2, 3) for d in (-2, -1, 0)}
    return sorted(p for p in {0, 1, 2, count - 2, count - 1} | near if p < count)


def make(name: str, spec: dict, out: str, trials: int) -> None:
    config, folder = spec["config"], os.path.join(out, name)
    weights, tokens, margin = draw(name, spec)
    checkpoint.save(folder, config, weights, spec["published"])
    config, weights = checkpoint.load(folder)

    double, single, error = compare_with_transformers(config, weights, tokens)
    responses = rounding_errors.responses(config, weights, "f32", tokens, trials)
    bound = TOLERANCE_FACTOR * float(np.sqrt((responses**2).mean(0)).max())
    wrong = mathematics(config, weights, tokens, double, bound)

    model = reference.Model(config, weights, "checkpoint")
    streams = model.streams(tokens, model.state())
    simulated, state = model.logits(streams[-1]), model.state()
    steps = np.concatenate([model.forward([token], state) for token in tokens])
    responses = rounding_errors.responses(config, weights, "checkpoint", tokens, trials)
    deviation = np.sqrt((responses**2).mean(0)).max(-1)
    positions = chosen_positions(config, len(tokens))

    save = lambda what, array: np.save(os.path.join(folder, what + ".npy"), array)
    save("logits", double[positions])
    save("logits_f32", single[positions])
    save("checkpoint_logits", simulated[positions])
    save("checkpoint_streams", bf16_bits(streams[1:]))
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    record = {
        "name": name,
        "model_sha256": digest,
        "tokens": tokens,
        "positions": positions,
        "tolerance": {"f32": short(bound)},
        "formula": f"{TOLERANCE_FACTOR:g} * largest standard deviation of a logit, {trials} draws, errors as in "
        "tools/oracle/deepseek_v4/rounding_errors.py",
        "largest_logit": short(largest(double)),
        "least_margin_of_a_choice": short(margin),
        "errors_in_logits": error,
        "mutants_error_over_tolerance": wrong,
        "checkpoint": {
            "token_by_token": short(largest(steps - simulated)),
            "difference_to_f32": short(largest(simulated - double)),
            "tolerance_at_positions": [short(TOLERANCE_FACTOR * deviation[p]) for p in positions],
            "layer_by_layer": roundings(config, weights, tokens, streams, trials),
        },
    }
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
        file.write("\n")
    cache_f16.add(folder, trials)
    print(name, record["tolerance"], error, min(wrong.values()), record["checkpoint"]["layer_by_layer"], flush=True)


def table(out: str) -> list[str]:
    files = [os.path.join(out, name, "golden.json") for name in VARIANTS]
    records = [json.loads(open(name, encoding="utf-8").read()) for name in files if os.path.exists(name)]
    lines = [
        f"Made with transformers {transformers.__version__}, torch {torch.__version__}, numpy {np.__version__}, "
        f"Python {sys.version.split()[0]}.",
        "",
        "| model | `f32` tolerance | reference to transformers, float64 | transformers float32: error / tolerance "
        "| weakest mutant: error / tolerance |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for record in records:
        bound, error = record["tolerance"]["f32"], record["errors_in_logits"]
        wrong = record["mutants_error_over_tolerance"]
        weakest = min(wrong, key=wrong.get)
        lines.append(
            f"| {record['name']} | {bound:.3g} | {error['reference']:.1g} "
            f"| {error['transformers float32'] / bound:.2f} | {weakest}: {wrong[weakest]:.0f} |"
        )
    names = " | ".join(record["name"] for record in records)
    lines += ["", f"| wrong engine, error / `f32` tolerance | {names} |"]
    lines += ["| --- |" + " ---: |" * len(records)]
    for name in mutants.MATHEMATICS:
        cells = [r["mutants_error_over_tolerance"].get(name) for r in records]
        lines.append(f"| {name} | " + " | ".join(f"{c:.0f}" if c else "-" for c in cells) + " |")
    lines += ["", f"| wrong rounding, layer by layer: share changed, rms | {names} |"]
    lines += ["| --- |" + " ---: |" * len(records)]
    for name in ["float32 errors", *mutants.ROUNDINGS]:
        cells = [r["checkpoint"]["layer_by_layer"].get(name) for r in records]
        lines.append(f"| {name} | " + " | ".join(f"{c['share']}, {c['rms']}" if c else "-" for c in cells) + " |")
    return lines


def main() -> None:
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(root, "tests", "golden", "deepseek_v4"))
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
