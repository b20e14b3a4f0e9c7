#!/usr/bin/env python3
"""stet bench from end to end: engines in processes of their own, stet serve, servers that lie, and what the packet says of each.

  python3 tests/bench_test.py build/stet [--only NAME]

Synthetic models only, so that it needs no network. Ends with 'N passed, N failed'. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

TESTS_FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS_FOLDER / "cli"), str(TESTS_FOLDER / "bench")]

from fake_server import FakeServer, chunk, usage  # noqa: E402
from harness import DISTURBED, TIMEOUT_S, Failure, Skip, Stet, check, equal, run_tests  # noqa: E402

MODEL = "synth:tiny:q4_0"
# Sampled, because a synthetic model repeats itself when it is greedy.
ASKED = ("--temperature", "1.5", "--nonce-seed", "7", "--threads", "1", "--pack", "none", "--quiet")


def say(step: str, text: str, **more: object) -> dict:
    return {"id": step, "class": more.pop("of", "test"), "messages": [{"role": "user", "content": text}], **more}


def suite_file(stet: Stet, name: str, steps: list[dict], **more: object) -> pathlib.Path:
    suite = {"suite_id": name, "version": 1, "description": "a test", "cold": True, "repeats_allowed": False, "ordered": False,
             "nonce": True, "max_tokens": 40, "steps": steps, **more}  # fmt: skip
    path = stet.folder / f"{name}.json"
    path.write_text(json.dumps(suite))
    return path


def quick(stet: Stet) -> pathlib.Path:
    return suite_file(stet, "quick", [say("one", "Tell me of the sea.", of="a"), say("two", "And of the hills?", of="b", expect={"exact": "no"})])


def fresh(stet: Stet, name: str) -> pathlib.Path:
    """The path of a packet that does not exist yet."""
    number = sum(1 for _ in stet.folder.glob(f"{name}-*"))
    return stet.folder / f"{name}-{number}"


def bench(stet: Stet, *args: object, code: int = 0, out: pathlib.Path | None = None) -> tuple[dict, pathlib.Path, str]:
    """The results of a run, its packet and its table."""
    packet = out or fresh(stet, "packet")
    result = stet("bench", *args, "--out", packet, "--ledger", stet.folder / "ledger.sqlite")
    path = packet / "results.json"
    found = json.loads(path.read_text())["results"] if path.exists() else {"arms": []}
    reasons = [reason for arm in found["arms"] for reason in arm["invalid"] if any(word in reason for word in DISTURBED)]
    if result.code != code and reasons:
        raise Skip(f"the machine was disturbed: {reasons}")
    equal(result.code, code, f"{args}: {result}")
    return found, packet, result.out.decode()


def plan_of(packet: pathlib.Path) -> dict:
    return json.loads((packet / "plan.json").read_text())


def events_of(packet: pathlib.Path, kind: str) -> list[dict]:
    return [e for line in (packet / "events.jsonl").read_text().splitlines() if (e := json.loads(line))["type"] == kind]


def server(stet: Stet, model: object, *flags: object):
    """A running `stet serve` and its URL."""
    process = stet.start("serve", "-m", model, "--port", "0", "--threads", "1", "--pack", "none", *flags)
    seen, end = b"", time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        line = process.stderr.readline()
        seen += line
        if match := re.search(rb"(http://127\.0\.0\.1:\d+)", line):
            return process, match[1].decode()
        if not line:
            break
    process.kill()
    raise Failure(f"the server did not start: {seen.decode('utf-8', 'replace')}")


def test_teacher_then_candidate(stet: Stet) -> None:
    suite = quick(stet)
    taught, teacher, table = bench(stet, "-m", MODEL, "--suite", suite, "--as-teacher", *ASKED)
    arm = taught["arms"][0]
    equal(arm["exactness"]["status"], "proved", arm["exactness"])
    equal((arm["role"], arm["exactness"]["repeat"]["starts"], arm["exactness"]["repeat"]["fresh_starts"]), ("teacher", 3, 3))
    starts = events_of(teacher, "start")
    equal([s["fresh"] for s in starts], [True] * 3)
    check(all("build_id" in s["identity"] for s in starts), starts[0])
    found, packet, table = bench(stet, "-m", MODEL, "--suite", suite, "--draft", "ngram", "--teacher", teacher, "--threads", "1", "--pack", "none", "--quiet")
    arm = found["arms"][0]
    equal(found["verdict"], "valid", arm)
    equal((arm["exactness"]["status"], arm["exactness"]["compared"], arm["exactness"]["equal"]), ("proved", 2, 2))
    check(arm["summary"]["all_tokens_per_second"]["median"] > 0, arm["summary"])
    equal(arm["accuracy"], {"correct": 0, "of": 1})
    check("exactness: proved" in table and "verdict: valid" in table, table)
    equal(plan_of(packet)["questions"], plan_of(teacher)["questions"])
    equal(plan_of(packet)["requests"], plan_of(teacher)["requests"])


def test_teacher_in_the_same_packet(stet: Stet) -> None:
    found, packet, _ = bench(stet, "-m", MODEL, "--suite", quick(stet), "--draft", "ngram", "--teacher", "self", "--starts", "2", *ASKED)
    equal([(a["name"], a["role"], a["exactness"]["status"]) for a in found["arms"]], [("teacher", "teacher", "proved"), ("A", "candidate", "proved")])
    equal([(s["arm"], s["start"]) for s in events_of(packet, "start")], [("teacher", 0), ("teacher", 1), ("teacher", 2), ("A", 0), ("A", 1)])
    ids = [e["id"] for e in events_of(packet, "request")]
    equal(len(ids), len(set(ids)))


def test_without_a_teacher_no_rate(stet: Stet) -> None:
    found, packet, table = bench(stet, "-m", MODEL, "--suite", quick(stet), *ASKED, code=7)
    arm = found["arms"][0]
    equal((found["verdict"], arm["exactness"]["status"]), ("unproven", "unproven"))
    equal(arm["summary"]["all_tokens_per_second"], None)
    check(all(r["all"] is None for r in arm["requests"]), arm["requests"])
    check("speed without exactness has no number" in table, table)
    check(not re.search(r"median \d", table.split("tokens a cycle")[0]), table)
    check(events_of(packet, "chunk"), "the raw events are kept")


def test_another_model_differs(stet: Stet) -> None:
    suite = quick(stet)
    _, teacher, _ = bench(stet, "-m", MODEL, "--suite", suite, "--as-teacher", *ASKED)
    found, _, table = bench(stet, "-m", MODEL + ":2", "--suite", suite, "--teacher", teacher, "--pack", "none", "--quiet", code=6)
    arm = found["arms"][0]
    equal(arm["exactness"]["status"], "failed", arm["exactness"])
    check("one" in arm["exactness"]["first_difference"], arm["exactness"])
    check("NO" in table and "no rate is shown" in table, table)


def test_other_questions_than_the_teachers_are_refused(stet: Stet) -> None:
    suite = quick(stet)
    _, teacher, _ = bench(stet, "-m", MODEL, "--suite", suite, "--as-teacher", *ASKED)
    common = ("bench", "-m", MODEL, "--teacher", teacher, "--out", stet.folder / "none", "--ledger", stet.folder / "l")
    stet.refuses(2, *common, "--suite", suite, "--nonce-seed", "8", says="--nonce-seed differs")
    stet.refuses(2, *common, "--suite", suite, "--max-tokens", "5", says="--max-tokens differs")
    stet.refuses(2, *common, "--suite", suite, "--temperature", "0.5", says="--temperature")
    stet.refuses(2, *common, "--suite", suite, "--steps", "two", says="asked 2 requests and this run has 1")
    stet.refuses(2, *common, "--suite", "canary-v1", says="was asked the suite quick")
    check(not (stet.folder / "none.partial").exists(), "a refused run leaves nothing")


def test_flags_that_contradict(stet: Stet) -> None:
    suite, out = quick(stet), ("--out", stet.folder / "none")
    for flags, says in (
        ((), "nothing to measure"),
        (("-m", MODEL, "--endpoint", "http://127.0.0.1:1"), "both a server and an engine"),
        (("-m", MODEL, *out), "no suite given"),
        (("-m", MODEL, "--suite", suite), "no packet given"),
        (("-m", MODEL, "--suite", "none", *out), "there is no suite 'none'"),
        (("-m", MODEL, "--suite", suite, *out, "--as-teacher", "--draft", "ngram"), "a teacher is a plain decoder"),
        (("-m", MODEL, "--suite", suite, *out, "--as-teacher", "--teacher", "self"), "contradict"),
        (("-m", MODEL, "--suite", suite, *out, "--server", "vllm"), "belong to --endpoint"),
        (("-m", MODEL, "--suite", suite, *out, "--steps", "three"), "no step 'three'"),
        (("--endpoint", "https://127.0.0.1:1", "--suite", suite, *out), "TLS"),
        (("--endpoint", "http://127.0.0.1:1", "--suite", suite, *out, "--draft", "ngram"), "flags of the engine"),
        (("--endpoint", "http://127.0.0.1:1", "--suite", suite, *out, "--starts", "2"), "stet compare"),
    ):
        stet.refuses(2, "bench", *flags, says=says)
    stet.refuses(3, "bench", "--endpoint", "http://127.0.0.1:1", "--suite", suite, *out, says="no server answers")
    stet.refuses(3, "bench", "-m", "none.gguf", "--suite", suite, *out, "--ledger", stet.folder / "l", says="none.gguf")


def test_repeats_have_prompts_of_their_own(stet: Stet) -> None:
    _, packet, _ = bench(stet, "-m", MODEL, "--suite", quick(stet), "--repeats", "2", *ASKED, code=7)
    prompts = [e["prompt"] for e in events_of(packet, "request")]
    equal(len(set(map(json.dumps, prompts))), 4)
    equal([s["id"] for s in plan_of(packet)["suite"]["steps"]], ["one", "two", "one#2", "two#2"])
    fixed = suite_file(stet, "fixed", [say("one", "a")], nonce=False)
    stet.refuses(2, "bench", "-m", MODEL, "--suite", fixed, "--repeats", "2", "--out", stet.folder / "x", says="may be asked once")


def test_boundaries(stet: Stet) -> None:
    after = [say(f"next-{n}", "What now?") for n in range(4)]
    steps = [after[0], say("leave", "A long tale, please.", action={"cancel_after_tokens": 3}), after[1],
             say("before", "A long tale, please.", action={"cancel_after_tokens": 0}), after[2],
             say("stop", "A tale.", stop=["e"]), after[3], {"rounds": 3, "steps": [say("round", "Again?")]}]  # fmt: skip
    suite = suite_file(stet, "edges", steps, nonce=False, repeats_allowed=True, ordered=True)
    found, packet, _ = bench(stet, "-m", MODEL, "--suite", suite, "--teacher", "self", *ASKED)
    rows = {r["step"]: r for r in found["arms"][1]["requests"]}
    check(rows["leave"]["cancelled_by_client"] and rows["leave"]["tokens"] >= 3, rows["leave"])
    check(rows["before"]["cancelled_by_client"], rows["before"])
    equal(rows["before"]["tokens"], 0)
    equal(len({rows[f"next-{n}"]["digest"] for n in range(4)}), 1, "the same question, whatever was asked before")
    equal(len({rows[f"round@{n}"]["digest"] for n in (1, 2, 3)}), 1)
    equal(found["verdict"], "valid", found["arms"][1]["invalid"])


def test_against_stet_serve(stet: Stet) -> None:
    suite = quick(stet)
    _, teacher, _ = bench(stet, "-m", MODEL, "--suite", suite, "--as-teacher", *ASKED)
    process, url = server(stet, MODEL, "--draft", "ngram")
    try:
        found, packet, _ = bench(stet, "--endpoint", url, "--suite", suite, "--teacher", teacher, "--quiet")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
    arm = found["arms"][0]
    equal((found["verdict"], arm["exactness"]["status"]), ("valid", "proved"), arm)
    equal([r["usage"]["cached_tokens"] for r in arm["requests"]], [0, 0])
    check(all(r["tokens_per_cycle"] >= 1 for r in arm["requests"]), "the cycles were reported")
    check(all("server_ns" in e for e in events_of(packet, "chunk") if e.get("token_ids")), "the server's clock")
    equal(plan_of(packet)["arms"][0]["what"]["adapter"], "stet")
    equal(events_of(packet, "start")[0]["fresh"], False)


def answer(body: dict, cached: int | None = 0, ids: bool = True, counted: int = 12):
    yield chunk()
    for n in range(12):
        yield chunk("ab"[n % 2] * (n + 1), [50 + n * n] if ids else None)
    yield chunk("", [] if ids else None, "length" if body["max_tokens"] == 12 else "stop")
    yield usage(9, counted, cached)
    yield "[DONE]"


def cut(body: dict):
    yield chunk("a", [1])
    yield chunk("b", [2])
    yield None


def test_servers_that_prove_too_little_or_lie(stet: Stet) -> None:
    suite = quick(stet)
    for name, answers, reason in (
        ("no cached_tokens", lambda b: answer(b, cached=None), "cache unproven"),
        ("warm", lambda b: answer(b, cached=5), "warm cache"),
        ("no ids", lambda b: answer(b, ids=False), "token ids"),
        ("another count", lambda b: answer(b, counted=13), "count mismatch"),
        ("cut", cut, "truncated events"),
    ):
        with FakeServer(answers) as fake:
            found, _, table = bench(stet, "--endpoint", fake.url, "--suite", suite, "--nonce-seed", "1", "--quiet", code=7)
        reasons = found["arms"][0]["invalid"] + found["arms"][0]["unproven"]
        check(any(reason in r for r in reasons), f"{name}: {reasons}")
        check(reason in table, f"{name}: {table}")
        equal(len(fake.requests), 2, f"{name}: nothing is sent again")
        check(fake.requests[0]["stream"] and fake.requests[0]["stream_options"] == {"include_usage": True}, fake.requests[0])


def test_a_key_is_used_and_never_written(stet: Stet) -> None:
    key = stet.folder / "key"
    key.write_text("sk-test-0123456789abcdef\n")
    suite = quick(stet)
    with FakeServer(answer, key="sk-test-0123456789abcdef") as fake:
        stet.refuses(3, "bench", "--endpoint", fake.url, "--suite", suite, "--out", stet.folder / "x", says="--api-key-file")
        _, packet, _ = bench(stet, "--endpoint", fake.url, "--suite", suite, "--api-key-file", key, "--quiet", code=7)
    for file in packet.iterdir():
        check("0123456789abcdef" not in file.read_text(), file)


def test_killed_runs_say_incomplete(stet: Stet) -> None:
    suite = suite_file(stet, "slow", [say(f"s{n}", f"Tale {n}.", max_tokens=300) for n in range(60)])
    for how, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        packet = fresh(stet, "killed")
        process = stet.start("bench", "-m", MODEL, "--suite", suite, "--out", packet, "--ledger", stet.folder / "l", *ASKED)
        partial, end = packet.with_name(packet.name + ".partial"), time.monotonic() + TIMEOUT_S
        while time.monotonic() < end and not (partial.exists() and (partial / "events.jsonl").exists() and '"end"' in (partial / "events.jsonl").read_text()):
            time.sleep(0.02)
        process.send_signal(how)
        process.communicate(timeout=TIMEOUT_S)
        equal(process.returncode, code)
        check(partial.exists() and not packet.exists(), f"after {how}")
    plan = json.loads((partial / "plan.json").read_text())
    equal(len(plan["requests"]), 60, "the plan was whole before the first answer")


def test_verify_agrees(stet: Stet) -> None:
    if not re.search(rb"^  verify ", stet("--help").out, re.M):
        raise Skip("there is no stet verify yet")
    _, packet, _ = bench(stet, "-m", MODEL, "--suite", quick(stet), "--teacher", "self", "--draft", "ngram", *ASKED)
    stet.ok("verify", packet)


def test_composed_suites_are_what_their_script_writes(_: Stet) -> None:
    script = TESTS_FOLDER.parent / "tools/make_suites.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    equal(done.returncode, 0, done.stderr)


def test_every_test_that_the_page_names_exists(_: Stet) -> None:
    root = TESTS_FOLDER.parent
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (root / "src").rglob("*_test.cpp"))
    there = {f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", sources, re.M)}
    lines = [line for page in sorted((root / "docs").glob("benchmark*.md")) for line in page.read_text(encoding="utf-8").splitlines()]
    named = [name for line in lines if line.startswith("|") for name in re.findall(r"`([A-Z]\w*\.[A-Z]\w*)`", line)]
    check(len(named) > 40, f"only {len(named)} names were found")
    equal([name for name in named if name not in there], [], "tests that are not there")


def test_nothing_private_in_a_packet(stet: Stet) -> None:
    model = stet.folder / "plain.gguf"
    stet.ok("synth", MODEL, "--out", model)
    _, packet, _ = bench(stet, "-m", model, "--suite", quick(stet), *ASKED, code=7)
    equal(plan_of(packet)["arms"][0]["what"]["model"], "plain.gguf")
    for file in packet.iterdir():
        check(str(stet.folder) not in file.read_text(), f"{file} holds a path")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("--only", default="", help="only the tests with this in their name")
    args = parser.parse_args()
    tests = [function for name, function in globals().items() if name.startswith("test_")]
    with tempfile.TemporaryDirectory(prefix="stet-bench-") as folder:
        return run_tests(tests, Stet(args.program, pathlib.Path(folder)), args.only)


if __name__ == "__main__":
    sys.exit(main())
