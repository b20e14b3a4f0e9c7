#!/usr/bin/env python3
"""Makes the tiny models with a draft of tests/golden/deepseek_v4: `mtp` (the plain MTP block) and `dspark`.

Their goldens come from drafts.py alone; transformers has no drafts. Run after make_models.py, whose README it extends.

  python tools/oracle/deepseek_v4/make_drafts.py [--out tests/golden/deepseek_v4] [--trials 64]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import zlib

import numpy as np

import checkpoint
import drafts
import reference
import rounding_errors
from make_models import LEAST_MARGIN, TOLERANCE_FACTOR, Draw, largest, short, variant

SMALL = {
    "vocab_size": 31, "hidden_size": 16, "num_attention_heads": 2, "head_dim": 16, "q_lora_rank": 8, "o_lora_rank": 8,
    "n_routed_experts": 3, "num_hash_layers": 0, "sliding_window": 6,
}  # fmt: skip
MTP = variant(30, **SMALL, num_hidden_layers=1, compress_ratios=[4, 0], num_nextn_predict_layers=1)
DSPARK = variant(
    24, **SMALL, num_hidden_layers=2, compress_ratios=[0, 8, 0, 0, 0], num_nextn_predict_layers=1, dspark_block_size=5,
    dspark_markov_rank=8, dspark_noise_token_id=29, dspark_target_layer_ids=[0, 1],
)  # fmt: skip
STAGES = 3
# Verified rows and drafts of each case: fewer rows than the window, the window, more; five drafts and seven.
CASES = [(3, 5), (6, 5), (17, 5), (24, 7)]


class DraftDraw(Draw):
    """Draws the draft's tensors after the target's."""

    def mtp(self) -> dict[str, np.ndarray]:
        self.model()
        hidden = self.config["hidden_size"]
        self.block("mtp.0", 0, False)
        for side in ("e", "h"):
            self.matrix(f"mtp.0.{side}_proj", hidden, hidden)
            self.norm(f"mtp.0.{side}norm", hidden)
        self.norm("mtp.0.norm", hidden)
        self.hc("mtp.0.hc_head", self.config["hc_mult"], 1)
        return self.weights

    def dspark(self) -> dict[str, np.ndarray]:
        self.model()
        c = self.config
        hidden, vocab, rank, last = c["hidden_size"], c["vocab_size"], c["dspark_markov_rank"], f"mtp.{STAGES - 1}"
        for stage in range(STAGES):
            self.block(f"mtp.{stage}", 0, False)
        self.matrix("mtp.0.main_proj", hidden, len(c["dspark_target_layer_ids"]) * hidden)
        self.norm("mtp.0.main_norm", hidden)
        self.norm(last + ".norm", hidden)
        self.hc(last + ".hc_head", c["hc_mult"], 1)
        self.normal(last + ".markov_head.markov_w1.weight", vocab, rank)
        self.matrix(last + ".markov_head.markov_w2", vocab, rank, 2.0)
        self.matrix(last + ".confidence_head.proj", 1, hidden + rank)
        return self.weights


def run_mtp(model: reference.Model, tokens: list[int], draft=drafts.Mtp) -> np.ndarray:
    """(n - 1, vocab): row i has the target's row i and token i + 1."""
    streams = model.streams(tokens, model.state())[-1]
    return draft(model).forward(streams[:-1], tokens[1:])


def run_dspark(model: reference.Model, tokens: list[int], draft=drafts.DSpark) -> list[drafts.Draft]:
    """A draft a case: the anchor is the target's greedy token after the verified rows."""
    c, results = model.settings, []
    streams = model.streams(tokens, model.state())
    tap = drafts.taps(model, streams, c["dspark_target_layer_ids"])
    greedy = model.logits(streams[-1]).argmax(-1)
    for rows, count in CASES:
        dspark = draft(model, STAGES, c["dspark_noise_token_id"])
        dspark.verified(tap[:rows])
        results.append(dspark.draft(int(greedy[rows - 1]), count))
    return results


def flat(results: list[drafts.Draft]) -> np.ndarray:
    """(all drafts, vocab + 1): logits and confidence of every draft of every case."""
    return np.concatenate([np.concatenate([r.logits, r.confidence[:, None]], axis=1) for r in results])


def dspark_rows(model: reference.Model, tokens: list[int]) -> np.ndarray:
    return flat(run_dspark(model, tokens))


class StreamsMixed(drafts.Mtp):
    """Gives the block one vector for all streams."""

    def forward(self, h, next_tokens):
        return super().forward(np.repeat(h.mean(axis=1, keepdims=True), h.shape[1], axis=1), next_tokens)


class AnchorEarly(drafts.DSpark):
    """Puts the anchor at the last verified row."""

    def attention(self, stage, x):
        self.rows -= 1
        out = super().attention(stage, x)
        self.rows += 1
        return out


class Causal(drafts.DSpark):
    """A row of the block does not see those after it."""

    def attention(self, stage, x):
        rows = [super(Causal, self).attention(stage, x[: i + 1])[-1] for i in range(len(x))]
        return np.array(rows)


