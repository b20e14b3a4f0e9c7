#!/usr/bin/env python3
"""Drives the program as a user does: every verb, every kind of bad input, a conversation in a terminal.

  python3 tests/cli_test.py build/stet [--only NAME]

Synthetic models only, so that it needs no network. Ends with 'N passed, N failed'. Standard library only.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cli"))

import bad_input  # noqa: E402
import checkpoints  # noqa: E402
import conversation  # noqa: E402
import deepseek_v4_chat  # noqa: E402
import diagnosis  # noqa: E402
import published  # noqa: E402
import serve  # noqa: E402
import verbs  # noqa: E402
from harness import Stet, run_tests  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("--only", default="", help="only the tests with this in their name")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stet-cli-") as folder:
        tests = verbs.TESTS + bad_input.TESTS + checkpoints.TESTS + conversation.TESTS + diagnosis.TESTS + serve.TESTS
        tests += published.TESTS + deepseek_v4_chat.TESTS
        return run_tests(tests, Stet(args.program, pathlib.Path(folder)), args.only)


if __name__ == "__main__":
    sys.exit(main())
