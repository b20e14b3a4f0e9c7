"""stet serve as an operator meets it: start, refusals, keys, sockets, signals, the log."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

from harness import TIMEOUT_S, Skip, Stet, check, equal

ROOT = pathlib.Path(__file__).resolve().parents[2]

TINY = "synth:tiny:q4_0"
# Takes seconds for an answer of a thousand tokens, and a moment to load.
SLOW = "synth:smollm-135m:q4_0"
PROMPT = "a prompt that nobody else has"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("localhost", timeout=TIMEOUT_S)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self.path)


class Server:
    """A running server: its address, as it says it, and what it writes."""

    def __init__(self, stet: Stet, *flags: object, model: str = TINY, ready: bool = True):
        where = () if "--listen" in flags else ("--port", 0)
        self.process = stet.start("serve", "-m", model, "--threads", 1, *where, *flags)
        self.lines: list[str] = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.url = self.wait_for_line("stet: listening on ").split()[-1]
        if ready:
            self.wait_for_line("stet: ready")

    def read(self) -> None:
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line.decode().rstrip("\n"))
                self.changed.notify_all()

    def wait_for_line(self, start: str) -> str:
        def found() -> str | None:
            return next((line for line in self.lines if line.startswith(start)), None)

        with self.changed:
            check(self.changed.wait_for(found, TIMEOUT_S), f"no line {start!r}: {self.lines}")
            return found() or ""

    def connection(self) -> http.client.HTTPConnection:
        if self.url.startswith("unix:"):
            return UnixConnection(self.url.removeprefix("unix:"))
        host, port = self.url.removeprefix("http://").rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        with contextlib.closing(self.connection()) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def ask(self, **fields: object) -> http.client.HTTPResponse:
        connection = self.connection()
        body = json.dumps({"prompt": PROMPT, "max_tokens": 8, **fields})
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        return connection.getresponse()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit code, and everything that was written to standard error."""
        self.process.send_signal(number)
        return self.end()

    def end(self) -> tuple[int, str]:
        code = self.process.wait(TIMEOUT_S)
        self.reader.join(TIMEOUT_S)
        equal(self.process.stdout.read(), b"", "standard output")
        return code, "\n".join(self.lines)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def serves_until_a_signal(stet: Stet) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with Server(stet) as server:
            check(server.url.startswith("http://127.0.0.1:"), server.url)
            equal(server.get("/health")[0], 200)
            answer = server.ask()
            equal(answer.status, 200)
            equal(json.loads(answer.read())["usage"]["completion_tokens"], 8)
            code, log = server.stop(number)
            equal(code, 0, log)
            requests = [line for line in log.splitlines() if "POST /v1/completions" in line]
            equal(len(requests), 1, log)
            check(" 200 " in requests[0] and PROMPT not in log, log)


def prompts_are_logged_on_request_only(stet: Stet) -> None:
    with Server(stet, "--log-prompts") as server:
        server.ask().read()
        check(PROMPT in server.stop()[1], server.lines)
    with Server(stet, "-q") as server:
        server.ask().read()
        server.get("/", Host="evil.example")
        equal([line.split(":")[1] for line in server.stop()[1].splitlines()][0], " listening on http")
        check(not any("POST" in line or " 403 " in line for line in server.lines), server.lines)


def health_tells_of_the_loading(stet: Stet) -> None:
    with Server(stet, model=SLOW, ready=False) as server:
        status, body = server.get("/health")
        check(status in (200, 503) and json.loads(body), (status, body))
        equal(server.stop()[0], 0, "a stop while the model is loaded")


def wrong_flags_are_refused(stet: Stet) -> None:
    refuses = [
        (2, ("--port", 65536), "65535"),
        (2, ("--listen", "tcp:1"), "unix:"),
        (2, ("--listen", "unix:x", "--port", 1), "choose one"),
        (2, ("--listen", "unix:" + "x" * 200), "possible"),
        (2, ("--host", "no.such.host.invalid"), "--host"),
        (2, ("--host", "0.0.0.0"), "--no-auth"),
        (2, ("--allow-host", "a:80"), "port"),
        (2, ("--allow-origin", "*"), "by name"),
        (2, ("--no-auth", "--api-key-file", "x"), "contradict"),
        (3, ("--api-key-file", "missing"), "missing"),
        (5, ("--listen", "unix:/no such folder/x"), "folder"),
    ]
    for code, flags, words in refuses:
        where = () if "--port" in flags or "--listen" in flags else ("--port", 0)
        stet.refuses(code, "serve", "-m", TINY, *where, *flags, says=words)
    stet.refuses(2, "serve", says="-m")
    result = stet("serve", "-m", "no such model.gguf", "--port", 0)
    equal(result.code, 3, result)
    check(result.err.splitlines()[-1].startswith("stet: error: ") and "no such model" in result.err, result)


