#!/usr/bin/env python3
"""What the drafts of tests/golden/deepseek_v4/{mtp,dspark} propose behind every token of a greedy answer: cycles.json.

  python tools/oracle/deepseek_v4/make_draft_cycles.py [--out tests/golden/deepseek_v4]

All in mode f32 in float64 numpy (reference.py, drafts.py), every proposal from the tokens alone. The prompt is the first
whose answer and proposals are no near ties, and some of whose proposals are right.
"""

from __future__ import annotations

import argparse
import json
import os

import numpy as np

import checkpoint
import drafts
import reference

PROMPT, ANSWER = 9, 16  # tokens; the window has 6 rows
DEPTHS = {"mtp": (15,), "dspark": (1, 5, 7, 15)}  # a block's drafts depend on its width
LEAST_MARGIN = 0.003
LEAST_RIGHT = 1  # places whose first proposal is right


def margin(logits: np.ndarray) -> float:
    top = np.sort(logits, axis=-1)
    return float((top[..., -1] - top[..., -2]).min())


def answer(model: reference.Model, prompt: list[int]) -> tuple[list[int], float]:
    tokens, least = list(prompt), np.inf
    for _ in range(ANSWER):
        logits = model.forward(tokens)[-1]
        least = min(least, margin(logits))
        tokens.append(int(logits.argmax()))
    return tokens[len(prompt) :], least


class NotedMtp(drafts.Mtp):
    least = np.inf

    def streams(self, h, next_tokens):
        out = super().streams(h, next_tokens)
        if len(h) == 1:
            self.least = min(self.least, margin(self.model.logits(out, "mtp.0.")))
        return out


def propose(name: str, model: reference.Model, streams: np.ndarray, tokens: list[int], n: int, depth: int):
    """Drafts behind the first n tokens, and the least margin; row n - 1 of the target is not known yet."""
    if name == "mtp":
        mtp = NotedMtp(model)
        mtp.forward(streams[-1][: n - 2], tokens[1 : n - 1])
        mtp.least = np.inf
        return mtp.draft(streams[-1][n - 2], tokens[n - 1], depth), mtp.least
    c = model.settings
    stages = 1 + max(int(tensor.split(".")[1]) for tensor in model.weights if tensor.startswith("mtp."))
    dspark = drafts.DSpark(model, stages, c["dspark_noise_token_id"])
    dspark.verified(drafts.taps(model, streams, c["dspark_target_layer_ids"])[: n - 1])
    draft = dspark.draft(tokens[n - 1], depth)
    return draft.tokens, margin(draft.logits)


def cycles(name: str, model: reference.Model, prompt: list[int]) -> tuple[dict, float]:
    output, least = answer(model, prompt)
    tokens = prompt + output
    streams = model.streams(tokens, model.state())
    record = {"prompt": prompt, "answer": output, "proposals": {}}
    for depth in DEPTHS[name]:
        rows = []
        for n in range(PROMPT + 1, PROMPT + ANSWER):
            if least < LEAST_MARGIN:
                return record, least
            drafted, clear = propose(name, model, streams, tokens, n, depth)
            rows.append(drafted)
            least = min(least, clear)
        record["proposals"][str(depth)] = rows
    return record, least


def main() -> None:
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(root, "tests", "golden", "deepseek_v4"))
    out = parser.parse_args().out
    for name in DEPTHS:
        config, weights = checkpoint.load(os.path.join(out, name))
        for seed in range(1000):
            model = reference.Model(config, weights, "f32")
            prompt = [int(t) for t in np.random.default_rng(seed).integers(0, config["vocab_size"], PROMPT)]
            record, least = cycles(name, model, prompt)
            rows = record["proposals"].get(str(DEPTHS[name][-1]), [])
            right = sum(row[0] == token for row, token in zip(rows, record["answer"][1:]))
            if min(least, *model.margins) > LEAST_MARGIN and right >= LEAST_RIGHT:
                break
        else:
            raise SystemExit(f"{name}: every prompt has a choice that is nearly a tie")
        record["least_margin"] = round(min(least, *model.margins), 6)
        with open(os.path.join(out, name, "cycles.json"), "w", encoding="utf-8") as file:
            json.dump(record, file)
            file.write("\n")
        print(name, "seed", seed, record["answer"], "least margin", record["least_margin"], flush=True)


if __name__ == "__main__":
    main()
