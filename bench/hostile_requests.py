#!/usr/bin/env python3
"""Thousands of requests of a hostile mix against a `stet serve` of its own.

  python3 bench/hostile_requests.py build/stet --hold 130          10,000 cases; stalled clients up to their limits
  python3 bench/hostile_requests.py build/stet --requests 600      the short version of ./check
  python3 bench/hostile_requests.py build/stet --case 4711         one case of the same plan again
  python3 bench/hostile_requests.py build-asan/stet --requests 600 --sanitized --oracle build/stet

The answers that are right come from the plain decoder, one fresh process each (hostile/expected.py). A case is drawn from
its number and --seed, so it is the same in every run; most cases send one request, some send hundreds. Whatever a case gets
that is not among the outcomes allowed for it is a failure, shown with the bytes that were sent.

Prints a table, one JSON object, and 'N passed, N failed' (a kind of request counts as one check). Standard library only.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "hostile"))

import disconnects  # noqa: E402
import held  # noqa: E402
import malformed  # noqa: E402
import ordinary  # noqa: E402
import phases  # noqa: E402
from context import Context  # noqa: E402
from expected import Oracle, make_all  # noqa: E402
from served import Served, plain_environment  # noqa: E402
from tally import Tally, differences  # noqa: E402
from wire import PATIENCE_S, Hurried, Wrong, wait_until  # noqa: E402

DISTINCT = 24
SHOWN_FAILURES, SHOWN_BYTES = 20, 1500

# kind -> function, cases in 10,000
KINDS = {
    "ordinary": (ordinary.one, 1300), "kept alive": (ordinary.kept_alive, 400), "HTTP/1.0": (ordinary.http_1_0, 200),
    "chunked": (ordinary.in_chunks, 300), "Expect": (ordinary.expecting, 200), "oddly written": (ordinary.oddly_written, 260),
    "reads, tokens": (ordinary.reading, 300), "pipelined": (disconnects.pipelined, 300),
    "pipelined reads": (disconnects.pipelined_reads, 40), "slow writer": (disconnects.slow_writer, 120),
    "slow reader": (disconnects.slow_reader, 120), "cancelled stream": (disconnects.cancel, 300),
    "burst": (disconnects.burst, 30), "burst that leaves": (disconnects.stampede, 30),
    "wrong framing": (malformed.run, 330), "wrong heads": (malformed.run, 330), "wrong host or origin": (malformed.run, 200),
    "garbage": (malformed.run, 200), "wrong paths": (malformed.run, 150), "wrong JSON": (malformed.run, 330),
    "wrong fields": (malformed.run, 330), "prompts too long": (malformed.run, 50), "wrong tokens": (malformed.run, 60),
    "wrong messages": (malformed.run, 60), "body too long": (malformed.run_too_long, 100),
}  # fmt: skip
# kind -> function; these share the rest, by the length of what is cut
CUTS = {
    "cut in the request": disconnects.cut_request, "cut in a stream": disconnects.cut_answer,
    "cut in an answer": disconnects.cut_whole_answer,
}  # fmt: skip
SLACK = 8  # bytes by which answers to one request differ: the digits of ids and counts


def make_plan(count: int, seed: int, lengths: dict[str, int]) -> tuple[list[tuple[str, int]], dict[str, float]]:
    """(kind, number) for each case, and which share of the places to cut has its turn: all, where there are enough cases."""
    plan, covered = [], {}
    for kind, (_, share) in KINDS.items():
        plan += [(kind, i) for i in range(max(2, round(share * count / 10_000)))]
    left, total = max(30, count - len(plan)), sum(lengths.values())
    for kind, length in lengths.items():
        cases = round(left * length / total)
        # Spread evenly, with the first and the last offset among them.
        plan += [(kind, i % length if cases >= length else i * (length - 1) // max(1, cases - 1)) for i in range(cases)]
        covered[kind] = min(cases, length) / length
    random.Random(f"plan:{seed}").shuffle(plan)
    return plan, covered


class Failures:
    def __init__(self, folder: pathlib.Path):
        self.lock, self.folder, self.all = threading.Lock(), folder, []

    def add(self, kind: str, case: int | None, what: str, lines: list) -> None:
        with self.lock:
            sent = [bytes(line.sent) for line in lines]
            files = []
            for i, data in enumerate(sent):
                self.folder.mkdir(parents=True, exist_ok=True)
                files.append(self.folder / f"{case}-{i}.request")
                files[-1].write_bytes(data)
            self.all.append({"kind": kind, "case": case, "what": what, "bytes": [str(f) for f in files]})
            if len(self.all) > SHOWN_FAILURES:
                return
            print(f"FAILED case {case}, {kind}: {what}", file=sys.stderr)
            for data, file in zip(sent, files):
                print(f"  {len(data)} bytes sent, in {file}: {data[:SHOWN_BYTES]!r}", file=sys.stderr)


class Run:
    def __init__(self, ctx: Context, server: Served, seed: int, failures: Failures):
        self.ctx, self.server, self.seed, self.failures = ctx, server, seed, failures
        self.running: set[int] = set()

    def case(self, number: int, kind: str, offset: int) -> None:
        """Nothing once the server has ended."""
        if self.server.process.poll() is not None:
            return
        self.running.add(number)
        self._case(number, kind, offset)
        if self.server.process.poll() is not None:
            raise SystemExit(
                f"the server ended by itself, exit code {self.server.process.returncode}, while the cases "
                f"{sorted(self.running)} ran; its log ends so:\n" + "\n".join(self.server.lines[-40:])
            )
        self.running.discard(number)

    def _case(self, number: int, kind: str, offset: int) -> None:
        function = CUTS[kind] if kind in CUTS else KINDS[kind][0]
        ctx = self.ctx.of_case()
        try:
            outcome = function(ctx, kind, random.Random(f"case:{self.seed}:{number}"), offset)
            ctx.tally.outcome(kind, outcome)
        except (Wrong, Hurried, OSError) as error:
            ctx.tally.outcome(kind, "FAILED")
            self.failures.add(kind, number, f"{type(error).__name__}: {error}", ctx.lines)
        except Exception:  # what the checks did not think of is a failure, too
            ctx.tally.outcome(kind, "FAILED")
            self.failures.add(kind, number, traceback.format_exc(), ctx.lines)
        finally:
            for line in ctx.lines:
                line.close()

    def cases(self, plan: list[tuple[int, str, int]], workers: int) -> None:
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for future in [pool.submit(self.case, *item) for item in plan]:
                future.result()


class Checks:
    """Named checks beside the kinds of requests."""

    def __init__(self) -> None:
        self.results: dict[str, str] = {}  # name -> what is wrong, or nothing

    def check(self, name: str, good: bool, what: object = "") -> None:
        self.results[name] = "" if good else str(what) or "no"

    def attempt(self, name: str, function: object) -> None:
        try:
            print(f"{name}: {function()}", file=sys.stderr)
            self.results[name] = ""
        except (Wrong, Hurried, OSError) as error:
            self.results[name] = f"{type(error).__name__}: {error}"


class Bench:
    def __init__(self, args: argparse.Namespace, folder: pathlib.Path):
        self.args, self.environment = args, plain_environment(folder)
        self.flags = ["--ctx", str(args.ctx), "--threads", str(args.threads), "--pack", args.pack]
        self.patience = PATIENCE_S * (5 if args.sanitized else 1)
        self.checks, self.failures = Checks(), Failures(args.failures)
        self.report: dict = {}

    def serve(self, *flags: str) -> Served:
        flags_of_it = [*self.flags, "--draft", self.args.draft, *flags]
        return Served(self.args.program, self.args.model, flags_of_it, self.environment)

    def context(self, server: Served) -> Context:
        return Context(server.address, self.expected, Tally(), self.patience)

    def main(self) -> int:
        began = time.monotonic()
        args = self.args
        self.expected = make_all(Oracle(args.oracle or args.program, args.model, self.flags, self.environment), DISTINCT, args.seed)
        ids = sum(len(e.ids) for e in self.expected)
        print(f"{DISTINCT} requests answered by the plain decoder, {ids} ids, {time.monotonic() - began:.1f} s", file=sys.stderr)
        self.mix()
        if args.case is None:
            self.other_servers()
        self.report["seconds"] = round(time.monotonic() - began, 1)
        return self.tell()

    def mix(self) -> None:
        args = self.args
        server = self.serve("--queue", str(args.queue))
        self.start = (server.descriptors(), server.threads(), server.memory_kib())
        ctx = self.ctx = self.context(server)
        run = Run(ctx, server, args.seed, self.failures)
        run.case(-1, "ordinary", 0)
        # Every offset of the request in every way of leaving, every offset of both answers.
        lengths = {"cut in the request": (disconnects.request_length(ctx) + 1) * len(disconnects.WAYS)}
        for kind, stream in (("cut in a stream", True), ("cut in an answer", False)):
            lengths[kind] = disconnects.answer_length(ctx, stream) + 1 - SLACK
        cases, covered = make_plan(args.requests, args.seed, lengths)
        plan = [(i, *case) for i, case in enumerate(cases)]
        self.report |= {"cases": len(plan), "places_to_cut": lengths, "share_of_places": covered}
        if args.case is not None:
            plan = [plan[args.case]]
        began = time.monotonic()
        waiting = held.Held(ctx, 8 if args.requests >= 5000 else 2) if args.case is None else None
        self.by_tenths = []
        for i in range(10):
            run.cases(plan[i * len(plan) // 10 : (i + 1) * len(plan) // 10], args.workers)
            self.by_tenths.append(self.at_rest(server, with_held=True))
        self.early = self.by_tenths[0]
        for what in waiting.finish(args.hold) if waiting else ():
            self.failures.add("held", None, what, [])
        self.report["mix_seconds"] = round(time.monotonic() - began, 1)
        if args.case is None:
            self.checks.attempt("too many connections", lambda: phases.flood(ctx, "too many connections"))
        if args.case is None and not args.sanitized:
            bound = args.memory_mib * 1024
            self.checks.attempt("memory of long bodies", lambda: phases.long_bodies(ctx, "long bodies", server, bound))
        self.after_mix(server)

    def at_rest(self, server: Served, with_held: bool = False) -> dict[str, int]:
        """The memory once nothing is under way."""

        def quiet() -> bool:
            status = server.status()
            self.ctx.tally.answer("/status", 200)
            return status["active"] is None and status["queue"]["waiting"] == 0

        wait_until(quiet, self.patience)
        if not with_held:
            wait_until(lambda: server.descriptors() <= self.start[0], self.patience)
        return server.memory_kib()

    def after_mix(self, server: Served) -> None:
        checks, args = self.checks, self.args
        end = self.at_rest(server)
        descriptors, threads, start = self.start
        checks.check("descriptors", server.descriptors() == descriptors, f"{descriptors} before, {server.descriptors()} after")
        checks.check("threads", server.threads() == threads, f"{threads} before, {server.threads()} after")
        bound = args.memory_mib * 1024
        grown = end["VmRSS"] - self.early["VmRSS"]
        if not args.sanitized and args.case is None:
            checks.check("memory is steady", grown <= bound, f"{self.early} after a tenth, {end} in the end: {grown} KiB more")
        self.report["memory_kib"] = {"start": start, "after_a_tenth": self.early, "end": end, "bound_kib": bound}
        self.report["memory_kib"]["after_each_tenth"] = [m["VmRSS"] for m in self.by_tenths]
        self.report["descriptors"], self.report["threads"] = descriptors, threads
        self.reconcile(server)
        final = Run(self.ctx, server, args.seed, self.failures)
        before = len(self.failures.all)
        for number in range(3):
            final.case(-2 - number, "ordinary", 0)
        checks.check("ordinary requests in the end", len(self.failures.all) == before, "see above")
        code = server.end()
        checks.check("SIGTERM ends it with 0", code == 0, f"exit code {code}: {server.lines[-20:]}")
        text = "\n".join(server.lines)
        found = [w for w in ("Sanitizer", "runtime error", "WARNING: ThreadSanitizer", "internal error") if w in text]
        checks.check("nothing in the log that is a bug", not found, text[-4000:] if found else "")

    def reconcile(self, server: Served) -> None:
        """Counters are written after an answer is sent, so they get a moment."""
        tally = self.ctx.tally
        for attempt in range(20):
            status = server.status()
            tally.answer("/status", 200)
            # /metrics does not count the request that asks for it, so the log is read before that has its line.
            time.sleep(0.1)
            logged = server.by_status.copy()
            metrics = server.metrics()
            wrong = differences(tally, metrics, status, logged)
            tally.answer("/metrics", 200)
            if not wrong:
                break
            time.sleep(0.25)
        self.checks.check("counters reconcile", not wrong, "; ".join(wrong))
        self.report["counted"] = {"status": status["totals"], "log_lines": sum(logged.values())}

    def other_servers(self) -> None:
        for name, flags, phase in (
            ("deadline", ("--deadline", "1"), phases.deadline),
            ("graceful stop", ("--grace", "120"), phases.graceful_stop),
            ("hard stop", ("--grace", "0"), phases.hard_stop),
        ):
            server = self.serve(*flags)
            ctx = self.context(server)
            self.checks.attempt(name, lambda: phase(ctx, name, server))  # noqa: B023: called at once
            code = server.end()
            self.checks.check(f"exit code after {name}", code == 0, f"{code}: {server.lines[-20:]}")
            self.ctx.tally.sent(name, ctx.tally.requests[name])

    def tell(self) -> int:
        tally = self.ctx.tally
        print(f"{'kind':<24} {'requests':>8}  outcomes")
        for kind, count in sorted(tally.requests.items(), key=lambda item: -item[1]):
            outcomes = ", ".join(f"{n} {what}" for what, n in tally.outcomes[kind].most_common())
            print(f"{kind:<24} {count:>8}  {outcomes}")
        memory = self.report["memory_kib"]
        for kind, share in self.report["share_of_places"].items():
            print(f"{kind}: {100 * share:.0f} % of {self.report['places_to_cut'][kind]} places")
        tenths = " ".join(f"{m['VmRSS'] / 1024:.1f}" for m in self.by_tenths)
        start, end = (memory[name]["VmRSS"] / 1024 for name in ("start", "end"))
        print(f"memory in MiB: start {start:.1f}, after each tenth {tenths}, end {end:.1f}; bound: {memory['bound_kib'] / 1024:.0f} more than after the first")
        for name, wrong in self.checks.results.items():
            print(f"{'FAILED' if wrong else 'ok':<7}{name}{': ' + wrong if wrong else ''}")
        kinds = {k for k in tally.requests if k in KINDS or k in CUTS}
        failed_kinds = {f["kind"] for f in self.failures.all}
        failed = len(failed_kinds) + sum(1 for wrong in self.checks.results.values() if wrong)
        passed = len(kinds - failed_kinds) + sum(1 for wrong in self.checks.results.values() if not wrong)
        self.report |= {
            "requests": sum(tally.requests.values()), "by_kind": dict(tally.requests),
            "outcomes": {kind: dict(o) for kind, o in tally.outcomes.items()}, "whole_answers": tally.generations,
            "ids_compared": tally.ids_checked, "failures": self.failures.all[:100], "failed": failed, "passed": passed,
            "checks": self.checks.results, "model": self.args.model, "seed": self.args.seed, "draft": self.args.draft,
            "distinct_answers": len({tuple(e.ids) for e in self.expected}),
        }  # fmt: skip
        print(json.dumps(self.report))
        print(f"{passed} passed, {failed} failed")
        return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("--oracle", type=pathlib.Path, help="the program that answers first, where it is another build")
    parser.add_argument("--model", default="synth:tiny:q4_0")
    parser.add_argument("--requests", type=int, default=10_000, help="cases of the mix (10000)")
    parser.add_argument("--workers", type=int, default=12, help="cases at a time (12)")
    parser.add_argument("--seed", type=int, default=1, help="of the plan, the prompts and every case (1)")
    parser.add_argument("--case", type=int, help="this case of the plan only")
    parser.add_argument("--ctx", type=int, default=400)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pack", default="none")
    parser.add_argument("--draft", default="ngram", help="of the server; the plain decoder has none (ngram)")
    parser.add_argument("--queue", type=int, default=16)
    parser.add_argument("--hold", type=float, default=0, help="seconds to hold silent connections for; their limits are 30 to 120 (0)")
    parser.add_argument("--memory-mib", type=int, default=8, help="how much more memory in the end than after a tenth (8)")
    parser.add_argument("--sanitized", action="store_true", help="a build with sanitizers: slow, and its memory means nothing")
    parser.add_argument("--failures", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "stet-hostile")
    args = parser.parse_args()
    args.program = args.program.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory(prefix="stet-hostile-") as folder:
        return Bench(args, pathlib.Path(folder)).main()


if __name__ == "__main__":
    sys.exit(main())