def an_address_in_use_is_refused(stet: Stet) -> None:
    with Server(stet) as server:
        port = server.url.rsplit(":", 1)[1]
        stet.refuses(5, "serve", "-m", TINY, "--port", port, says=("in use", port))
        equal(server.get("/health")[0], 200, "the first one goes on")


def keys_open_it(stet: Stet) -> None:
    keys = stet.folder / "keys"
    keys.write_text("# two\nkey-one\nkey-two\n", encoding="utf-8")
    keys.chmod(0o644)
    stet.refuses(5, "serve", "-m", TINY, "--port", 0, "--api-key-file", "keys", says="chmod 600")
    keys.chmod(0o600)
    with Server(stet, "--api-key-file", "keys", "--host", "0.0.0.0") as server:
        port = int(server.url.rsplit(":", 1)[1])
        server.url = f"http://127.0.0.1:{port}"
        equal(server.get("/v1/models")[0], 401)
        equal(server.get("/v1/models", **{"x-api-key": "key-two"})[0], 200)
        equal(server.get("/v1/models", Authorization="Bearer key-one")[0], 200)
        equal(server.get("/health")[0], 200)
        code, log = server.stop()
        check("key-" not in log and "--no-auth" not in log, log)
    with Server(stet, "--no-auth", "--host", "0.0.0.0") as server:
        equal(server.stop()[1].count("everybody"), 1, "said once")


def strangers_are_refused_on_every_path(stet: Stet) -> None:
    with Server(stet, "--allow-host", "box.lan", "--allow-origin", "http://localhost:3000") as server:
        for path in ("/", "/health", "/status", "/metrics", "/v1/models", "/nothing"):
            equal(server.get(path, Host="evil.example")[0], 403, path)
            equal(server.get(path, Origin="http://evil.example")[0], 403, path)
            check(server.get(path, Host="box.lan:1", Origin="http://localhost:3000")[0] in (200, 404), path)
        check("evil.example" in server.stop()[1], "why, in the log")


def a_socket_in_the_file_system(stet: Stet) -> None:
    path = stet.folder / "stet.socket"
    with Server(stet, "--listen", f"unix:{path}") as server:
        equal(server.url, f"unix:{path}")
        equal(stat.S_IMODE(os.lstat(path).st_mode), 0o600)
        equal(server.get("/health")[0], 200)
        stet.refuses(5, "serve", "-m", TINY, "--listen", f"unix:{path}", says="already listens")
        server.process.kill()
        server.process.wait()
    check(path.exists(), "what a killed process leaves")
    with Server(stet, "--listen", f"unix:{path}") as server:
        equal(server.ask().status, 200, "in place of the stale one")
        equal(server.stop()[0], 0)
    check(not path.exists(), "removed at the end")


