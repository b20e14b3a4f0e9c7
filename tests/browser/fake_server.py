"""A server that says what a test wants: well-formed answers, hostile text, and deaths at any point.

The question chooses the answer: a message that contains "die" is cut in the middle, and so on (see Handler.SCENES). It serves the
page of src/server/page with the policy that the real server sends, computed here a second time. Standard library only.

  python3 tests/browser/fake_server.py [PORT]     serves until it is interrupted, to look at the page by hand
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import itertools
import json
import pathlib
import re
import socket
import sys
import threading
import time

PATIENCE_S = 120  # what a busy machine may need
PAGE = pathlib.Path(__file__).resolve().parents[2] / "src/server/page/index.html"

HOSTILE = (
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">\n"
    "[link](javascript:alert(1)) <a href='https://example.invalid/'>a</a> &lt;b&gt; <style>*{display:none}</style>\n"
    "escape \x1b]52;c;AAAA\x07 nul \x00 del \x7f c1 \x9b bidi \u202eevil\u202c mark \u200f zero\u200bwidth tags \U000e0041\U000e0042 end\n"
    "ordinary: \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u4f60\u597d \U0001f469\u200d\U0001f52c e\u0301"
)
PROSE = (
    "A proof-reader strikes a word out, thinks again, and writes dots beneath it: let it stand. The word was right the first time. "
    "What matters is that nobody has to take the reader\u2019s word for it, because the page shows both the stroke and the dots.\n\n"
    "Speculative decoding works in the same way. A small draft writes ahead; the model reads what the draft wrote and keeps the part that "
    "it would have written itself, word for word. Everything else is struck out."
)


def policy(page: bytes) -> str:
    def of(tag: bytes) -> str:
        content = re.search(b"<" + tag + b">(.*?)</" + tag + b">", page, re.S)[1]
        return "'sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {of(b'style')}; script-src {of(b'script')}; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; trusted-types 'none'; require-trusted-types-for 'script'"
    )


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Fake

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def error(self, status: int, message: str) -> None:
        self.reply(status, json.dumps({"error": {"message": message, "type": "x", "param": None, "code": None}}).encode())

    def allowed(self) -> bool:
        key = self.server.key
        if not key or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.error(401, "a key is needed")
        return False

    def do_GET(self) -> None:
        self.server.seen.append((self.path, None))
        if self.path == "/":
            page = PAGE.read_bytes()
            self.reply(200, page, "text/html; charset=utf-8", Content_Security_Policy=policy(page), X_Content_Type_Options="nosniff")
        elif self.path == "/status" and self.gone_on() and self.allowed():
            self.reply(200, json.dumps(self.server.status).encode())
        elif self.path != "/status":
            self.error(404, f"nothing at {self.path}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, body))
        if not self.allowed():
            return
        question = body["messages"][-1]["content"]
        for word, scene in self.SCENES.items():
            if word in question:
                return scene(self)
        self.stream_text(PROSE)

    def gone_on(self) -> bool:
        """True when the test lets this answer go on, if it holds answers at all."""
        held = self.server.held
        if held is None:
            return True
        self.server.holds.set()
        return held.wait(PATIENCE_S)

    # ---- Streams
    def begin(self) -> None:
        self.server.step, self.server.left = threading.Event(), threading.Event()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.cycle, self.clock = 0, 10**12
        self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}], "prompt_token_ids": [1] * 23})

    def raw(self, data: str) -> None:
        encoded = data.encode("utf-8", "surrogatepass")
        self.wfile.write(b"%x\r\n%s\r\n" % (len(encoded), encoded))
        self.wfile.flush()

    def event(self, event: dict | str) -> None:
        self.raw("data: " + (event if isinstance(event, str) else json.dumps(event)) + "\n\n")

    def text(self, text: str, accepted: int = 0, depth: int = 4, took: float = 0.01) -> None:
        """One cycle, which took so many seconds by the clock of this server: how long it waits in truth is another matter."""
        ids = list(range(accepted + 1))
        self.clock += round(took * 1e9)
        self.event({
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, "token_ids": ids}],
            "stet": {"cycle": self.cycle, "depth": depth, "accepted": accepted, "token_ids": ids, "server_ns": self.clock},
        })  # fmt: skip
        self.cycle += 1

    def end(self, tokens: int, finish: str = "stop") -> None:
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "stet": {"finish": finish, "seed": 4503599627370497, "digest": "0123456789abcdef" * 4}})
        usage = {"prompt_tokens": 23, "completion_tokens": tokens, "total_tokens": 23 + tokens, "prompt_tokens_details": {"cached_tokens": 7}}
        self.event({"choices": [], "usage": usage})
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def until_left(self) -> None:
        """Says nothing more until the browser closes the connection."""
        self.connection.settimeout(PATIENCE_S)
        self.close_connection = True
        try:
            said = self.connection.recv(1)
        except TimeoutError:
            return
        except OSError:
            said = b""
        if not said:
            self.server.left.set()

    def stream_text(self, text: str, pause: float = 0.01) -> None:
        self.begin()
        tokens = 0
        words = re.findall(r"\S+\s*", text)
        for i, accepted in enumerate([0, 2, 1, 0, 3, 1, 4, 0] * len(words)):
            piece, words = words[: accepted + 1], words[accepted + 1 :]
            if not piece:
                break
            self.text("".join(piece), len(piece) - 1, took=pause if (i - 1) % 4 else 2 * pause)
            tokens += len(piece)
            time.sleep(pause)
        self.end(tokens)

    def scene_hostile(self) -> None:
        self.begin()
        for at in range(0, len(HOSTILE), 7):
            self.text(HOSTILE[at : at + 7])
        self.end((len(HOSTILE) + 6) // 7)

    def scene_die(self) -> None:
        self.begin()
        for word in ("It ", "was ", "cut "):
            self.text(word)
        self.server.step.wait(PATIENCE_S)
        self.cut()

    def scene_quiet_end(self) -> None:
        """Ends as HTTP does, but without [DONE]."""
        self.begin()
        self.text("Half a sen")
        self.wfile.write(b"0\r\n\r\n")

    def scene_error_event(self) -> None:
        self.begin()
        self.text("Before the error")
        self.event({"error": {"message": "the logits of step 4 hold NaN", "type": "server_error", "param": None, "code": None}})
        self.until_left()

    def scene_broken_event(self) -> None:
        self.begin()
        self.text("Before the broken event")
        self.event("{not JSON")
        self.until_left()

    def scene_endless(self) -> None:
        self.begin()
        try:
            for i in itertools.count():
                self.text(f"word{i} ")
                time.sleep(0.02)
        except OSError:
            self.server.left.set()
            self.close_connection = True

    def scene_queued(self) -> None:
        self.begin()
        for done in (2, 1):
            self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": None}], "stet": {"stage": "queued", "done": done, "total": 2}})
            self.server.step.wait(PATIENCE_S)
            self.server.step.clear()
        for done in (512, 1024):
            self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": None}], "stet": {"stage": "prefill", "done": done, "total": 2048}})
            self.server.step.wait(PATIENCE_S)
            self.server.step.clear()
        self.text("Done.")
        self.end(1)

    def scene_heavy(self) -> None:
        """Fifty tokens at once, then ten in a second: ten a second."""
        self.begin()
        self.text("fifty ", 49, 49)
        for _ in range(10):
            self.text("one ", 0, 0, took=0.1)
        self.end(60)

    def scene_full(self) -> None:
        self.error(429, "16 requests wait already")

    def scene_too_long(self) -> None:
        self.error(400, "prompt is too long: 9000 tokens > 8192 maximum")

    def scene_many(self) -> None:
        """A thousand chunks as fast as they go."""
        self.begin()
        for i in range(1000):
            self.text(f"{i} ")
        self.end(1000, "length")

    SCENES = {
        "hostile": scene_hostile, "die": scene_die, "quiet end": scene_quiet_end, "error event": scene_error_event,
        "broken event": scene_broken_event, "endless": scene_endless, "queued": scene_queued, "full": scene_full,
        "too long": scene_too_long, "heavy": scene_heavy, "many": scene_many,
    }  # fmt: skip


IDENTITY = {
    "model": "SmolLM2 135M Instruct", "synthetic": False, "draft": "ngram", "draft_depth": 4, "history_accelerated": True,
    "profile": "portable", "activations": "a8", "kv": "f16", "context": 8192, "isa": "avx512", "threads": 2,
}  # fmt: skip


class Fake(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int = 0):
        super().__init__(("127.0.0.1", port), Handler)
        self.key = ""
        self.seen: list[tuple[str, dict | None]] = []
        self.step, self.left = threading.Event(), threading.Event()  # of the last stream: it may go on; its reader is gone
        self.held: threading.Event | None = None  # answers to /status wait for it
        self.holds = threading.Event()  # one does
        self.connections: set[socket.socket] = set()
        self.status = {
            "state": "ready", "identity": dict(IDENTITY), "active": None, "queue": {"waiting": 0, "limit": 16},
            "cache": {"tokens": 1204, "context": 8192}, "epoch": 12, "uptime_seconds": 8042.5, "last": None,
        }  # fmt: skip
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def handle_error(self, *_: object) -> None:
        pass  # browsers leave when they like

    def chats(self) -> list[dict]:
        return [body for path, body in self.seen if path == "/v1/chat/completions"]

    def hold(self) -> None:
        """Answers to /status wait for go_on() from now on. Returns when one does."""
        self.holds.clear()
        self.held = threading.Event()
        if not self.holds.wait(PATIENCE_S):
            raise AssertionError("the page did not look at the status")

    def go_on(self) -> None:
        self.step.set()
        if self.held:
            self.held.set()
            self.held = None

    def wait_until_left(self) -> None:
        if not self.left.wait(PATIENCE_S):
            raise AssertionError("the browser did not close the connection")

    def process_request(self, request: socket.socket, client_address: object) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def stop(self) -> None:
        """As a process that dies: nobody listens, and every connection breaks."""
        self.go_on()
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    fake = Fake(int(sys.argv[1]) if len(sys.argv) > 1 else 8080)
    print(fake.url, flush=True)
    fake.thread.join()
