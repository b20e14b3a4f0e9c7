"""curl: what is on the wire."""

from __future__ import annotations

import hashlib
import json
import pathlib
import subprocess

from harness import TIMEOUT_S, World, check, equal

CHAT = {"messages": [{"role": "user", "content": "Name three colours."}], "max_tokens": 24}


class Reply:
    def __init__(self, raw: bytes):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    def json(self) -> dict:
        return json.loads(self.body)


def curl(world: World, path: str, *args: str, url: str | None = None, body: object = None) -> Reply:
    data = [] if body is None else ["--data-binary", body if isinstance(body, str) else json.dumps(body)]
    kind = [] if body is None else ["-H", "Content-Type: application/json", "-H", "Expect:"]
    command = ["curl", "--silent", "--show-error", "--no-buffer", "--include", "--noproxy", "*", "--max-time", str(TIMEOUT_S), *kind, *data, *args]
    done = subprocess.run([*command, (url or world.server.url) + path], capture_output=True)
    equal(done.returncode, 0, f"{path}: {done.stderr!r}")
    return Reply(done.stdout)


def events(reply: Reply) -> list[str]:
    text = reply.body.decode()
    check(text.endswith("\n\n"), "a stream ends with an empty line")
    parts = text[:-2].split("\n\n")
    check(all(part.startswith("data: ") and "\n" not in part for part in parts), parts)
    return [part[6:] for part in parts]


def test_a_stream_is_server_sent_events(world: World) -> None:
    reply = curl(world, "/v1/chat/completions", body={**CHAT, "stream": True})
    equal((reply.status, reply.headers["content-type"].split(";")[0]), (200, "text/event-stream"))
    parts = events(reply)
    equal(parts[-1], "[DONE]")
    text = "".join(json.loads(part)["choices"][0]["delta"].get("content", "") for part in parts[:-1])
    equal(text, world.run("-p", "Name three colours.", "-n", 24)["text"])


def test_a_body_is_json(world: World) -> None:
    reply = curl(world, "/v1/chat/completions", body=CHAT)
    equal((reply.status, reply.headers["content-type"]), (200, "application/json"))
    equal(int(reply.headers["content-length"]), len(reply.body))
    equal(reply.json()["object"], "chat.completion")


def test_health_status_metrics(world: World) -> None:
    equal(curl(world, "/health").json(), {"status": "ok"})
    status = curl(world, "/status").json()
    equal((status["state"], status["active"], status["identity"]["context"]), ("ready", None, 512))
    check(status["identity"]["build_id"], "a build id")
    model = pathlib.Path(world.model)
    if model.is_file():
        equal(status["identity"]["model_sha256"], hashlib.sha256(model.read_bytes()).hexdigest())
    metrics = curl(world, "/metrics")
    equal(metrics.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
    samples = dict(line.rsplit(" ", 1) for line in metrics.body.decode().splitlines() if not line.startswith("#"))
    equal(samples["stet_ready"], "1")
    check(float(samples["stet_cycles_total"]) >= 0, samples)


def test_heads(world: World) -> None:
    for path in ("/", "/health", "/status", "/metrics", "/v1/models"):
        reply = curl(world, path, "--head")
        equal((reply.status, reply.body), (200, b""), path)
        check(int(reply.headers["content-length"]) > 0, path)
    equal(curl(world, "/v1/chat/completions", "--head").status, 405)
    equal(curl(world, "/api/hello", "--head").status, 404)


def test_wrong_paths_methods_and_bodies(world: World) -> None:
    for path, args, body, status in (
        ("/v1/chat", (), None, 404), ("/v1/chat/completions", (), None, 405), ("/health", ("-X", "POST"), {}, 405),
        ("/v1/completions", (), "{", 400), ("/v1/completions", (), '{"prompt": "\\ud800"}', 400), ("/v1/completions", (), "[" * 100, 400),
        ("/v1/completions", (), '{"prompt": "x", "prompt": "y"}', 400),
    ):  # fmt: skip
        reply = curl(world, path, *args, body=body)
        equal(reply.status, status, f"{path} {body}")
        equal(set(reply.json()["error"]), {"message", "type", "param", "code"})
    equal(curl(world, "/v1/chat/completions").headers["allow"], "POST")


def test_tokenize_and_detokenize(world: World) -> None:
    text = "Grüße, 世界! <|im_start|>"
    tokens = curl(world, "/tokenize", body={"prompt": text}).json()
    equal(tokens["count"], len(tokens["tokens"]))
    equal(curl(world, "/detokenize", body={"tokens": tokens["tokens"]}).json(), {"prompt": text})
    chat = curl(world, "/tokenize", body={"messages": CHAT["messages"]}).json()["tokens"]
    whole = curl(world, "/v1/chat/completions", body={**CHAT, "max_tokens": 1, "return_token_ids": True}).json()
    equal(whole["prompt_token_ids"], chat)
    raw = subprocess.run([world.program, "tokenize", "-m", world.model], input=text.encode(), capture_output=True, timeout=TIMEOUT_S)
    if raw.returncode == 0:  # not of a synthetic model
        equal(tokens["tokens"], json.loads(raw.stdout))


def test_a_socket_in_the_file_system(world: World) -> None:
    path = world.folder / "stet.sock"
    with world.another("--listen", f"unix:{path}"):
        reply = curl(world, "/v1/chat/completions", "--unix-socket", str(path), url="http://localhost", body=CHAT)
        equal(reply.json()["choices"][0]["message"]["content"], world.run("-p", "Name three colours.", "-n", 24)["text"])


def test_the_page(world: World) -> None:
    reply = curl(world, "/")
    equal(reply.headers["content-type"], "text/html; charset=utf-8")
    for part in ("default-src 'none'", "frame-ancestors 'none'", "connect-src 'self'"):
        check(part in reply.headers["content-security-policy"], part)
    equal(reply.headers["x-content-type-options"], "nosniff")


def test_cut_short(world: World) -> None:
    """A client that goes away at any time costs the next one nothing."""
    for seconds in ("0.001", "0.02", "0.05", "0.1", "0.2"):
        body = json.dumps({**CHAT, "stream": True, "max_tokens": 400, "ignore_eos": True})
        subprocess.run(["curl", "--silent", "--noproxy", "*", "--max-time", seconds, "--data-binary", body, world.server.v1 + "/chat/completions"],
                       capture_output=True, timeout=TIMEOUT_S)  # fmt: skip
    reply = curl(world, "/v1/chat/completions", body=CHAT)
    equal(reply.json()["choices"][0]["message"]["content"], world.run("-p", "Name three colours.", "-n", 24)["text"])


TESTS = [value for name, value in list(globals().items()) if name.startswith("test_")]
