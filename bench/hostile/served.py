"""A `stet serve` of one's own: its start, its log, its counters, and what it takes of the machine."""

from __future__ import annotations

import atexit
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import wire

START_S = 300.0
LOG_LINE = re.compile(r"stet: #(\d+) (\S+) (\S+) (\d{3}) from (\S+) in \d+\.\d{3} s(: .*)?$")


class Served:
    def __init__(self, program: pathlib.Path, model: str, flags: list[str], environment: dict[str, str]):
        self.command = [str(program), "serve", "-m", model, "--port", "0", *flags]
        self.lines: list[str] = []
        self.by_status: collections.Counter[int] = collections.Counter()
        self.address = ("", 0)
        self._listening, self._ready = threading.Event(), threading.Event()
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            errors="replace", env=environment,
        )  # fmt: skip
        atexit.register(self.process.kill)  # a bench that breaks leaves nothing behind
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        end = time.monotonic() + START_S
        while not self._ready.wait(0.05):
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                self._reader.join()
                raise SystemExit(f"{self.command} did not start:\n" + "\n".join(self.lines[-20:]))

    def _read_log(self) -> None:
        for line in self.process.stderr:
            line = line.rstrip("\n")
            match = LOG_LINE.fullmatch(line)
            if match:
                self.by_status[int(match[4])] += 1
                if len(self.lines) > 2000:  # of the beginning and the end
                    del self.lines[1000]
            self.lines.append(line)
            found = re.fullmatch(r"stet: listening on http://([\d.]+):(\d+)", line)
            if found:
                self.address = (found[1], int(found[2]))
                self._listening.set()
            if line == "stet: ready":
                self._ready.set()

    @property
    def pid(self) -> int:
        return self.process.pid

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int | None = signal.SIGTERM, seconds: float = 60.0) -> int:
        """The exit code after a signal; None: it was sent already. Killed, and -9, when it does not end."""
        if number is not None and self.process.poll() is None:
            self.send_signal(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(10)
        return self.process.returncode

    # ---- what it takes

    def memory_kib(self) -> dict[str, int]:
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text, re.M))
        return {name: int(found[name]) for name in ("VmRSS", "RssAnon", "VmHWM")}

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    # ---- what it says

    def get(self, path: str) -> wire.Answer:
        """Waits while there are too many connections."""
        while True:
            with wire.Line(self.address) as line:
                sent = line.try_send(wire.request(self.address, path=path))
                answer = line.answer() if sent else None
            if answer is not None and answer.status == 200:
                return answer
            time.sleep(0.05)

    def status(self) -> dict:
        return self.get("/status").json()

    def metrics(self) -> dict[tuple[str, tuple], float]:
        """(name, sorted labels) -> value."""
        out = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith("#") or not line:
                continue
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if not match:
                raise wire.Wrong(f"no metric: {line!r}")
            labels = tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or "")))
            out[match[1], labels] = float(match[3])
        return out


def plain_environment(folder: pathlib.Path) -> dict[str, str]:
    keep = ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH")
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"),
        **{name: os.environ[name] for name in keep if name in os.environ},
    }  # fmt: skip


def run_json(program: pathlib.Path, arguments: list[str], environment: dict[str, str], text: bytes = b"") -> object:
    """What a fresh process prints."""
    done = subprocess.run([str(program), *arguments], input=text, capture_output=True, env=environment, timeout=START_S)
    if done.returncode != 0:
        raise SystemExit(f"{arguments}: exit code {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    return json.loads(done.stdout)
