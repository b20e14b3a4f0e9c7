"""What the tests with clients share: a running server, the program itself as the reference, checks that count."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

TIMEOUT_S = 120
ADDRESS = re.compile(r"listening on (http://127\.0\.0\.1:\d+|unix:\S+)")


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def check(condition: object, what: object) -> None:
    if not condition:
        raise Failure(str(what))


def equal(got: object, want: object, what: object = "") -> None:
    check(got == want, f"{what}: got {got!r}, want {want!r}")


def raises(kind: type[BaseException], call, *args: object, **named: object) -> BaseException:
    """The error of a call, which must be of this very type or one below it."""
    try:
        result = call(*args, **named)
    except kind as error:
        return error
    except Exception as error:
        raise Failure(f"{type(error).__module__}.{type(error).__name__} instead of {kind.__name__}: {error}") from error
    raise Failure(f"no {kind.__name__}, but {result!r}")


class Server:
    """`stet serve` of a model on a free port; what it prints is read as it comes."""

    def __init__(self, program: pathlib.Path, model: str, *flags: str):
        self.command = [str(program), "serve", "-m", model, *(() if "--listen" in flags else ("--port", "0")), *flags]
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        errors="replace")  # fmt: skip
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = ADDRESS.search(self.wait_for(ADDRESS.pattern))[1]
        self.wait_for(r"\bready\b")

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.lines.append("(the program has ended)")
            self._changed.notify_all()

    def wait_for(self, pattern: str, since: int = 0) -> str:
        """The first line, from number `since` on, in which the pattern is found."""
        deadline = time.monotonic() + TIMEOUT_S
        with self._changed:
            while True:
                for line in self.lines[since:]:
                    if re.search(pattern, line):
                        return line
                ended = self.lines and self.lines[-1].startswith("(the program")
                if ended or not self._changed.wait(deadline - time.monotonic()):
                    raise Failure(f"{' '.join(self.command)}: no line with {pattern!r}:\n" + "\n".join(self.lines[-20:]))

    @property
    def v1(self) -> str:
        return self.url + "/v1"

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise Failure("the server did not stop") from None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class World:
    """The program, the model, a folder, and a server that most tests share."""

    def __init__(self, program: pathlib.Path, model: str, folder: pathlib.Path):
        self.program, self.model, self.folder = program.resolve(), model, folder
        self.flags = ("--ctx", "512", "--draft", "ngram")
        self.server = Server(self.program, model, *self.flags)

    def run(self, *args: object) -> dict:
        """`stet run --json`: the reference, without a draft, which changes nothing."""
        command = [str(self.program), "run", "-m", self.model, "--ctx", "512", *map(str, args), "--json", "--quiet"]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
        equal(done.returncode, 0, done.stderr.decode("utf-8", "replace"))
        return json.loads(done.stdout)

    def another(self, *flags: str) -> Server:
        return Server(self.program, self.model, *self.flags, *flags)


def run_tests(tests: list, world: World, only: str) -> int:
    passed = failed = 0
    for test in tests:
        name = f"{test.__module__}.{test.__name__}"
        if only not in name:
            continue
        started = time.monotonic()
        try:
            test(world)
        except Skip as why:
            print(f"skipped {name}: {why}", flush=True)
            continue
        except Exception as error:  # noqa: BLE001: clients throw types of their own
            failed += 1
            kind = "" if isinstance(error, Failure) else f"{type(error).__module__}.{type(error).__name__}: "
            print(f"FAILED {name}: {kind}{error}", flush=True)
            continue
        passed += 1
        print(f"ok     {name}  ({time.monotonic() - started:.1f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def clean_environment() -> None:
    """Clients take settings from the environment, and proxies."""
    for name in list(os.environ):
        if re.search(r"(?i)^(openai|litellm|langchain|langsmith|llm_|azure|http_proxy|https_proxy|all_proxy)", name):
            del os.environ[name]
    os.environ["NO_PROXY"] = "127.0.0.1"
