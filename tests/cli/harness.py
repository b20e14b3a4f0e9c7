"""What the tests of the command line share: running the program, files with one thing wrong, checks that count."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import time

TIMEOUT_S = 300


class Failure(Exception):
    pass


class Skip(Exception):
    pass


# What a measurement on a disturbed machine gives as its reason.
DISTURBED = ("steal:", "throttling:", "swapping:", "suspend:")


class Result:
    def __init__(self, code: int, out: bytes, err: bytes):
        self.code, self.out, self.err = code, out, err.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"exit code {self.code}, stdout {self.out[:300]!r}, stderr {self.err[-600:]!r}"


def check(condition: object, what: object) -> None:
    if not condition:
        raise Failure(str(what))


def equal(got: object, want: object, what: object = "") -> None:
    check(got == want, f"{what}: got {got!r}, want {want!r}")


class Stet:
    """The program, with a cache directory and a home of its own."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path):
        self.program, self.folder = program.resolve(), folder
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TERM": "xterm", "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }  # fmt: skip

    def start(self, *args: object, **options: object) -> subprocess.Popen:
        options.setdefault("stdin", subprocess.DEVNULL)
        env = {**self.env, **options.pop("env", {})}
        return subprocess.Popen(
            [self.program, *map(str, args)], stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
            cwd=self.folder, env=env, **options,
        )  # fmt: skip

    def __call__(self, *args: object, text: bytes | None = None, **options: object) -> Result:
        if text is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*args, **options)
        try:
            out, err = process.communicate(text, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failure(f"{args} did not end within {TIMEOUT_S} s") from None
        return Result(process.returncode, out or b"", err)

    def ok(self, *args: object, **options: object) -> Result:
        result = self(*args, **options)
        equal(result.code, 0, f"{args}: {result}")
        return result

    def json(self, *args: object, **options: object) -> dict:
        out = self.ok(*args, "--json", **options).out
        check(out.endswith(b"\n") and out.count(b"\n") == 1, f"{args}: not one line: {out[:200]!r}")
        return json.loads(out)

    def refuses(self, code: int, *args: object, says: tuple[str, ...] | str = (), **options: object) -> Result:
        """One line of error, this exit code, these words in it, and nothing on standard output."""
        result = self(*args, **options)
        equal(result.code, code, f"{args}: {result}")
        errors = [line for line in result.err.splitlines() if line.startswith("stet: error: ")]
        equal(len(errors), 1, f"lines of error of {args}: {result}")
        check(result.err.endswith(errors[0] + "\n"), f"{args}: the error is not the last line: {result}")
        equal(result.out, b"", f"stdout of {args}")
        for words in (says,) if isinstance(says, str) else says:
            check(words in errors[0], f"{args}: {words!r} is not in {errors[0]!r}")
        return result

    def interrupt_after(self, process: subprocess.Popen, stream: object) -> Result:
        """Ctrl-C once something came on the stream, or a second passed."""
        first = b""
        if stream is not None:
            ready, _, _ = select.select([stream], [], [], TIMEOUT_S)
            check(ready, "nothing came")
            first = os.read(stream.fileno(), 1)
        else:
            time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return Result(process.returncode, first + (out or b""), err)


class Terminal:
    """The program with a terminal as its standard input, output and error."""

    def __init__(self, stet: Stet, *args: object, env: dict[str, str] | None = None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(stet.folder)
                os.execve(stet.program, [str(stet.program), *map(str, args)], {**stet.env, **(env or {})})
            finally:
                os._exit(127)
        self.seen = b""  # not expected yet
        self.all = b""

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen += data
        self.all += data
        return bool(data)

    def expect(self, *words: str, seconds: float = 30.0) -> None:
        for word in words:
            end = time.monotonic() + seconds
            while word.encode() not in self.seen:
                alive = self._read(0.2)
                if word.encode() in self.seen:
                    break
                check(alive and time.monotonic() < end, f"{word!r} did not appear; last: {self.all[-800:]!r}")
            self.seen = self.seen.split(word.encode(), 1)[1]

    def send(self, text: str) -> None:
        time.sleep(0.1)  # the terminal forgets what it has not handed over yet when Ctrl-C comes
        os.write(self.fd, text.encode())

    def line(self, text: str) -> None:
        self.send(text + "\r")

    def close(self, seconds: float = 30.0) -> int:
        end = time.monotonic() + seconds
        while self._read(0.1) and time.monotonic() < end:
            pass
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise Failure(f"it did not end; last: {self.all[-800:]!r}")


def replaced_value(data: bytes, key: str, old: str, new: str) -> bytes:
    """A GGUF file with the value of a string key replaced by one of the same length."""
    equal(len(old), len(new))
    head = struct.pack("<Q", len(key)) + key.encode() + struct.pack("<IQ", 8, len(old)) + old.encode()
    equal(data.count(head), 1, f"places of {key}")
    return data.replace(head, head[: -len(old)] + new.encode())


def tensor_entry(data: bytes, name: str) -> int:
    """Where the entry of a tensor in the table begins, behind its name."""
    head = struct.pack("<Q", len(name)) + name.encode()
    equal(data.count(head), 1, f"places of {name}")
    return data.index(head) + len(head)


def with_tensor(data: bytes, name: str, shape: int | None = None, kind: int | None = None, offset: int | None = None) -> bytes:
    """A GGUF file whose entry of a tensor has another first dimension, type or offset."""
    out = bytearray(data)
    at = tensor_entry(data, name)
    dimensions = struct.unpack_from("<I", data, at)[0]
    if shape is not None:
        struct.pack_into("<Q", out, at + 4, shape)
    at += 4 + 8 * dimensions
    if kind is not None:
        struct.pack_into("<I", out, at, kind)
    if offset is not None:
        struct.pack_into("<Q", out, at + 4, offset)
    return bytes(out)


def run_tests(tests: list, stet: Stet, only: str) -> int:
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for test in tests:
        name = test.__name__
        if only not in name:
            continue
        began = time.monotonic()
        try:
            test(stet)
            verdict, why = "passed", ""
        except Skip as skip:
            verdict, why = "skipped", f": {skip}"
        except Exception as failure:  # a test that breaks has failed
            verdict, why = "failed", f": {type(failure).__name__}: {failure}"
        counts[verdict] += 1
        print(f"{verdict:<8}{name} ({time.monotonic() - began:.1f} s){why}", flush=True)
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if counts["failed"] else 0
