#!/usr/bin/env python3
"""Holds `stet logits` against the golden logits of tests/golden/llama or another folder there (transformers in float64).

  python tests/oracle_logits_test.py build/stet [--kind f32] [--flags '--kv f32'] [--only NAME,...] [tests/golden/llama]
  python tests/oracle_logits_test.py build/stet --kind f32 --flags '--kv f32' --only mixed,fine,coarse,full_blocks tests/golden/deepseek_v4

Each model runs as `stet logits -m MODEL --tokens ... --out F.npy --float FLAGS`; every logit at the recorded
positions must be within the tolerance of the chosen kind of arithmetic (the README beside the models derives them):
f32, f32_kv_f16 or a8_kv_f16 (without --float; integer formats only). A model is NAME.gguf with NAME.tokens.json and
NAME.logits.npy, or a checkpoint NAME/ with golden.json and logits.npy. Needs numpy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np


def run_stet(binary: str, model: str, tokens: list[int], flags: list[str]) -> np.ndarray:
    """Logits (tokens, vocab) as the program writes them; raises ValueError with its message when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits.npy")
        command = [binary, "logits", "-m", model, "--tokens", ",".join(map(str, tokens)), "--out", out, *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise ValueError(f"exit code {done.returncode}: {done.stderr.strip()[-500:]}")
        return np.load(out)


def compare(logits: np.ndarray, golden: np.ndarray, record: dict, bound: float) -> str:
    """An empty string, or what is wrong with the numbers."""
    expected = (len(record["tokens"]), golden.shape[1])
    if logits.shape != expected or logits.dtype != np.float32:
        return f"shape {logits.shape} of {logits.dtype}, expected {expected} of float32"
    error = np.abs(logits[record["positions"]].astype(np.float64) - golden)
    if np.isnan(error).any() or error.max() > bound:
        row, token = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error)), error.shape)
        position = record["positions"][row]
        got, want = float(logits[position, token]), float(golden[row, token])
        worst = f"position {position}, token {token}: {got!r} ({got.hex()}), expected {want!r}"
        return f"{worst}; error {error[row, token]:.3g}, tolerance {bound:.3g}"
    print(f"    error {error.max():.3g}, {error.max() / bound:.2f} of the tolerance")
    return ""


class Case:
    """One model: what to run, the file that its golden was made from, the golden."""

    def __init__(self, folder: str, name: str):
        self.name = name
        self.model = os.path.join(folder, name)
        if os.path.isdir(self.model):
            files = {"record": "golden.json", "weights": "model.safetensors", "logits": "logits.npy"}
            files = {what: os.path.join(self.model, file) for what, file in files.items()}
        else:
            files = {"record": f"{self.model}.tokens.json", "weights": f"{self.model}.gguf", "logits": f"{self.model}.logits.npy"}
            self.model = files["weights"]
        self.weights, self.logits = files["weights"], files["logits"]
        with open(files["record"], encoding="utf-8") as file:
            self.record = json.load(file)

    def is_what_the_golden_was_made_from(self) -> bool:
        with open(self.weights, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        return digest == self.record.get("gguf_sha256", self.record.get("model_sha256"))


def names_in(folder: str) -> list[str]:
    names = [f.removesuffix(".tokens.json") for f in os.listdir(folder) if f.endswith(".tokens.json")]
    return sorted(names + [f for f in os.listdir(folder) if os.path.exists(os.path.join(folder, f, "logits.npy"))])


def check(folder: str, name: str, args: argparse.Namespace) -> bool | None:
    case = Case(folder, name)
    record = case.record
    bound = record["tolerance"].get(args.kind)
    if bound is None:
        return None
    if not case.is_what_the_golden_was_made_from():
        print(f"FAILED {name}: the model file is not the one that the golden was made from")
        return False
    golden = np.load(case.logits)
    flags = ([] if args.kind.startswith("a8") else ["--float"]) + args.flags.split()
    try:
        problem = compare(run_stet(args.stet, case.model, record["tokens"], flags), golden, record, bound)
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    print(f"{'FAILED' if problem else 'PASSED'} {name}{': ' + problem if problem else ''}")
    return not problem


def main() -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stet")
    parser.add_argument("folder", nargs="?", default=os.path.join(root, "tests", "golden", "llama"))
    parser.add_argument("--kind", default="f32_kv_f16", choices=["f32", "f32_kv_f16", "a8_kv_f16"])
    parser.add_argument("--flags", default="", help="more options for `stet logits`, in one string")
    parser.add_argument("--only", help="names, separated by commas")
    args = parser.parse_intermixed_args()
    if not os.access(args.stet, os.X_OK):
        sys.exit(f"no such program: {args.stet}")
    names = names_in(args.folder) if args.only is None else args.only.split(",")
    verdicts = [verdict for name in names if (verdict := check(args.folder, name, args)) is not None]
    failed = verdicts.count(False)
    print(f"{len(verdicts) - failed} passed, {failed} failed")
    sys.exit(bool(failed) or not verdicts)


if __name__ == "__main__":
    main()