def read_stream(answer: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """What came, and whether it was cut."""
    text = b""
    try:
        while chunk := answer.read1():
            text += chunk
    except (http.client.HTTPException, ConnectionError):
        return text, True
    return text, False


def stop_while_answering(stet: Stet, grace: int, second: bool) -> tuple[str, bytes, bool]:
    with Server(stet, "--grace", grace, model=SLOW) as server:
        answer = server.ask(stream=True, max_tokens=150 if grace and not second else 5000, ignore_eos=True)
        answer.read1()
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_line("stet: stopping")
        if grace:
            equal(server.ask().status, 503, "a new request while it stops")
        if second:
            server.process.send_signal(signal.SIGTERM)
        text, cut = read_stream(answer)
        code, log = server.end()
        equal(code, 0, log)
        return log, text, cut


def a_stop_finishes_what_is_under_way(stet: Stet) -> None:
    _, text, cut = stop_while_answering(stet, TIMEOUT_S, second=False)
    check(text.endswith(b"data: [DONE]\n\n") and not cut, text[-300:])


def a_stop_without_grace_or_with_a_second_signal_cancels(stet: Stet) -> None:
    for grace, second in ((0, False), (10 * TIMEOUT_S, True)):
        began = time.monotonic()
        _, text, _ = stop_while_answering(stet, grace, second)
        check(b"[DONE]" not in text, text[-300:])
        check(time.monotonic() - began < TIMEOUT_S, "it waited")


def a_stop_while_it_loads(stet: Stet) -> None:
    with Server(stet, model=SLOW, ready=False) as server:
        code, log = server.stop()
        equal(code, 0, log)
        check("error" not in log, log)


def state_shows_what_is_served(stet: Stet) -> None:
    def running() -> list[dict]:
        return json.loads(stet.ok("state", "--json").out)["running"]

    with Server(stet) as server, Server(stet, "--listen", f"unix:{stet.folder}/state.sock") as other:
        found = {process["pid"]: process for process in running()}
        equal(set(found), {server.process.pid, other.process.pid})
        process = found[server.process.pid]
        equal((process["verb"], process["details"]), ("serve", {"url": server.url, "model": TINY}))
        check(str(server.process.pid) in stet.ok("state").out.decode(), "the text names it too")
        equal(server.stop()[0], 0)
        equal([process["pid"] for process in running()], [other.process.pid], "one that stopped")
        other.process.kill()
        other.process.wait()
        equal(running(), [], "one that was killed")
    blocked = stet.folder / "blocked"
    blocked.write_text("a file where a folder would be")
    stet.env["XDG_DATA_HOME"] = str(blocked)
    try:
        with Server(stet) as server:
            server.wait_for_line("stet: warning: `stet state` will not show this server")
            equal(server.get("/health")[0], 200, "it serves all the same")
    finally:
        del stet.env["XDG_DATA_HOME"]


def the_systemd_unit_is_valid(stet: Stet) -> None:
    """systemd's own check, which needs no systemd that runs; the form with keys too."""
    analyze = shutil.which("systemd-analyze")
    unit = (ROOT / "deploy/stet.service").read_text(encoding="utf-8").replace("/usr/local/bin/stet", str(stet.program))
    flags = set(re.findall(r" (--?[a-z][a-z-]*)", " ".join(re.findall(r"ExecStart=(.*)", unit))))
    known = stet.ok("serve", "--help").out.decode()
    check(flags and all(flag in known for flag in flags), f"a flag of the unit is none of stet serve: {flags}")
    if analyze is None:
        raise Skip("there is no systemd-analyze")
    with_keys = re.sub(r"^ExecStart=.*\n", "", unit, flags=re.M)
    with_keys = re.sub(r"^#(LoadCredential=|ExecStart=)", r"\1", with_keys, flags=re.M)
    check(with_keys.count("\nExecStart=") == with_keys.count("\nLoadCredential=") == 1, "the commented form")
    for name, text in (("stet.service", unit), ("stet-keys.service", with_keys), ("wrong.service", unit.replace("Restart=", "Restrat="))):
        path = stet.folder / name
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([analyze, "verify", "--man=no", path], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        check((done.returncode == 0 and done.stdout + done.stderr == "") == (name != "wrong.service"), f"{name}: {done}")


def help_names_what_is_served(stet: Stet) -> None:
    text = stet.ok("serve", "--help").out.decode()
    page = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
    for flag in ("--host", "--port", "--listen", "--api-key-file", "--no-auth", "--allow-host", "--allow-origin", "--queue",
                 "--deadline", "--max-body", "--grace", "--log-prompts"):  # fmt: skip
        check(flag in text and f"`{flag}" in page, f"{flag} is missing from --help or docs/serving.md")


TESTS = [
    serves_until_a_signal, prompts_are_logged_on_request_only, health_tells_of_the_loading, wrong_flags_are_refused,
    an_address_in_use_is_refused, keys_open_it, strangers_are_refused_on_every_path, a_socket_in_the_file_system,
    a_stop_finishes_what_is_under_way, a_stop_without_grace_or_with_a_second_signal_cancels, a_stop_while_it_loads,
    state_shows_what_is_served, the_systemd_unit_is_valid, help_names_what_is_served,
]  # fmt: skip
