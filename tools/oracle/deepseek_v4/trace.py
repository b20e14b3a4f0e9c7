#!/usr/bin/env python3
"""Writes what the reference computes on the way to the logits, for finding the first thing an engine does differently.

  python tools/oracle/deepseek_v4/trace.py FOLDER OUT.npz [--mode checkpoint] [--tokens 5,7,1]

FOLDER is a checkpoint (checkpoint.py); without --tokens its golden.json gives them. Arrays in OUT.npz, rows first:
  TENSOR               what a linear or norm makes with that weight, as layers.0.attn.wq_a.weight; of an expert's weights
                       the rows that chose it, in the order of rows
  BLOCK.hc_SITE        the input of a site; .post and .comb are its other two
  BLOCK.attn, .ffn     what a site answers
  BLOCK.attn.q         the rotated queries; .indexer.q and .indexer.weight the indexer's
  BLOCK.attn.heads     what the heads answer, rotated back
  BLOCK.attn.kv        the cached rows; .entries and .index_entries those of the compressors
  BLOCK.SITE.choices   the entries and experts that were chosen, of the rows that had a choice; shorter rows end in -1
  BLOCK.streams        the streams after the block
  logits
"""

from __future__ import annotations

import argparse
import json
import os

import numpy as np

import checkpoint
import reference


class Traced(reference.Model):
    """Keeps results by name; what is computed row by row is joined at the end."""

    def __init__(self, config: dict, weights: dict, mode: str):
        super().__init__(config, weights, mode)
        self.parts: dict[str, list[np.ndarray]] = {}
        self.site = ""  # the site at work

    def keep(self, name: str, value: np.ndarray) -> np.ndarray:
        self.parts.setdefault(name, []).append(value)
        return value

    def fp8_linear(self, x, name):
        return self.keep(name, super().fp8_linear(x, name))

    def bf16_linear(self, x, name):
        return self.keep(name, super().bf16_linear(x, name))

    def f32_linear(self, x, name):
        return self.keep(name, super().f32_linear(x, name))

    def norm(self, x, name):
        return self.keep(name, super().norm(x, name))

    def hc_pre(self, h, site):
        x, post, comb = super().hc_pre(h, site)
        self.keep(site + ".post", post)
        self.keep(site + ".comb", comb)
        return self.keep(site, x), post, comb

    def choose(self, scores, count):
        return self.keep(self.site + ".choices", super().choose(scores, count))

    def queries(self, prefix, x, positions, ratio):
        q, low_rank = super().queries(prefix, x, positions, ratio)
        return self.keep(prefix + "q", q), low_rank

    def index_queries(self, prefix, x, low_rank, positions, ratio):
        q, weight = super().index_queries(prefix, x, low_rank, positions, ratio)
        return self.keep(prefix + "q", q), self.keep(prefix + "weight", weight)

    def output(self, prefix, out):
        return super().output(prefix, self.keep(prefix + "heads", out))

    def attention(self, block, x, positions, state):
        self.site = block + ".attn"
        out = self.keep(block + ".attn", super().attention(block, x, positions, state))
        self.keep(block + ".attn.kv", state.kv)
        for name, pool in (("entries", state.main), ("index_entries", state.index)):
            if pool.entries:
                self.keep(f"{block}.attn.{name}", np.array(pool.entries))
        return out

    def experts(self, block, x, tokens):
        self.site = block + ".ffn"
        return self.keep(block + ".ffn", super().experts(block, x, tokens))

    def causal_block(self, block, h, tokens, positions, state):
        return self.keep(block + ".streams", super().causal_block(block, h, tokens, positions, state))

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: joined(parts, name.endswith(".choices")) for name, parts in self.parts.items()}


def joined(parts: list[np.ndarray], ragged: bool) -> np.ndarray:
    """One array, rows first: parts are several rows, or one row each."""
    if ragged:
        width = max(len(part) for part in parts)
        return np.array([np.pad(part, (0, width - len(part)), constant_values=-1) for part in parts])
    return np.concatenate([part if part.ndim > 1 else part[None, :] for part in parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--mode", choices=("f32", "checkpoint"), default="f32")
    parser.add_argument("--tokens", type=lambda text: [int(part) for part in text.split(",")])
    args = parser.parse_args()
    tokens = args.tokens
    if not tokens:
        with open(os.path.join(args.folder, "golden.json"), encoding="utf-8") as file:
            tokens = json.load(file)["tokens"]
    model = Traced(*checkpoint.load(args.folder), args.mode)
    logits = model.forward(tokens)
    np.savez(args.out, logits=logits, **model.arrays())


if __name__ == "__main__":
    main()
