#!/usr/bin/env python3
"""Drives a running `stet serve` with the clients that people use: openai, litellm, langchain-openai, llm, curl.

  build/venv/bin/python tests/server_clients_test.py build/stet [MODEL] [--only NAME]

MODEL is what `stet serve -m` takes (smollm2-135m). Every answer is compared with `stet run` of the same prompt and flags. The clients
come from PyPI (scripts/requirements.txt). Ends with 'N passed, N failed'.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "server"))

from harness import World, clean_environment, run_tests  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("model", nargs="?", default="smollm2-135m", help="a GGUF file, or smollm2-135m")
    parser.add_argument("--only", default="", help="only the tests with this in their name")
    args = parser.parse_args()
    clean_environment()
    import curl_cases
    import keep_alive_cases
    import langchain_cases
    import litellm_cases
    import llm_cases
    import openai_cases

    tests = [t for m in (curl_cases, openai_cases, litellm_cases, langchain_cases, llm_cases, keep_alive_cases) for t in m.TESTS]
    with tempfile.TemporaryDirectory(prefix="stet-clients-") as folder:
        world = World(args.program, args.model, pathlib.Path(folder))
        try:
            return run_tests(tests, world, args.only)
        finally:
            world.server.stop()


if __name__ == "__main__":
    sys.exit(main())