class ShortWindow(drafts.DSpark):
    """The block takes room in the window."""

    def attention(self, stage, x):
        whole = self.kv[stage]
        self.kv[stage] = whole[-(self.model.config.sliding_window - 1) :]
        out = super().attention(stage, x)
        self.kv[stage] = whole
        return out


class TapNotNormed(drafts.DSpark):
    def verified(self, tap):
        m, positions = self.model, self.rows + np.arange(len(tap))
        x = m.fp8_linear(tap, "mtp.0.main_proj.weight")
        for stage in self.names():
            self.kv[stage] = m.rows(stage + ".attn.", x, positions, 0)
        self.rows += len(tap)


def search(name: str, spec: dict, run) -> tuple[dict, list[int]]:
    """The first draw whose choices and drafts are no near ties."""
    first = zlib.crc32(name.encode())
    for seed in range(first, first + 1000):
        config = spec["config"]
        weights = getattr(DraftDraw(config, seed), name)()
        tokens = [int(t) for t in np.random.default_rng(seed + 1).integers(0, config["vocab_size"], spec["tokens"])]
        model = reference.Model(config, weights, "f32")
        top = np.sort(run(model, tokens)[:, : config["vocab_size"]], axis=-1)
        if min([*model.margins, *(top[:, -1] - top[:, -2])]) > LEAST_MARGIN:
            return weights, tokens
    raise SystemExit(f"{name}: every draw has a choice that is nearly a tie")


def deviations(config: dict, weights: dict, mode: str, tokens: list[int], run, trials: int) -> np.ndarray:
    model = reference.Model(config, weights, mode)
    plain, kind = run(model, tokens), rounding_errors.KINDS[mode]
    squares = np.zeros_like(plain)
    for trial in range(trials):
        model.round = kind(1000 + trial)
        squares += (run(model, tokens) - plain) ** 2
    return np.sqrt(squares / trials)


def make(name: str, spec: dict, run, wrong: dict, out: str, trials: int) -> None:
    weights, tokens = search(name, spec, run)
    folder = os.path.join(out, name)
    checkpoint.save(folder, spec["config"], weights, False)
    config, weights = checkpoint.load(folder)
    plain = run(reference.Model(config, weights, "f32"), tokens)
    simulated = run(reference.Model(config, weights, "checkpoint"), tokens)
    np.save(os.path.join(folder, "draft.npy"), plain)
    np.save(os.path.join(folder, "checkpoint_draft.npy"), simulated)
    bound = TOLERANCE_FACTOR * float(deviations(config, weights, "f32", tokens, run, trials).max())
    rows = TOLERANCE_FACTOR * deviations(config, weights, "checkpoint", tokens, run, trials).max(-1)
    errors = {what: short(largest(mutant(reference.Model(config, weights, "f32"), tokens) - plain) / bound)
              for what, mutant in wrong.items()}  # fmt: skip
    if min(errors.values()) < 2.0:
        raise SystemExit(f"{name}: wrong, and within the tolerance: {errors}")
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    record = {
        "name": name,
        "model_sha256": digest,
        "tokens": tokens,
        "tolerance": {"f32": short(bound)},
        "checkpoint_tolerance_at_rows": [short(row) for row in rows],
        "mutants_error_over_tolerance": errors,
    }
    if name == "dspark":
        results = {mode: run_dspark(reference.Model(config, weights, mode), tokens) for mode in ("f32", "checkpoint")}
        record["cases"] = [{"verified": rows, "drafts": count} for rows, count in CASES]
        record["anchors"] = {mode: [draft.anchor for draft in drafted] for mode, drafted in results.items()}
        record["drafted"] = {mode: [draft.tokens for draft in drafted] for mode, drafted in results.items()}
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
        file.write("\n")
    print(name, record["tolerance"], "checkpoint - f32", largest(simulated - plain), errors, max(rows), flush=True)


def main() -> None:
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(root, "tests", "golden", "deepseek_v4"))
    parser.add_argument("--trials", type=int, default=64)
    args = parser.parse_args()

    def same_token(model, tokens):
        streams = model.streams(tokens, model.state())[-1]
        return drafts.Mtp(model).forward(streams[:-1], tokens[:-1])

    wrong = {
        "a row with its own token": same_token,
        "one vector for all streams": lambda model, tokens: run_mtp(model, tokens, StreamsMixed),
    }
    make("mtp", MTP, run_mtp, wrong, args.out, args.trials)
    kinds = {"anchor at the last verified row": AnchorEarly, "block is causal": Causal,
             "block takes room in the window": ShortWindow, "tap not normed": TapNotNormed}  # fmt: skip
    run_wrong = lambda kind: lambda model, tokens: flat(run_dspark(model, tokens, kind))
    wrong = {what: run_wrong(kind) for what, kind in kinds.items()}
    make("dspark", DSPARK, dspark_rows, wrong, args.out, args.trials)


if __name__ == "__main__":
    main()
