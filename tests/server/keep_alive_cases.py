"""What a stream holds while it waits is nothing to the clients: the same chunks from a server that always sends them."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager

import langchain_cases
import litellm_cases
import llm_cases
import openai_cases
from harness import World, equal


def chunk(delta: dict, finish: str | None = None, **more: object) -> str:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "f",
                       "choices": [choice], **more})  # fmt: skip


EVENTS = [
    chunk({"role": "assistant", "content": ""}), chunk({}, stet={"stage": "queued", "done": 1, "total": 2}),
    chunk({}, stet={"stage": "prefill", "done": 128, "total": 1000}), chunk({"content": "Let it "}), chunk({}, stet={"stage": "decode", "done": 3, "total": 0}),
    chunk({"content": "stand."}), chunk({}, "stop", stet={"finish": "stop", "seed": None, "digest": ""}),
    json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "prompt_tokens_details": {"cached_tokens": 0}}}),
    "[DONE]",
]  # fmt: skip


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in EVENTS:
            self.wfile.write(f"data: {event}\n\n".encode())

    def log_message(self, *_: object) -> None:
        pass


class Replayed:
    """Looks like a World whose server sends EVENTS."""

    class Server:
        def __init__(self, url: str):
            self.url, self.v1 = url, url + "/v1"

    def __init__(self, world: World, url: str):
        self.server, self.folder = self.Server(url), world.folder


@contextmanager
def replayed(world: World):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Replayed(world, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


def test_openai(world: World) -> None:
    with replayed(world) as fake:
        chunks = openai_cases.chat(fake, stream=True)
        equal("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), "Let it stand.")


def test_litellm(world: World) -> None:
    with replayed(world) as fake:
        chunks = litellm_cases.chat(fake, stream=True)
        equal("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), "Let it stand.")


def test_langchain(world: World) -> None:
    with replayed(world) as fake:
        whole = None
        for part in langchain_cases.chat(fake).stream(langchain_cases.MESSAGES):
            whole = part if whole is None else whole + part
        equal(whole.content, "Let it stand.")


def test_llm(world: World) -> None:
    with replayed(world) as fake:
        equal(llm_cases.llm(fake, "-m", "stet", llm_cases.PROMPT), "Let it stand.\n")


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]
