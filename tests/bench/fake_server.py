"""A server with OpenAI's form that answers as a test wants it: right, or wrong in one way."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeServer:
    """answer(body) gives the events of a stream, dicts or texts; None cuts the connection there."""

    def __init__(self, answer, key: str = ""):
        self.requests: list[dict] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _json(self, status: int, value: object) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _allowed(self) -> bool:
                return not key or self.headers.get("Authorization") == f"Bearer {key}"

            def do_GET(self) -> None:  # noqa: N802
                if not self._allowed():
                    return self._json(401, {"error": {"message": "no key"}})
                if self.path == "/v1/models":
                    return self._json(200, {"object": "list", "data": [{"id": "fake", "object": "model"}]})
                self._json(404, {"error": {"message": "not found"}})

            def do_POST(self) -> None:  # noqa: N802
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.requests.append(body)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for event in answer(body):
                    if event is None:
                        self.close_connection = True
                        return
                    text = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def chunk(content: str = "", ids: list[int] | None = None, finish: str | None = None, **more: object) -> dict:
    choice: dict = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    if ids is not None:
        choice["token_ids"] = ids
    return {"object": "chat.completion.chunk", "choices": [choice], **more}


def usage(prompt: int, completion: int, cached: int | None = 0) -> dict:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion, **details}}
