#!/usr/bin/env python3
"""Saves some of the tiny models of tests/golden/llama as transformers does, into tests/golden/hf.

Each folder NAME has the weights of tests/golden/llama/NAME.gguf, in its formats: an engine must answer with the same bits for both
(tests/cli/checkpoints.py). One of them is in shards.

  python tools/oracle/make_hf_checkpoints.py [--out tests/golden/hf]

Needs torch, transformers, gguf and numpy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import zlib

import torch
import transformers
from gguf import GGMLQuantizationType as Q

import hf_llama
import make_llama_models as models

# F32 with a head of its own; F16, grouped queries, tied; each kind of RoPE; BF16 with heads of another width, in shards.
CHOSEN = ("mha", "gqa_tied", "linear", "llama3", "yarn", "key_length_64")
DTYPES = {Q.F32: torch.float32, Q.F16: torch.float16, Q.BF16: torch.bfloat16}


def save(name: str, out: str) -> None:
    spec = models.VARIANTS[name]
    weights = models.Weights(spec, zlib.crc32(name.encode()))
    weights.draw()
    model = hf_llama.build(spec, weights.values, torch.float32)
    for parameter in model.parameters():
        if parameter.dim() == 2:  # norms stay F32, as in the GGUF file
            exact = parameter.data.to(DTYPES[spec["weights"]])
            assert torch.equal(exact.float(), parameter.data), name
            parameter.data = exact
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, max_shard_size="40KB" if name == "key_length_64" else "1GB")
    print(name, sorted(os.listdir(folder)))


def main() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(root, "tests", "golden", "hf"))
    out = parser.parse_args().out
    os.makedirs(out, exist_ok=True)
    torch.set_num_threads(1)
    for name in CHOSEN:
        save(name, out)
    print("transformers", transformers.__version__)


if __name__ == "__main__":
    main()
