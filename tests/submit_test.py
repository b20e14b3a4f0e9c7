#!/usr/bin/env python3
"""stet submit from end to end: a row is printed from a packet, or refused by name; a board on this machine takes it once.

  python3 tests/submit_test.py build/stet [--only NAME]

The packet is one of a synthetic model, edited until it says that it is one of a real model, with a manifest that fits. That anybody can do
this is said in docs/benchmark.md, section 4: what cannot be made up are the tokens of a model, which `stet rerun` confirms.
Ends with 'N passed, N failed'. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TESTS_FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS_FOLDER / "cli"))

from harness import DISTURBED, Skip, Stet, check, equal, run_tests  # noqa: E402

WORDS = ("--hf-id", "owner/model", "--revision", "1" * 40)
SHA = "5" * 64
# As bench wrote it, and as a packet of a real model would say it.
EDITS = (
    ('"synthetic":true', '"synthetic":false'),
    ('"model_sha256":"unproven"', f'"model_sha256":"{SHA}"'),
    ('"commit_state":"changed"', '"commit_state":"clean"'),
    ('"commit":"unproven"', f'"commit":"{"c" * 40}"'),
)


class Board:
    """Takes rows; answers(n) is (status, body) for the n-th."""

    def __init__(self, answers):
        self.rows: list[tuple[str, str, dict]] = []
        board = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:  # noqa: N802
                row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                board.rows.append((self.path, self.headers.get("Authorization", ""), row))
                status, body = answers(len(board.rows))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/api/rows"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def seal(packet: pathlib.Path) -> None:
    lines = []
    for file in sorted(f for f in packet.iterdir() if f.name != "MANIFEST"):
        data = file.read_bytes()
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {len(data)}  {file.name}\n")
    (packet / "MANIFEST").write_text("".join(lines))


def edited(stet: Stet, name: str, *edits: tuple[str, str], source: str = "raw") -> pathlib.Path:
    """A copy of a packet with texts replaced in everything but its plan, and a manifest that fits."""
    packet = stet.folder / name
    if packet.exists():
        return packet
    shutil.copytree(stet.folder / source, packet)
    for file in ("events.jsonl", "identity.json", "results.json"):
        text = (packet / file).read_text()
        for old, new in edits:
            text = text.replace(old, new).replace(old.replace(":", ": ", 1), new.replace(":", ": ", 1))  # compact, or one a line
        (packet / file).write_text(text)
    seal(packet)
    return packet


def raw(stet: Stet) -> pathlib.Path:
    """The plain decoder of a synthetic model, asked the whole suite on two fresh processes."""
    packet = stet.folder / "raw"
    if not packet.exists():
        result = stet("bench", "-m", "synth:tiny-wide:q4_0:3", "--suite", "realistic-v1", "--as-teacher", "--starts", 2, "-n", 110, "--nonce-seed", 1,
                      "--temperature", 1, "--top-k", 4, "--seed", 1, "--threads", 1, "--pack", "none", "--label", "tiny, plain", "-q",
                      "--out", packet)  # fmt: skip
        arm = json.loads((packet / "results.json").read_text())["results"]["arms"][0]
        if any(word in reason for reason in arm["invalid"] for word in DISTURBED):
            raise Skip(f"the machine was disturbed: {arm['invalid']}")
        equal(result.code, 0, f"{result} {arm['invalid']} {arm['unproven']}")
        equal(arm["headline"]["shorter_windows"], 0, "answers that end early")
    return packet


def honest(stet: Stet) -> pathlib.Path:
    raw(stet)
    packet = edited(stet, "packet", *EDITS)
    stet.ok("verify", packet)
    return packet


def a_row_is_printed(stet: Stet) -> None:
    packet = honest(stet)
    first = stet.ok("submit", packet, "--dry-run", *WORDS)
    equal(stet.ok("submit", packet, *WORDS).out, first.out, "without --dry-run")
    (entry,) = json.loads(first.out)
    equal(entry["label"], "tiny, plain")
    row, arm = entry["payload"], json.loads((packet / "results.json").read_text())["results"]["arms"][0]
    equal(row["tokSOut"], arm["headline"]["tokens_per_second"])
    equal((row["outputTokens"], row["batchSize"], row["hfId"], row["quantization"]), (110, 1, "owner/model", "Q4_0"))
    check(row["hardware"]["ramGb"] > 0 and row["hardware"]["os"].startswith("Linux "), row["hardware"])
    equal(row["engineFlags"]["packetManifestSha256"], hashlib.sha256((packet / "MANIFEST").read_bytes()).hexdigest())
    check(str(stet.folder) not in first.out.decode(), "no path of this machine")


def what_is_not_proved_is_refused_by_name(stet: Stet) -> None:
    stet.refuses(7, "submit", raw(stet), *WORDS, says=("synthetic: the weights are random", "model_sha256:"))
    packet = honest(stet)
    stet.refuses(7, "submit", packet, says=("hfId:", "modelRevision:"))
    stet.refuses(7, "submit", packet, *WORDS, "--label", "ngram", says="label:")
    for name, edit, says in (
        ("dirty", ('"commit_state":"clean"', '"commit_state":"changed"'), "commit: the tree"),
        ("memory", ('"memory_bytes":', '"memory_bits":'), "hardware.ramGb:"),
        ("history", ('"history_accelerated":false', '"history_accelerated":true'), "historyAccelerated:"),
    ):
        stet.refuses(7, "submit", edited(stet, name, edit, source="packet"), *WORDS, says=says)


def a_packet_is_verified_first(stet: Stet) -> None:
    honest(stet)
    stet.refuses(6, "submit", edited(stet, "forged", ('"status":"proved"', '"status":"certain"'), source="packet"), *WORDS, says="results.json")
    changed = edited(stet, "changed", source="packet")
    with (changed / "events.jsonl").open("a") as file:
        file.write("\n")
    stet.refuses(3, "submit", changed, *WORDS, says="events.jsonl")
    stet.refuses(3, "submit", "none", *WORDS, says="none")


def published_packets_say_why_not(stet: Stet) -> None:
    packet = TESTS_FOLDER.parent / "packets/smollm2-135m-plain-ngram"
    stet.refuses(7, "submit", packet, *WORDS, says=("historyAccelerated: the draft 'ngram' learns from the text", "label:"))
    stet.refuses(2, "submit", packet, *WORDS, "--arm", "B", says="it has teacher, A")


def key_file(stet: Stet) -> pathlib.Path:
    key = stet.folder / "key"
    key.write_text("board-key\n")
    key.chmod(0o600)
    return key


def a_board_takes_a_row_once(stet: Stet) -> None:
    packet, key = honest(stet), key_file(stet)
    printed = json.loads(stet.ok("submit", packet, *WORDS).out)[0]["payload"]
    with Board(lambda n: (429, {"retryAfterMs": 10}) if n == 1 else (201, {"id": "row-1"})) as board:
        sending = ("submit", packet, *WORDS, "--yes", "--url", board.url, "--api-key-file", key, "--ledger", "once.sqlite")
        result = stet.ok(*sending)
        check("id row-1" in result.err and result.out == b"", result)
        equal(board.rows, [("/api/rows", "Bearer board-key", printed)] * 2, "once, and once more after 429")
        stet.refuses(2, *sending, says="never sent twice")
        equal(len(board.rows), 2)
    journal = json.loads(stet.ok("ledger", "export", "--ledger", "once.sqlite").out)["journal"]
    equal([(row["kind"], row["condition"]) for row in journal], [("submit", "begun"), ("submit", "taken")])
    check("board-key" not in json.dumps(journal), "the key is nowhere")


def a_board_that_refuses_or_is_not_there(stet: Stet) -> None:
    packet, key = honest(stet), key_file(stet)
    with Board(lambda n: (422, {"error": "engineName"})) as board:
        sending = ("submit", packet, *WORDS, "--yes", "--api-key-file", key, "--ledger", "no.sqlite")
        stet.refuses(3, *sending, "--url", board.url, says=("HTTP 422", "engineName"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        stet.refuses(3, *sending, "--url", f"http://127.0.0.1:{free.getsockname()[1]}/", says="nothing was sent")


def nothing_is_sent_without_yes(stet: Stet) -> None:
    packet, key = honest(stet), key_file(stet)
    with Board(lambda n: (201, {})) as board:
        to = ("--url", board.url, "--api-key-file", key)
        stet.refuses(2, "submit", packet, *WORDS, *to, says="--yes")
        stet.refuses(2, "submit", packet, *WORDS, *to, "--dry-run", "--yes", says="contradict")
        stet.refuses(2, "submit", packet, *WORDS, "--yes", "--url", board.url, says="--api-key-file")
        stet.refuses(7, "submit", raw(stet), *WORDS, *to, "--yes", says="synthetic")
        stet.refuses(2, "submit", packet, *WORDS, "--yes", "--url", "https://example.org/", "--api-key-file", key, says="TLS")
        key.chmod(0o644)
        stet.refuses(5, "submit", packet, *WORDS, *to, "--yes", says="chmod 600")
        equal(board.rows, [])


TESTS = [a_row_is_printed, what_is_not_proved_is_refused_by_name, a_packet_is_verified_first, published_packets_say_why_not,
         a_board_takes_a_row_once, a_board_that_refuses_or_is_not_there, nothing_is_sent_without_yes]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path, help="the program, such as build/stet")
    parser.add_argument("--only", default="", help="only the tests with this in their name")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stet-submit-") as folder:
        return run_tests(TESTS, Stet(args.program, pathlib.Path(folder)), args.only)


if __name__ == "__main__":
    sys.exit(main())
