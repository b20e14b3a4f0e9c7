#!/usr/bin/env python3
"""Mode f32 with a cache in f16 (`--kv f16`): cached rows and entries, the indexer's too, are rounded where they are stored.

    python tools/oracle/deepseek_v4/cache_f16.py      # needs numpy; adds to tests/golden/deepseek_v4/NAME

Writes `logits_kv_f16.npy` (positions, vocab) float64, the mathematics with these roundings, and into golden.json

  tolerance.kv_f16     against logits_kv_f16.npy: 8 times the largest standard deviation of a logit when float32's errors
                       (rounding_errors.py) come before the roundings. A value near the middle of two f16 goes the other
                       way now and then, so this is larger than tolerance.f32.
  tolerance.f16_of_f32 against logits.npy, which knows no f16: the same, with an independent error of the size of f16's
                       rounding in every stored element instead of the rounding.
"""

from __future__ import annotations

import argparse
import json
import math
import os

import numpy as np

import checkpoint
import reference
import rounding_errors

TOLERANCE_FACTOR = 8.0
U16 = 2.0**-11  # unit roundoff; below 2^-14 the spacing stays 2^-24


def f16(x: np.ndarray) -> np.ndarray:
    """What a float32 engine stores: x is rounded to float32 first."""
    return x.astype(np.float32).astype(np.float16).astype(np.float64)


class CachedInF16(reference.Model):
    def stored(self, row: np.ndarray) -> np.ndarray:
        return f16(row)

    def rows(self, prefix, x, positions, ratio):
        return self.stored(super().rows(prefix, x, positions, ratio))

    def compress(self, pool, prefix, x, positions, ratio):
        before = len(pool.entries)
        super().compress(pool, prefix, x, positions, ratio)
        pool.entries[before:] = [self.stored(entry) for entry in pool.entries[before:]]


class DrawnF16(CachedInF16):
    """An independent error, as large as the rounding's may be, in place of the rounding."""

    def stored(self, row):
        deviation = U16 * np.maximum(np.abs(row), 2.0**-14) / math.sqrt(3)
        return row + deviation * self.round.random.standard_normal(row.shape)


def deviation(model: reference.Model, plain: np.ndarray, tokens: list[int], trials: int) -> float:
    squares = 0.0
    for trial in range(trials):
        model.round = rounding_errors.ExactDraws(3000 + trial)
        squares = squares + (model.forward(tokens) - plain) ** 2
    return float(np.sqrt(squares / trials).max())


def add(folder: str, trials: int = 64) -> dict:
    """Writes the file, and returns the tolerances."""
    config, weights = checkpoint.load(folder)
    name = os.path.join(folder, "golden.json")
    with open(name, encoding="utf-8") as file:
        record = json.load(file)
    tokens = record["tokens"]
    exact = reference.Model(config, weights, "f32").forward(tokens)
    rounded = CachedInF16(config, weights, "f32").forward(tokens)
    np.save(os.path.join(folder, "logits_kv_f16.npy"), rounded[record["positions"]])
    tolerances = {
        "kv_f16": deviation(CachedInF16(config, weights, "f32"), rounded, tokens, trials),
        "f16_of_f32": deviation(DrawnF16(config, weights, "f32"), exact, tokens, trials),
    }
    record["tolerance"].update({key: float(f"{TOLERANCE_FACTOR * d:.3g}") for key, d in tolerances.items()})
    with open(name, "w", encoding="utf-8") as file:
        json.dump(record, file)
        file.write("\n")
    print(os.path.basename(folder), record["tolerance"], "f16 changes", f"{np.abs(rounded - exact).max():.3g}", flush=True)
    return record["tolerance"]


def main() -> None:
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--golden", default=os.path.join(root, "tests", "golden", "deepseek_v4"))
    args = parser.parse_args()
    for name in ("mixed", "fine", "coarse", "full_blocks"):
        add(os.path.join(args.golden, name))


if __name__ == "__main__":
    main()
