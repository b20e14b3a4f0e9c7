"""What was sent and what came back, counted so that the server's own counters can be held against it."""

from __future__ import annotations

import collections
import threading


class Tally:
    """Thread-safe. An endpoint is one as /metrics names it; requests that the transport refuses have none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: collections.Counter[str] = collections.Counter()  # by kind; cut ones count
        self.outcomes: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.answered: collections.Counter[tuple[str, int]] = collections.Counter()
        self.reached: collections.Counter[str] = collections.Counter()  # the server had it; its status is unknown
        self.perhaps: collections.Counter[str] = collections.Counter()  # it may not even have had it
        self.refused: collections.Counter[int] = collections.Counter()  # by the transport
        self.perhaps_refused = 0
        self.ids_checked = 0  # token ids that were compared with the plain decoder's
        self.generations = 0  # answers that were checked whole

    def sent(self, kind: str, count: int = 1) -> None:
        with self.lock:
            self.requests[kind] += count

    def outcome(self, kind: str, what: str, count: int = 1) -> None:
        with self.lock:
            self.outcomes[kind][what] += count

    def answer(self, endpoint: str | None, status: int) -> None:
        with self.lock:
            if endpoint is None:
                self.refused[status] += 1
            else:
                self.answered[endpoint, status] += 1

    def cut(self, endpoint: str, had: bool) -> None:
        """A request whose client left; had: something of its answer had come."""
        with self.lock:
            (self.reached if had else self.perhaps)[endpoint] += 1

    def maybe_refused(self) -> None:
        with self.lock:
            self.perhaps_refused += 1

    def checked(self, ids: int) -> None:
        with self.lock:
            self.ids_checked += ids
            self.generations += 1


def by_label(metrics: dict, name: str, *labels: str) -> dict:
    out = collections.Counter()
    for (metric, pairs), value in metrics.items():
        if metric == name:
            values = dict(pairs)
            out[tuple(values[label] for label in labels)] += int(value)
    return out


def differences(tally: Tally, metrics: dict, status: dict, logged: collections.Counter) -> list[str]:
    """What does not add up between what was sent, /metrics, /status and the log. Empty: all of it does."""
    out = []
    counted = {(e, int(s)): n for (e, s), n in by_label(metrics, "stet_requests_total", "endpoint", "status").items()}
    for endpoint in sorted({e for e, _ in counted} | {e for e, _ in tally.answered} | set(tally.reached)):
        sure = sum(n for (e, _), n in tally.answered.items() if e == endpoint) + tally.reached[endpoint]
        most = sure + tally.perhaps[endpoint]
        total = sum(n for (e, _), n in counted.items() if e == endpoint)
        if not sure <= total <= most:
            out.append(f"{endpoint}: {sure} to {most} requests were sent, /metrics counts {total}")
        unknown = tally.reached[endpoint] + tally.perhaps[endpoint]
        for code in sorted({s for e, s in [*counted, *tally.answered] if e == endpoint}):
            seen, said = tally.answered[endpoint, code], counted.get((endpoint, code), 0)
            if not seen <= said <= seen + unknown:
                out.append(f"{endpoint} {code}: {seen} came back (and {unknown} unknown), /metrics counts {said}")
    out += _engine_differences(tally, metrics, status, counted)
    lines, requests, sure = sum(logged.values()), sum(counted.values()), sum(tally.refused.values())
    if not sure <= lines - requests <= sure + tally.perhaps_refused:
        out.append(
            f"the log has {lines} lines of requests, /metrics {requests}; the transport refused {sure} to "
            f"{sure + tally.perhaps_refused}"
        )
    return out


def _engine_differences(tally: Tally, metrics: dict, status: dict, counted: dict) -> list[str]:
    totals = status["totals"]
    finishes = by_label(metrics, "stet_generations_total", "finish")
    full = sum(n for (_, code), n in counted.items() if code == 429)
    pairs = [
        ("generations", sum(finishes.values()), totals["finished"] + totals["cancelled"] + totals["failed"]),
        ("cancelled generations", finishes[("cancelled",)], totals["cancelled"] + totals["failed"]),
        ("failed generations", totals["failed"], 0),
        ("refused by the queue", full, totals["refused"]),
        ("active requests", int(metrics["stet_active_requests", ()]), 0),
        ("waiting requests", int(metrics["stet_queue_waiting", ()]), 0),
        ("cycles", int(metrics["stet_cycles_total", ()]), totals["cycles"]),
        ("generated tokens", int(metrics["stet_generated_tokens_total", ()]), totals["output_tokens"]),
        ("prompt tokens", int(metrics["stet_prompt_tokens_total", ()]), totals["prompt_tokens"]),
        ("accepted tokens", int(metrics["stet_accepted_tokens_total", ()]), totals["accepted"]),
    ]
    out = [f"{what}: /metrics has {a}, /status {b}" for what, a, b in pairs if a != b]
    if totals["output_tokens"] < tally.ids_checked:
        out.append(f"{tally.ids_checked} ids came back, but {totals['output_tokens']} were generated")
    if totals["finished"] < tally.generations:
        out.append(f"{tally.generations} whole answers came back, but {totals['finished']} were finished")
    return out
