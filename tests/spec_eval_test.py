#!/usr/bin/env python3
"""stet spec-eval from end to end, with synthetic models: freeze, run, verify, rerun, trace, and what is refused.

  python3 tests/spec_eval_test.py build/stet [--only NAME]

Ends with 'N passed, N failed'. Standard library only. A run that the machine disturbed (stolen time, throttling, swapping) proves
nothing, as it should: such a test is skipped.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import re
import sys
import tempfile
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cli"))

from harness import DISTURBED, Result, Skip, Stet, check, equal, run_tests  # noqa: E402

MODEL = ("-m", "synth:tiny:q4_0", "--threads", 1, "--pack", "none")
DRAFT = "--draft model:synth:tiny:q8_0 --draft-depth"
ARMS = (*MODEL, "--current", f"{DRAFT} 1", "--candidate", f"{DRAFT} 2")
POLICY = ("--policy", "two proposals, always", "--input", "current prefix tokens")
LEDGER = ("--ledger", "l.sqlite")
# As the contract in the binary, with few requests: at the small scale their answers may have fewer than 64 tokens together.
SMALL = pathlib.Path(__file__).resolve().parent.parent / "src/lab/spec_eval/spec-eval-contract-v1.json"


def small_contract(stet: Stet) -> str:
    contract = json.loads(SMALL.read_text(encoding="utf-8"))
    contract.update({"contract_id": "small", "logprob_positions": 16, "short": {"code": 1, "mixed": 2, "exact": 1}, "long": {"2048": 1, "4096": 1}})
    (stet.folder / "contract.json").write_text(json.dumps(contract))
    return "contract.json"


def freeze(stet: Stet, name: str, *args: object, arms: tuple = ARMS) -> str:
    result = stet.ok("spec-eval", "freeze", *arms, *POLICY, "--contract", small_contract(stet), "--scale", 0.05, "-o", name, *LEDGER, *args)
    return result.out.split()[0].decode()


def run(stet: Stet, manifest: str, packet: str, *args: object, arms: tuple = ARMS) -> tuple[Result, dict]:
    result = stet("spec-eval", "run", manifest, *arms, "-o", packet, "-q", *LEDGER, *args)
    path = stet.folder / packet / "results.json"
    check(path.exists(), result)
    found = json.loads(path.read_text())
    if any(reason.startswith(DISTURBED) for reason in found["results"]["reasons"]):
        raise Skip(f"the machine was disturbed: {found['results']['reasons']}")
    return result, found


def attempts(stet: Stet) -> list[dict]:
    return json.loads(stet.ok("ledger", "list", "--json", *LEDGER).out)["attempts"]


def writable(path: pathlib.Path) -> pathlib.Path:
    path.chmod(0o644)
    return path


def gate(found: dict, name: str) -> dict:
    return next(g for g in found["results"]["gates"] if g["name"] == name)


def a_policy_is_judged_and_the_packet_can_be_checked(stet: Stet) -> None:
    sha256 = freeze(stet, "manifest.json", "--attest", "--label", "tiny")
    result, found = run(stet, "manifest.json", "packet")
    equal(found["results"]["verdict"], "screening", found["results"]["reasons"])
    equal(result.code, 7, "a synthetic model has no hash, so its identity is unproven")
    equal(found["plan_sha256"], sha256, "the plan of the packet is the manifest")
    equal((stet.folder / "packet/plan.json").read_bytes(), (stet.folder / "manifest.json").read_bytes())
    for name in ("parity", "state", "reset", "cancel", "target_logprobs", "packs", "cold", "no_reuse", "request_ids", "traces", "attested"):
        equal(gate(found, name)["state"], "passed", gate(found, name))
    equal(gate(found, "identity")["state"], "unproven")
    equal([p["pack"] for p in found["results"]["packs"]], ["A", "B"])
    check("verdict: screening" in result.out.decode() and "hard gates" in result.out.decode(), result)
    verified = json.loads(stet.ok("verify", "packet", "--json").out)
    equal((verified["kind"], verified["verdict"], verified["mismatch"]), ("spec-eval", "screening", None))
    rerun = json.loads(stet("rerun", "packet", *MODEL[:2], "--json", "-q").out)
    check(rerun["differ"] == 0 and rerun["not_confirmed"] == 0 and rerun["confirmed"] > 50, rerun)
    row = attempts(stet)[-1]
    equal((row["kind"], row["verdict"], row["status"]["measurement"], row["status"]["correctness"]), ("spec-eval", "screening", "screening", "exact"))
    check(b"Judgement of a speculation policy" in stet.ok("report", "packet").out, "the report has its title")


def the_order_is_reversed_and_nothing_names_a_request(stet: Stet) -> None:
    freeze(stet, "manifest.json")
    run(stet, "manifest.json", "packet")
    lines = [json.loads(line) for line in (stet.folder / "packet/events.jsonl").read_text().splitlines()]
    order = [(x["arm"], x["start"]) for x in lines if x["type"] == "start"]
    equal(order, [("target", 0), ("current", 0), ("candidate", 0), ("candidate", 1), ("current", 1), ("target", 1)])
    ids = [x["id"] for x in lines if x["type"] == "request"]
    check(len(set(ids)) == len(ids) and all(re.fullmatch("[0-9a-f]{32}", i) for i in ids), ids[:3])
    traces = [json.loads(line) for line in stet.ok("spec-eval", "trace", "packet").out.splitlines()]
    equal(len(traces), sum(x["type"] == "chunk" for x in lines), "a line for every cycle")
    last: dict[str, int] = {}
    for t in traces:
        equal(t["generated_position"], last.get(t["request_id"], 0), t)
        last[t["request_id"]] = t["generated_position"] + t["emitted_tokens"]
    check(any(t["arm"] == "candidate" and t["proposed_depth"] == 2 for t in traces), "the candidate proposes two")
    check(all(t["proposed_depth"] == 0 for t in traces if t["arm"] == "target"), "the target proposes nothing")


def a_forged_figure_is_found(stet: Stet) -> None:
    freeze(stet, "manifest.json")
    run(stet, "manifest.json", "packet")
    for name, old, new in (("results.json", b'"screening"', b'"promoted" '), ("events.jsonl", b'"draft_ns":', b'"draft_ns": ')):
        path = stet.folder / "packet" / name
        good = path.read_bytes()
        path.write_bytes(good.replace(old, new, 1))
        check(stet("verify", "packet").code in (3, 6), f"{name} was changed")
        path.write_bytes(good)
    stet.ok("verify", "packet")


def a_manifest_is_used_once(stet: Stet) -> None:
    freeze(stet, "manifest.json")
    run(stet, "manifest.json", "packet")
    stet.refuses(2, "spec-eval", "run", "manifest.json", *ARMS, "-o", "second", *LEDGER, says="what it found stands")
    equal([a["outcome"] for a in attempts(stet)], ["finished", "refused"])


def what_changed_is_refused_and_recorded(stet: Stet) -> None:
    (stet.folder / "router.bin").write_bytes(b"weights of a router")
    policy_file = ("--policy-file", "router.bin")
    freeze(stet, "manifest.json", *policy_file)
    run_it = ("spec-eval", "run", "manifest.json", "-o", "packet", *LEDGER)
    other = (*MODEL, "--current", f"{DRAFT} 1", "--candidate", f"{DRAFT} 3")
    stet.refuses(2, *run_it, *other, *policy_file, says="the candidate arm was frozen as")
    (stet.folder / "router.bin").write_bytes(b"weights of another one")
    stet.refuses(2, *run_it, *ARMS, *policy_file, says=("files of the policy", "nothing is spent"))
    equal(attempts(stet)[-1]["status"]["infrastructure"], "failed_before_treatment")
    check(not (stet.folder / "packet").exists() and not (stet.folder / "packet.partial").exists(), "nothing was written")
    (stet.folder / "router.bin").write_bytes(b"weights of a router")
    manifest = writable(stet.folder / "manifest.json")
    frozen = manifest.read_text()
    manifest.write_text(frozen.replace("two proposals, always", "two proposals, mostly"))
    stet.refuses(2, *run_it, *ARMS, *policy_file, says="it was changed since, or frozen elsewhere")
    manifest.write_text(re.sub(r'"build_id": "[0-9a-f]', '"build_id": "x', frozen, count=3))
    check(manifest.read_text() != frozen, "another build")
    stet.refuses(2, *run_it, *ARMS, *policy_file, says="changed since")
    manifest.write_text(frozen)
    result, found = run(stet, "manifest.json", "packet", *policy_file)
    equal(found["results"]["verdict"], "screening", result)


def a_seed_belongs_to_one_manifest(stet: Stet) -> None:
    freeze(stet, "first.json")
    run(stet, "first.json", "packet", "--seed", 77)
    freeze(stet, "second.json", "--label", "another candidate")
    stet.refuses(2, "spec-eval", "run", "second.json", *ARMS, "-o", "other", "--seed", 77, *LEDGER, says="a changed candidate needs a new seed")


def a_history_draft_fails_a_hard_gate(stet: Stet) -> None:
    arms = (*MODEL, "--current", f"{DRAFT} 1", "--candidate", "--draft ngram")
    freeze(stet, "manifest.json", arms=arms)
    _, found = run(stet, "manifest.json", "packet", arms=arms)
    equal(gate(found, "no_reuse")["state"], "failed", gate(found, "no_reuse"))


def what_contradicts_itself_is_refused(stet: Stet) -> None:
    out = ("-o", "m.json", *LEDGER)
    same = (*MODEL, "--current", f"{DRAFT} 2", "--candidate", f"{DRAFT} 2")
    threads = (*MODEL, "--current", f"{DRAFT} 1", "--candidate", f"{DRAFT} 2 --threads 2")
    for args, says in (
        ((), "needs an action"),
        (("thaw",), "no action 'thaw'"),
        (("freeze", *ARMS, *out), "--policy is missing"),
        (("freeze", *ARMS, "--policy", "x", *out), "--input is missing"),
        (("freeze", *ARMS, "--policy", "x", "--input", "prompt hash", *out), "must not read 'prompt hash'"),
        (("freeze", *ARMS, "--policy", "x", "--input", "the weather", *out), "knows no policy input"),
        (("freeze", *ARMS, *POLICY, "--seed", 1, *out), "--seed belongs to run"),
        (("freeze", *ARMS, *POLICY, "--scale", 2, *out), "--scale is 2"),
        (("freeze", *same, *POLICY, *out), "are the same"),
        (("freeze", *threads, *POLICY, *out), "what all arms share stands outside"),
        (("freeze", *MODEL, "--current", f"{DRAFT} 1", "--candidate", "--draft none", *POLICY, *out), "proposes nothing"),
        (("freeze", *ARMS, *POLICY, *out), "needs a context of"),
        (("run", *ARMS, "-o", "p", *LEDGER), "needs the manifest"),
        (("run", "m.json", *ARMS, "--attest", "-o", "p", *LEDGER), "the manifest decides"),
        (("trace",), "needs a packet"),
    ):
        stet.refuses(2, "spec-eval", *args, says=says)
    (stet.folder / "bad.json").write_text("{}")
    stet.refuses(3, "spec-eval", "run", "bad.json", *ARMS, "-o", "p", *LEDGER, says="'kind' is missing")
    stet.refuses(3, "spec-eval", "freeze", *ARMS, *POLICY, "--contract", "bad.json", *out, says="is no contract")


TESTS = [a_policy_is_judged_and_the_packet_can_be_checked, the_order_is_reversed_and_nothing_names_a_request, a_forged_figure_is_found,
         a_manifest_is_used_once, what_changed_is_refused_and_recorded, a_seed_belongs_to_one_manifest,
         a_history_draft_fails_a_hard_gate, what_contradicts_itself_is_refused]  # fmt: skip


def in_a_folder_of_its_own(test: Callable[[Stet], None]) -> Callable[[Stet], None]:
    @functools.wraps(test)
    def run_one(stet: Stet) -> None:
        with tempfile.TemporaryDirectory(prefix="stet-spec-eval-") as folder:
            test(Stet(stet.program, pathlib.Path(folder)))

    return run_one


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", default="", help="the tests whose name contains this")
    args = parser.parse_args()
    return run_tests([in_a_folder_of_its_own(t) for t in TESTS], Stet(args.program, pathlib.Path.cwd()), args.only)


if __name__ == "__main__":
    sys.exit(main())
