#!/usr/bin/env python3
"""stet compare, ledger and state from end to end, with programs that measure themselves.

  python3 tests/compare_test.py build/stet [--only NAME]

Ends with 'N passed, N failed'. Standard library only. A run that the machine disturbed (stolen time, throttling, swapping) proves
nothing, as it should: such a test is skipped.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cli"))

from harness import DISTURBED, Result, Skip, Stet, check, equal, run_tests  # noqa: E402

# A rate that depends on the arm, on the point and, by a little, on how often it was asked: no clock, so no luck.
PROGRAM = """
import json, pathlib, sys
rate, context, treated = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
counter = pathlib.Path(sys.argv[4])
n = len(counter.read_text()) if counter.exists() else 0
counter.write_text("x" * (n + 1))
print("what stands above the last line is not read")
print(json.dumps({"decode_tokens_per_second": rate * (1 + 0.002 * (n % 3)) / (1 + context / 1000), "treated": treated, "name": "x"}))
"""


def arm(stet: Stet, rate: float, treated: int, more: str = "") -> str:
    (stet.folder / "program.py").write_text(PROGRAM)
    return f"measure:{sys.executable} -S program.py {rate} {{context}} {treated} count{rate}{treated} {more}".rstrip()


def compare(stet: Stet, a: str, b: str, name: str, *args: object) -> tuple[Result, dict | None]:
    result = stet("compare", a, b, "--out", name, "--ledger", "l.sqlite", "-q", *args)
    if result.code == 3 and any(word in result.err for word in DISTURBED):
        raise Skip(f"the machine was disturbed: {result.err.strip()}")
    path = stet.folder / name / "results.json"
    found = json.loads(path.read_text())["results"] if path.exists() else None
    if found and any(reason.startswith(DISTURBED) for reason in found["reasons"]):
        raise Skip(f"the machine was disturbed: {found['reasons']}")
    return result, found


WITNESS = ("--witness", "--treated=figure:treated", "--figure", "decode_tokens_per_second", "--points", "context=100")


def a_gain_is_promoted(stet: Stet) -> None:
    result, found = compare(stet, arm(stet, 100, 0), arm(stet, 120, 1), "gain", "--rounds", 3, *WITNESS)
    equal((result.code, found["verdict"]), (0, "promoted"), f"{result} {found}")
    text = result.out.decode()
    check(text.startswith("A/A decode_tokens_per_second (context=100): identical starts differed"), "the floor comes first")
    series = found["series"][0]
    check(abs(series["ab"]["ratio"] - 1.2) < 0.01 and series["ab"]["confidence"] == 0.95, series)
    check(series["smallest_detectable_effect"] < 0.01, series)
    equal(found["evidence"], "component")
    equal(found["witnesses"], [{"option": "--treated", "counter": "figure:treated", "control": 0.0, "candidate": 6.0, "holds": True}])
    equal(stet("verify", "gain").code, 0, "verify")


def the_same_twice_is_not(stet: Stet) -> None:
    same = arm(stet, 100, 0)
    result, found = compare(stet, same, same, "same", "--rounds", 3, "--points", "context=100; context=900", "--figure", "decode_tokens_per_second")
    equal((result.code, found["verdict"]), (0, "not promoted"), f"{result} {found}")
    equal([s["point"] for s in found["series"]], ["context=100", "context=900"])
    check(any("within the smallest effect" in reason for reason in found["reasons"]), found["reasons"])


def a_witness_that_is_zero_makes_it_void(stet: Stet) -> None:
    result, found = compare(stet, arm(stet, 100, 0), arm(stet, 120, 0, "again"), "void", "--rounds", 1, *WITNESS)
    equal((result.code, found["verdict"]), (7, "void"), f"{result} {found}")
    check(any("is 0 in the candidate" in reason for reason in found["reasons"]), found["reasons"])
    equal(found["series"], [], "a void run has no number")
    equal(stet("verify", "void").code, 0, "verify")
    row = json.loads(stet("ledger", "list", "--json", "--ledger", "l.sqlite").out)["attempts"][-1]
    equal((row["verdict"], row["status"]["measurement"], row["status"]["infrastructure"]), ("void", "invalid", "sound"))


def a_treated_control_makes_it_void(stet: Stet) -> None:
    _, found = compare(stet, arm(stet, 100, 1), arm(stet, 120, 1), "treated", "--rounds", 1, *WITNESS)
    check(any("the control was treated" in reason for reason in found["reasons"]), found["reasons"])


def a_plan_is_frozen_and_used_up(stet: Stet) -> None:
    a, b = arm(stet, 100, 0), arm(stet, 130, 1)
    frozen = stet("compare", a, b, "--freeze", "plan.json", "--rounds", 1, "--authority", "one-shot", "--seed", 5, *WITNESS)
    equal(frozen.code, 0, frozen)
    stet.refuses(2, "compare", a, b, "--plan", "plan.json", "--rounds", 3, "--out", "x", says="decides --rounds")
    for flag, usual in (("--rounds", 1), ("--aa-rounds", 1), ("--authority", "one-shot"), ("--confidence", 0.95), ("--resamples", 10000),
                        ("--seed", 5), ("--label", ""), WITNESS[:2], WITNESS[2:4], WITNESS[4:], ("--equal", "nothing")):  # fmt: skip
        stet.refuses(2, "compare", a, b, "--plan", "plan.json", flag, usual, "--out", "x", says=f"decides {flag}")
    stet.refuses(2, "compare", b, a, "--plan", "plan.json", "--out", "x", says="the plan compares")
    first, _ = compare(stet, a, b, "first", "--plan", "plan.json")
    check(first.code in (0, 7), first)
    plan_hash = frozen.out.split()[0].decode()
    equal(json.loads((stet.folder / "first/results.json").read_text())["plan_sha256"], plan_hash)
    stet.refuses(2, "compare", a, b, "--plan", "plan.json", "--out", "second", "--ledger", "l.sqlite", says="one-shot")
    rows = json.loads(stet("ledger", "list", "--json", "--ledger", "l.sqlite").out)["attempts"]
    equal([row["outcome"] for row in rows], ["finished", "refused"])


def a_program_that_fails_is_in_the_ledger(stet: Stet) -> None:
    result = stet("compare", f"measure:{sys.executable} -c 'raise SystemExit(9)'", arm(stet, 1, 1), "--out", "x", "--ledger", "l.sqlite", *WITNESS)
    equal(result.code, 3, result)
    check("code 9" in result.err, result.err)
    row = json.loads(stet("ledger", "show", 1, "--json", "--ledger", "l.sqlite").out)
    equal((row["outcome"], row["status"]["infrastructure"], row["treated"]), ("failed", "failed_before_treatment", ""))
    check((stet.folder / "x.partial").is_dir() and not (stet.folder / "x").exists(), "the packet says incomplete")
    state = json.loads(stet("state", "--json", "--ledger", "l.sqlite").out)
    equal([p["running"] for p in state["unfinished_packets"]], [False])


def closed_classes_are_refused_unless_cited(stet: Stet) -> None:
    ledger = ("--ledger", "l.sqlite")
    stet.refuses(2, "ledger", "close", "fusion", "--why", "no gain", *ledger, says="--reopen-only-if")
    closure = json.loads(stet("ledger", "close", "fusion", "--why", "no gain", "--reopen-only-if", "a wider register file", "--json", *ledger).out)["entry"]
    run = ("compare", arm(stet, 1, 0), arm(stet, 1, 1), "--out", "x", "--class", "fusion", *ledger, *WITNESS)
    stet.refuses(2, *run, says="a wider register file")
    result, _ = compare(stet, arm(stet, 1, 0), arm(stet, 1, 1), "cited", "--class", "fusion", "--cite", closure, "--rounds", 1, *WITNESS)
    check(result.code in (0, 7), result)
    exported = json.loads(stet("ledger", "export", *ledger).out)
    equal([a["outcome"] for a in exported["attempts"]], ["refused", "finished"])
    check(str(stet.folder) not in json.dumps(exported), "no path leaves this machine")
    equal(exported["classes"][0]["reopen_only_if"], "a wider register file")


def state_is_what_was_written_down(stet: Stet) -> None:
    stet("state", "--lane", "drafts", "--next", "measure depth 8", "--protect", "packet first", "--why", "the record", "--ledger", "l.sqlite")
    state = json.loads(stet("state", "--json", "--ledger", "l.sqlite").out)
    equal((state["lane"], state["next"], state["protected"][0]["what"], state["running"]), ("drafts", "measure depth 8", "packet first", []))
    stet("state", "--release", "packet first", "--ledger", "l.sqlite")
    equal(json.loads(stet("state", "--json", "--ledger", "l.sqlite").out)["protected"], [])
    stet.refuses(2, "state", "--protect", "x", "--ledger", "l.sqlite", says="--why")


def served_arms_have_the_same_ids_and_sequences(stet: Stet) -> None:
    steps = [{"id": f"s{n}", "class": "ab"[n % 2], "messages": [{"role": "user", "content": f"Tale {n}."}]} for n in range(4)]
    suite = {"suite_id": "served", "version": 1, "description": "a test", "cold": True, "repeats_allowed": False, "ordered": False,
             "nonce": True, "max_tokens": 40, "steps": steps}  # fmt: skip
    (stet.folder / "served.json").write_text(json.dumps(suite))
    a = "serve:-m synth:tiny:q4_0 --ctx 400 --pack none --threads 1"
    asked = ("--suite", "./served.json", "--figure", "wall_rate", "--ignore-eos", "--rounds", 1, "--seed", 3)  # all tokens may come at once
    result, found = compare(stet, a, f"{a[:-1]}2", "served", *asked)
    check(result.code == 0 and found["verdict"] in ("promoted", "not promoted"), f"{result} {found}")
    equal(found["witnesses"], [{"option": "--threads", "counter": "identity:threads=2", "control": 0.0, "candidate": 2.0, "holds": True}])
    events = [json.loads(line) for line in (stet.folder / "served/events.jsonl").read_text().splitlines()]
    starts = [event for event in events if event["type"] == "start"]
    equal((len(starts), {start["fresh"] for start in starts}), (8, {True}), "A-A-A-A and A-B-B-A, each a process of its own")
    equal(len([event for event in events if event["type"] == "request"]), 32)
    equal(stet("verify", "served").code, 0, "verify")
    equal(json.loads((stet.folder / "served/plan.json").read_text())["equal"], "sequences")
    # Another model has other ids, which no verdict survives.
    result, found = compare(stet, a, a.replace("q4_0", "q4_0:2"), "other", *asked, "--equal", "ids", "--witness", "--model=identity:threads=1")
    equal((result.code, found["verdict"]), (6, "void"), f"{result} {found}")


def what_contradicts_itself_is_refused(stet: Stet) -> None:
    for args, says in (
        (("measure:a",), "two arms"),
        (("serve:-m x", "serve:-m x"), "no suite given"),
        (("serve:-m x", "serve:-m x --prompt-rows 8", "--suite", "canary-v1", "--out", "x"), "--witness --prompt-rows=COUNTER"),
        (("http://a", "serve:-m x", "--suite", "canary-v1", "--out", "x"), "is no arm"),
        (("measure:a", "measure:b"), "no packet given"),
        (("measure:a", "measure:b", "--suite", "canary-v1", "--out", "x"), "measures by itself"),
    ):
        stet.refuses(2, "compare", *args, "--ledger", "l.sqlite", says=says)
    stet.refuses(3, "compare", "measure:a", "serve:-m x", "--out", "x", "--ledger", "l.sqlite", says="measures and the other serves")


TESTS = [a_gain_is_promoted, the_same_twice_is_not, a_witness_that_is_zero_makes_it_void, a_treated_control_makes_it_void,
         a_plan_is_frozen_and_used_up, a_program_that_fails_is_in_the_ledger, closed_classes_are_refused_unless_cited,
         state_is_what_was_written_down, served_arms_have_the_same_ids_and_sequences, what_contradicts_itself_is_refused]  # fmt: skip


def in_a_folder_of_its_own(test: Callable[[Stet], None]) -> Callable[[Stet], None]:
    @functools.wraps(test)
    def run(stet: Stet) -> None:
        with tempfile.TemporaryDirectory(prefix="stet-compare-") as folder:
            test(Stet(stet.program, pathlib.Path(folder)))

    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", default="", help="the tests whose name contains this")
    args = parser.parse_args()
    return run_tests([in_a_folder_of_its_own(t) for t in TESTS], Stet(args.program, pathlib.Path.cwd()), args.only)


if __name__ == "__main__":
    sys.exit(main())
