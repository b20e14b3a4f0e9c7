"""stet replay --diff and stet profile."""

from __future__ import annotations

import json

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
    cuda = stet("replay", "-m", TINY, "--diff", "cpu,cuda", "-p", "x", "-n", 2)
    check(cuda.code == 0 or (cuda.code == 4 and "no GPU" in cuda.err), cuda)


def profile_adds_up(stet: Stet) -> None:
    flags = ("profile", "-m", TINY, "--context", 16, "--repeats", 8, "--cycles", 6, "--draft", "ngram", "-q")
    # A machine that is busy may not reconcile, and then says so.
    result = stet(*flags, "--json", "--trace", "trace.json")
    found = json.loads(result.out)
    equal(result.code, 0 if found["reconciles"] else 7, result)
    check(found["reconciles"] or "more than 3 %" in result.err, result)
    whole, cycle = found["pass"], found["cycle"]
    parts = sum(stage["seconds"] for stage in whole["stages"]) + whole["outside_seconds"]
    check(abs(parts - whole["parts_seconds"]) < 1e-9, (parts, whole["parts_seconds"]))
    check(abs(whole["measured_seconds"] - whole["parts_seconds"] - whole["gap_seconds"]) < 1e-9, whole)
    phases = sum(cycle[f"{phase}_seconds"] for phase in ("draft", "verify", "accept", "commit", "between"))
    check(abs(phases - cycle["parts_seconds"]) < 1e-9, cycle)
    equal(found["reconciles"], whole["reconciles"] and cycle["reconciles"])
    equal(sum(kind["stages"] for kind in whole["kinds"]), len(whole["stages"]))
    check(any(stage["name"] == "blk.1.attn_q+attn_k+attn_v" for stage in whole["stages"]), whole["stages"])
    check(found["ceiling_bytes_per_second"] > 1e8, found)
    trace = json.loads((stet.folder / "trace.json").read_bytes())
    names = {event["name"] for event in trace["traceEvents"] if event["ph"] == "X"}
    check({"cycle", "draft", "verify", "accept", "commit", "blk.0.ffn_down", "output"} <= names, names)


def profile_prints_a_table(stet: Stet) -> None:
    flags = ("profile", "-m", TINY, "--context", 0, "--repeats", 4, "--cycles", 0)
    kinds, stages = stet(*flags).out.decode(), stet(*flags, "--all").out.decode()
    for words in ("read ceiling", "% ceiling", "\nattn_q+attn_k+attn_v ", "\nall stages ", "\ngap ", "the pass, nothing watching", "(synthetic)"):
        check(words in kinds, f"{words!r} is not in {kinds}")
    check("\nblk.1.attn_q+attn_k+attn_v " in stages and "a cycle" not in stages, stages)
    stet.refuses(2, *flags, "--trace", "trace.json", says="--cycles")
    stet.refuses(2, "profile", "-m", TINY, "--draft-depth", 3, says="--draft")


TESTS = [replay_compares_two_interpreters, replay_refuses, profile_adds_up, profile_prints_a_table]
