#!/usr/bin/env python3
"""Perplexity by llama-perplexity's rule, and the mean KL divergence between two ways of running the same model.

The rule (llama.cpp 0c1e57098, tools/perplexity, no stride): the text is tokenised once, with BOS in front where the
model asks for one and with control tokens not parsed; it is cut into floor(tokens / n_ctx) windows of n_ctx = 512, the
rest dropped; each window runs on an empty cache, its first token replaced by BOS where the model asks for one; the
logits at positions 256 .. 510 score the tokens at 257 .. 511, 255 a window. Perplexity is exp of the mean negative log
likelihood. KL is the mean over the same positions of sum p (ln p - ln q), p the first side (the reference).

A side is one of
  llama:FILE[:KV]          llama.cpp on FILE; KV is f16 (default) or f32
  stet:BINARY:FILE[:FLAGS] `BINARY logits -m FILE --tokens ... --out ... FLAGS`
The text defaults to two licences that every Debian system carries: Apache-2.0 followed by GPL-3.

  python tools/oracle/expand_to_f32.py MODEL.gguf MODEL-f32.gguf
  python tools/oracle/llama_cpp_perplexity.py llama:MODEL-f32.gguf:f32 llama:MODEL.gguf
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

from llama_cpp_runner import LlamaCpp

LICENCES = ["/usr/share/common-licenses/Apache-2.0", "/usr/share/common-licenses/GPL-3"]


class StetLogits:
    """Logits of `stet logits`, one process a window."""

    def __init__(self, binary: str, model: str, flags: list[str]):
        self.command = [binary, "logits", "-m", model, *flags]

    def logits(self, tokens: list[int], first: int) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "logits.npy")
            subprocess.run([*self.command, "--tokens", ",".join(map(str, tokens)), "--out", out], check=True)
            return np.load(out)[first:]

    def close(self) -> None:
        pass


def open_side(text: str, n_ctx: int, threads: int):
    kind, *parts = text.split(":")
    if kind == "llama" and len(parts) in (1, 2):
        return LlamaCpp(parts[0], n_ctx, threads, kv=parts[1] if len(parts) == 2 else "f16")
    if kind == "stet" and len(parts) in (2, 3):
        return StetLogits(parts[0], parts[1], parts[2].split() if len(parts) == 3 else [])
    sys.exit(f"a side is llama:FILE[:KV] or stet:BINARY:FILE[:FLAGS], not {text!r}")


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def windows(tokens: list[int], n_ctx: int, bos: int | None, limit: int | None):
    """(ids that run, ids that are scored) of each window."""
    count = len(tokens) // n_ctx
    for i in range(count if limit is None else min(count, limit)):
        scored = tokens[i * n_ctx : (i + 1) * n_ctx]
        yield ([bos] + scored[1:] if bos is not None else scored), scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sides", nargs="+", help="the reference, then any number of others")
    parser.add_argument("--tokenizer", help="GGUF file whose tokenizer is used (default: the first llama: side)")
    parser.add_argument("--text", nargs="+", default=LICENCES, help="files that are joined into one text")
    parser.add_argument("--n-ctx", type=int, default=512)
    parser.add_argument("--windows", type=int, help="only the first so many windows")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    missing = [path for path in args.text if not os.path.isfile(path)]
    if missing:
        sys.exit(f"no such text: {', '.join(missing)}")
    text = b"".join(open(path, "rb").read() for path in args.text)
    source = args.tokenizer or next((s.split(":")[1] for s in args.sides if s.startswith("llama:")), None)
    if source is None:
        sys.exit("name a GGUF file with --tokenizer: no side is llama:FILE")
    tokenizer = LlamaCpp(source, 32)
    tokens, bos = tokenizer.tokenize(text), tokenizer.bos()
    tokenizer.close()
    if len(tokens) < 2 * args.n_ctx:
        sys.exit(f"the text has {len(tokens)} tokens; {2 * args.n_ctx} are needed")

    first = args.n_ctx // 2
    sides = [open_side(side, args.n_ctx, args.threads) for side in args.sides]
    loss = [[] for _ in sides]
    divergence: list[list[float]] = [[] for _ in sides]
    same_top = [0] * len(sides)
    for index, (ids, scored) in enumerate(windows(tokens, args.n_ctx, bos, args.windows)):
        reference = None
        for number, side in enumerate(sides):
            logs = log_softmax(side.logits(ids, first)[: args.n_ctx - 1 - first])
            targets = np.asarray(scored[first + 1 :])
            loss[number].extend(-logs[np.arange(len(targets)), targets])
            if reference is None:
                reference, probabilities = logs, np.exp(logs)
            divergence[number].extend((probabilities * (reference - logs)).sum(-1))
            same_top[number] += int((reference.argmax(-1) == logs.argmax(-1)).sum())
        so_far = ", ".join(f"{math.exp(np.mean(losses)):.4f}" for losses in loss)
        print(f"window {index + 1}: perplexity so far {so_far}", file=sys.stderr)

    count = len(loss[0])
    report = {
        "text_sha256": hashlib.sha256(text).hexdigest(), "tokens": len(tokens), "n_ctx": args.n_ctx, "bos": bos,
        "scored": count, "sides": [],
    }  # fmt: skip
    for number, side in enumerate(args.sides):
        perplexity = math.exp(np.mean(loss[number]))
        entry = {
            "side": ":".join(os.path.basename(part) for part in side.split(":")),
            "perplexity": perplexity,
            "perplexity_standard_error": perplexity * float(np.std(loss[number])) / math.sqrt(count - 1),
        }
        if number > 0:
            entry["mean_kl"] = float(np.mean(divergence[number]))
            entry["median_kl"] = float(np.median(divergence[number]))
            entry["kl_standard_error"] = float(np.std(divergence[number])) / math.sqrt(count - 1)
            entry["max_kl"] = float(np.max(divergence[number]))
            entry["same_top_token"] = same_top[number] / count
            entry["perplexity_ratio"] = perplexity / math.exp(np.mean(loss[0]))
        report["sides"].append(entry)
        sides[number].close()
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
