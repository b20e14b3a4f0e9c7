#!/usr/bin/env python3
"""Holds the prompts of DeepSeek V4 against the golden ones, through the tokenizer.json that its checkpoints have.

  python3 tests/deepseek_v4_prompts_test.py build/stet TOKENIZER.json

The file is not in this tree (6 MB); tests/golden/deepseek_v4_prompts/README.md says where it is to be had. Ends with 'N passed, N failed'.
Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cli"))

import deepseek_v4_chat as chat  # noqa: E402
from harness import Stet, equal, run_tests  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("tokenizer", type=pathlib.Path)
    args = parser.parse_args()

    def published_ids(stet: Stet) -> None:
        equal(hashlib.sha256(args.tokenizer.read_bytes()).hexdigest(), chat.golden()["published_sha256"], "another file")
        folder = chat.checkpoint(stet.folder / "published", args.tokenizer)
        print(chat.prompts_are_those_of_the_golden(stet, folder, "published_ids"), "prompts")

    with tempfile.TemporaryDirectory(prefix="stet-cli-") as folder:
        return run_tests([published_ids], Stet(args.program, pathlib.Path(folder)), "")


if __name__ == "__main__":
    sys.exit(main())
