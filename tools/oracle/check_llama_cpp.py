#!/usr/bin/env python3
"""A third opinion on the golden logits of tests/golden/llama: llama.cpp on the same weights expanded to F32.

  python tools/oracle/check_llama_cpp.py [tests/golden/llama]

Float32 KV cache, no flash attention, one thread. llama.cpp computes angles in float32 by repeated multiplication, so it
is held against `hf_float32`, which allows for such angles. Models in EXPECTED_TO_DIFFER use keys that llama.cpp
ignores for this architecture; that they differ is checked too. Needs llama-cpp-python, gguf and numpy.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import numpy as np

from expand_to_f32 import expand
from llama_cpp_runner import LlamaCpp

EXPECTED_TO_DIFFER = {"yarn_explicit"}


def check(folder: str, name: str, scratch: str) -> bool:
    with open(os.path.join(folder, f"{name}.tokens.json"), encoding="utf-8") as file:
        record = json.load(file)
    golden = np.load(os.path.join(folder, f"{name}.logits.npy"))
    path = os.path.join(scratch, f"{name}.gguf")
    expand(os.path.join(folder, f"{name}.gguf"), path, add_no_vocab=True)
    engine = LlamaCpp(path, 512, kv="f32", repack=False)
    logits = engine.logits(record["tokens"])[record["positions"]]
    engine.close()
    error = float(np.abs(logits - golden).max())
    bound = record["tolerance"]["hf_float32"]
    expected = (error <= bound) != (name in EXPECTED_TO_DIFFER)
    verdict = "ok" if expected else "WRONG"
    note = " (differs, as expected)" if name in EXPECTED_TO_DIFFER else ""
    print(f"{verdict:5} {name:18} error {error:.3g}, tolerance {bound:.3g}{note}")
    return expected


def main() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "tests", "golden", "llama")
    names = sorted(f.removesuffix(".tokens.json") for f in os.listdir(folder) if f.endswith(".tokens.json"))
    with tempfile.TemporaryDirectory() as scratch:
        passed = sum(check(folder, name, scratch) for name in names)
    print(f"{passed} passed, {len(names) - passed} failed")
    sys.exit(passed != len(names))


if __name__ == "__main__":
    main()
