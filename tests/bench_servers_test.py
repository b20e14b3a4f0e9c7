#!/usr/bin/env python3
"""stet bench against a real server of somebody else: llama.cpp's own, as the package xllamacpp ships it.

  build/venv/bin/python tests/bench_servers_test.py build/stet MODEL.gguf [--only NAME]

Needs the package xllamacpp (scripts/requirements.txt). Ends with 'N passed, N failed'.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cli"))

from harness import Failure, Stet, check, equal, run_tests  # noqa: E402

READY_S = 120
SERVER = """
import sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"under-test"}
params.n_ctx, params.n_parallel, params.cpuparams.n_threads, params.port = 2048, 1, 1, 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


class LlamaCpp:
    """The server in a process of its own, which ends when its standard input does."""

    def __init__(self, model: str):
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, model], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            raise Failure(f"llama.cpp's server did not start: {self.url!r}")
        end = time.monotonic() + READY_S
        while True:
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=10):
                    return
            except OSError:
                if time.monotonic() > end:
                    raise Failure("llama.cpp's server did not become ready") from None
                time.sleep(0.2)

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=READY_S)


def suite(stet: Stet) -> pathlib.Path:
    steps = [{"id": name, "class": name, "messages": [{"role": "user", "content": text}]}
             for name, text in (("sea", "Write three sentences about the sea."), ("hills", "Describe a village in the hills."))]  # fmt: skip
    path = stet.folder / "quick.json"
    path.write_text(json.dumps({"suite_id": "quick", "version": 1, "description": "a test", "cold": True, "repeats_allowed": False,
                                "ordered": False, "nonce": True, "max_tokens": 32, "steps": steps}))  # fmt: skip
    return path


def bench(stet: Stet, url: str, name: str, *args: object) -> dict:
    packet = stet.folder / name
    result = stet("bench", "--endpoint", url, "--suite", suite(stet), "--nonce-seed", "3", "--out", packet, "--ledger", stet.folder / "l", "-q", *args)
    equal(result.code, 7, f"{args}: {result}")
    return json.loads((packet / "results.json").read_text())["results"]["arms"][0]


def test_the_adapter_proves_what_it_says(stet: Stet) -> None:
    with LlamaCpp(stet.model) as server:
        arm = bench(stet, server.url, "auto")
    for request in arm["requests"]:
        equal(request["usage"]["cached_tokens"], 0)
        equal((request["tokens"], request["usage"]["completion_tokens"]), (32, 32))
        equal((request["finish_reason"], request["invalid"], request["unproven"]), ("length", [], []))
    plan = json.loads((stet.folder / "auto" / "plan.json").read_text())
    equal(plan["arms"][0]["what"]["adapter"], "llama.cpp")
    chunks = [e for line in (stet.folder / "auto" / "events.jsonl").read_text().splitlines() if (e := json.loads(line))["type"] == "chunk"]
    check(all("server_ns" in e for e in chunks if e.get("token_ids")), "the server's clock")
    # Nothing but the build and a teacher is missing.
    check(all(reason.startswith(("identity:", "exactness:")) for reason in arm["unproven"]), arm["unproven"])


def test_it_repeats_itself(stet: Stet) -> None:
    with LlamaCpp(stet.model) as server:
        first, second = (bench(stet, server.url, f"again-{n}") for n in range(2))
    equal([r["digest"] for r in first["requests"]], [r["digest"] for r in second["requests"]])


def test_as_a_server_of_no_known_kind(stet: Stet) -> None:
    with LlamaCpp(stet.model) as server:
        arm = bench(stet, server.url, "openai", "--server", "openai")
    reasons = [reason for request in arm["requests"] for reason in request["unproven"]]
    check(any(reason.startswith("token ids") for reason in reasons), reasons)
    equal(arm["summary"]["all_tokens_per_second"], None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("model", help="a GGUF file with a chat template")
    parser.add_argument("--only", default="", help="only the tests with this in their name")
    args = parser.parse_args()
    tests = [function for name, function in globals().items() if name.startswith("test_")]
    with tempfile.TemporaryDirectory(prefix="stet-servers-") as folder:
        stet = Stet(args.program, pathlib.Path(folder))
        stet.model = args.model
        return run_tests(tests, stet, args.only)


if __name__ == "__main__":
    sys.exit(main())
