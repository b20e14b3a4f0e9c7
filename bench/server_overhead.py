#!/usr/bin/env python3
"""What the server adds to the time of a token, and how long a token takes from its commit to the socket.

  python3 bench/server_overhead.py build/stet MODEL.gguf [--rounds 5] [--tokens 256]

Each round runs A B B A, every run in a fresh process with the same flags and the same greedy prompt:
  A  stet run --json        decode_tokens_per_second: the tokens after the first cycle over the time since
  B  stet serve             the same of one stream with cycle_events, by the times when its cycles were committed (`stet.server_ns`)
and gives two ratios B/A of the time of a token, so that a drift that is linear in time cancels in their mean. The ids of all
runs must be equal. Shown are the median of the ratios and the order statistics that enclose it with 95 %. The client of B sleeps until the
answer is complete: it shares the processors with the decoder, and what it takes of them is not the server's.

Then one stream a round goes to a client that wakes for every event. Latency is the time from `stet.server_ns` (CLOCK_MONOTONIC) until
an event's bytes were in that client's socket: the kernel stamps what it receives (SO_TIMESTAMPNS, moved from CLOCK_REALTIME by the
difference of both clocks). The time until the client had read the bytes is shown beside it, with the client's own wait for a processor
in it, and what such a client adds to the time of a token.

Prints a table and one JSON object. Exit code 1 when ids differ. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "hostile")]

import wire  # noqa: E402
from order_statistics import median_interval  # noqa: E402
from served import Served, plain_environment  # noqa: E402

PROMPT = "Write a detailed history of the lighthouse, from antiquity to the present day."
SO_TIMESTAMPNS = 35
ALLOWED_ADDED, ALLOWED_LATENCY_MS = 0.03, 1.0


class Bench:
    def __init__(self, args: argparse.Namespace, environment: dict[str, str]):
        self.args, self.environment = args, environment
        self.flags = ["--ctx", str(args.ctx), "--draft", args.draft, *(["--threads", str(args.threads)] if args.threads else [])]
        self.stamper = socket.socket()  # the kernel begins to stamp a moment after the first socket asks for it
        self.stamper.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket_ms: list[float] = []
        self.client_ms: list[float] = []
        self.ids: list[list[int]] = []

    def run(self) -> float:
        """Seconds a token of `stet run`."""
        command = [self.args.program, "run", "-m", self.args.model, *self.flags, "--json", "-q", "--ignore-eos", "-n", self.args.tokens]
        command += ["--raw", "-p", PROMPT]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True, env=self.environment)
        answer = json.loads(done.stdout)
        self.ids.append(answer["token_ids"])
        return 1.0 / answer["decode_tokens_per_second"]

    def serve(self, wakes: bool) -> float:
        """Seconds a token of `stet serve`, with a client that wakes for every event or sleeps until the end."""
        server = Served(self.args.program, str(self.args.model), [*self.flags, "-q"], self.environment)
        try:
            cycles = self.stream(server, wakes)
        finally:
            server.end()
        self.ids.append([i for cycle in cycles for i in cycle["token_ids"]])
        for cycle in cycles if wakes else []:
            self.socket_ms.append((cycle["socket_ns"] - cycle["server_ns"]) / 1e6)
            self.client_ms.append((cycle["client_ns"] - cycle["server_ns"]) / 1e6)
        tokens = len(self.ids[-1]) - len(cycles[0]["token_ids"])
        return (cycles[-1]["server_ns"] - cycles[0]["server_ns"]) / 1e9 / tokens

    def stream(self, server: Served, wakes: bool) -> list[dict]:
        """The cycles of one answer, each with the times at which its bytes were there."""
        fields = {"prompt": PROMPT, "max_tokens": self.args.tokens, "ignore_eos": True, "stream": True, "cycle_events": True}
        data = wire.request(server.address, "POST", "/v1/completions", json.dumps(fields).encode(), (("Connection", "close"),))
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
        pieces: list[tuple[bytes, int, int]] = []
        with socket.create_connection(server.address, timeout=120) as line:
            line.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            if not wakes:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 20)  # more than the answer: the end of the connection wakes it
            line.sendall(data)
            while not pieces or not pieces[-1][0].endswith(b"0\r\n\r\n"):
                got, control, _, _ = line.recvmsg(1 << 21, 256)
                now = time.monotonic_ns()
                if not got:
                    sys.exit("the server closed the connection")
                stamps = [c[2] for c in control if c[:2] == (socket.SOL_SOCKET, SO_TIMESTAMPNS)]
                if not stamps:
                    sys.exit("this kernel stamps no received bytes (SO_TIMESTAMPNS)")
                seconds, nanoseconds = struct.unpack("qq", stamps[0])
                pieces.append((got, seconds * 10**9 + nanoseconds - offset, now))
        return cycles_of(pieces)

    def main(self) -> int:
        ratios: list[float] = []
        arms: dict[str, list[float]] = {"run": [], "serve": [], "woken": []}
        self.run(), self.serve(False)  # weights are packed and in the page cache from here on
        for number in range(self.args.rounds):
            a1, b1, b2, a2 = self.run(), self.serve(False), self.serve(False), self.run()
            arms["run"] += [a1, a2]
            arms["serve"] += [b1, b2]
            arms["woken"].append(self.serve(True))
            ratios += [b1 / a1, b2 / a2]
            print(f"round {number + 1}: run {1 / a1:.1f} {1 / a2:.1f}, serve {1 / b1:.1f} {1 / b2:.1f} tokens/s", file=sys.stderr)
        return self.tell(ratios, arms)

    def tell(self, ratios: list[float], arms: dict[str, list[float]]) -> int:
        low, high, covered = median_interval(ratios)
        equal = all(ids == self.ids[0] for ids in self.ids)
        result = {
            "model": pathlib.Path(self.args.model).name, "tokens": self.args.tokens, "rounds": self.args.rounds, "draft": self.args.draft,
            "run_tokens_per_second": 1 / statistics.median(arms["run"]), "serve_tokens_per_second": 1 / statistics.median(arms["serve"]),
            "woken_client_tokens_per_second": 1 / statistics.median(arms["woken"]),
            "time_ratio": statistics.median(ratios), "interval": [low, high], "interval_covers_95_percent": covered,
            "ids_equal": equal, "to_socket_ms": quantiles(self.socket_ms), "to_client_ms": quantiles(self.client_ms),
            "load": os.getloadavg(),
        }  # fmt: skip
        added = result["time_ratio"] - 1
        print(f"stet run {result['run_tokens_per_second']:.1f}, stet serve {result['serve_tokens_per_second']:.1f} tokens/s"
              f" ({result['woken_client_tokens_per_second']:.1f} with a client beside it that wakes for every event)")
        print(f"the server adds {100 * added:+.2f} % ({100 * (low - 1):+.2f} .. {100 * (high - 1):+.2f}); at most {100 * ALLOWED_ADDED:.0f}")
        for name, what in (("to_socket_ms", "in the client's socket"), ("to_client_ms", "read by the client")):
            shown = ", ".join(f"{key} {value:.3f}" for key, value in result[name].items())
            print(f"from the commit of a cycle until it is {what}, ms: {shown}")
        print(f"cycles over {ALLOWED_LATENCY_MS:.0f} ms to the socket: {sum(1 for ms in self.socket_ms if ms > ALLOWED_LATENCY_MS)}")
        print(f"ids of all {len(self.ids)} runs: {'equal' if equal else 'DIFFERENT'}; load {os.getloadavg()[0]:.1f}")
        print(json.dumps(result))
        return 0 if equal else 1


def cycles_of(pieces: list[tuple[bytes, int, int]]) -> list[dict]:
    """Which piece brought the last byte of each event."""
    cycles, text, searched = [], b"", 0
    for data, socket_ns, client_ns in pieces:
        text += data
        while (end := text.find(b"\n\n\r\n", searched)) >= 0:
            begin = text.rfind(b"data: ", searched, end)
            searched = end + 4
            if begin < 0 or text[begin + 6 : end] == b"[DONE]":
                continue
            event = json.loads(text[begin + 6 : end]).get("stet", {})
            if "cycle" in event:
                cycles.append({**event, "socket_ns": socket_ns, "client_ns": client_ns})
    return cycles


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: ordered[round(share * (len(ordered) - 1))] for name, share in at.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("model", help="a GGUF file, or what -m takes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--ctx", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=0, help="of both (what stet chooses)")
    parser.add_argument("--draft", default="none")
    args = parser.parse_args()
    args.program = args.program.resolve()
    with tempfile.TemporaryDirectory(prefix="stet-overhead-") as folder:
        return Bench(args, plain_environment(pathlib.Path(folder))).main()


if __name__ == "__main__":
    sys.exit(main())
