"""stet replay --diff."""

from __future__ import annotations

from harness import Stet, check, equal

TINY = "synth:tiny-gqa:q4_0"


def replay_compares_two_interpreters(stet: Stet) -> None:
    flags = ("replay", "-m", TINY, "--diff", "cpu:scalar,cpu", "-p", "0123456789", "--raw", "-n", 3)
    result = stet.ok(*flags)
    line = result.out.decode()
    check(line.startswith("cpu:scalar and cpu:") and line.count("\n") == 1, line)
    check(" equal: 9 passes (eager, recorded, replayed; 10 prompt tokens, 3 of output)" in line and "(synthetic model)" in line, line)
    found = stet.json(*flags, "--rows", 2)
    equal((found["equal"], found["difference"], found["passes"], found["prompt_tokens"]), (True, None, 12, 10))
    equal(found["token_ids"], stet.json("run", "-m", TINY, "-p", "0123456789", "--raw", "-n", 3, "--ignore-eos")["token_ids"], "the answer")
    one = stet.json(*flags, "--replay", "replayed")
    equal((one["forms"], one["passes"], one["commands"]), (["replayed"], 3, 3))
    check(0 < one["compared_values"] < found["compared_values"] and 0 < one["cache_values"] < found["cache_values"], one)


def replay_refuses(stet: Stet) -> None:
    stet.refuses(2, "replay", "-m", TINY, "-p", "x", says="--diff")
    stet.refuses(2, "replay", "-m", TINY, "--diff", "cpu,cpu", says="-p")
    stet.refuses(2, "replay", "-m", TINY, "--diff", "cpu", "-p", "x", says=("two sides", "cpu"))
    stet.refuses(2, "replay", "-m", TINY, "--diff", "cpu,tpu", "-p", "x", says="tpu")
    stet.refuses(2, "replay", "-m", TINY, "--diff", "cpu:sse,cpu", "-p", "x", says=("sse", "avx2"))
    stet.refuses(2, "replay", "-m", TINY, "--diff", "cpu,cuda:avx2", "-p", "x", says="cuda:avx2")


TESTS = [replay_compares_two_interpreters, replay_refuses]
