"""HTTP over a plain socket, for tests that send what no client library would.

A Line remembers every byte that it sent and received, so that a failure can be shown with what reproduces it. Answers are
read strictly: what a careful client would not accept is a failure of the server.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import time

PATIENCE_S = 60.0  # nobody waits longer for a byte: then it was lost


class Wrong(Exception):
    """The server did what it may not do."""


class Lost(Wrong):
    """Nothing came."""


class Hurried(Exception):
    """The connection ended while more was to be sent or read."""


class Answer:
    def __init__(self, status: int, headers: dict[str, str]):
        self.status, self.headers = status, headers
        self.body = b""
        self.complete = False

    @property
    def closes(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"

    def json(self) -> object:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Wrong(f"the body is no JSON ({error}): {self.body[:300]!r}") from None

    def error_code(self) -> str | None:
        """The code of OpenAI's error object; Wrong when the body is none."""
        return error_code(self.json())

    def events(self) -> list[str]:
        """The data of each server-sent event that came whole."""
        text = self.body.decode("utf-8")
        pieces = text.split("\n\n")
        if self.complete and pieces[-1]:
            raise Wrong(f"a complete stream ends inside an event: {pieces[-1][:200]!r}")
        for piece in pieces[:-1]:
            if not piece.startswith("data: ") or "\n" in piece:
                raise Wrong(f"no event: {piece[:200]!r}")
        return [piece[6:] for piece in pieces[:-1]]


def error_code(body: object) -> str | None:
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or set(error) != {"message", "type", "param", "code"} or not error["message"]:
        raise Wrong(f"no error object: {str(body)[:300]}")
    return error["code"]


class Line:
    """One connection."""

    def __init__(self, address: tuple[str, int], receive_buffer: int = 0, patience: float = PATIENCE_S):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent, self.received = bytearray(), bytearray()
        self.buffer = bytearray()  # received, not read
        self.at_end = self.was_reset = False
        self.pace: tuple[int, float] | None = None  # bytes to take at a time, and seconds to wait before
        self.socket.connect(address)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    # ---- sending

    def send(self, data: bytes) -> None:
        """Hurried when the server has closed."""
        self.sent += data
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self.was_reset = True
            raise Hurried("the server closed while it was sent to") from None
        except TimeoutError:
            raise Lost("the server takes no more bytes") from None

    def try_send(self, data: bytes) -> bool:
        try:
            self.send(data)
            return True
        except Hurried:
            return False

    def close_half(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.was_reset = True

    def close(self, hard: bool = False) -> None:
        """hard: with a reset, which destroys what is on its way."""
        if hard:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # ---- receiving

    def receive(self, most: int = 65536) -> bool:
        """More bytes; false at the end."""
        if self.at_end:
            return False
        if self.pace:
            most = self.pace[0]
            time.sleep(self.pace[1])
        try:
            data = self.socket.recv(most)
        except ConnectionResetError:
            self.was_reset, data = True, b""
        except TimeoutError:
            raise Lost(f"nothing came within {self.socket.gettimeout():.0f} s") from None
        self.buffer += data
        self.received += data
        self.at_end = not data
        return bool(data)

    def take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            if not self.receive():
                raise Hurried(f"the connection ended {size - len(self.buffer)} bytes too early")
        out = bytes(self.buffer[:size])
        del self.buffer[:size]
        return out

    def take_line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > 1 << 20:
                raise Wrong(f"a line without an end: {bytes(self.buffer[:200])!r}")
            if not self.receive():
                raise Hurried("the connection ended inside a line" if self.buffer else "the connection ended")
        line, _, rest = bytes(self.buffer).partition(b"\r\n")
        self.buffer = bytearray(rest)
        return line

    def take_rest(self) -> bytes:
        while self.receive():
            pass
        out = bytes(self.buffer)
        self.buffer.clear()
        return out

    def head(self) -> Answer:
        first = self.take_line()
        match = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [ -~]+", first)
        if not match:
            raise Wrong(f"no status line: {first[:200]!r}")
        headers: dict[str, str] = {}
        while line := self.take_line():
            field = re.fullmatch(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x20-\x7e\x80-\xff]*)", line)
            if not field:
                raise Wrong(f"no header: {line[:200]!r}")
            name = field[1].decode().lower()
            if name in headers:
                raise Wrong(f"the header {name} comes twice")
            headers[name] = field[2].decode("latin-1")
        return Answer(int(match[1]), headers)

    def body_pieces(self, answer: Answer, head_only: bool = False) -> object:
        """Yields when something was added to answer.body; in the end answer.complete. Hurried when it is cut."""
        headers = answer.headers
        chunked, length = headers.get("transfer-encoding"), headers.get("content-length")
        if head_only or answer.status in (204, 304):
            pass
        elif chunked is not None:
            if chunked != "chunked" or length is not None:
                raise Wrong(f"framing: {headers}")
            yield from self._chunks(answer)
        elif length is not None:
            if not length.isdigit():
                raise Wrong(f"Content-Length: {length}")
            answer.body = self.take(int(length))
        else:
            if not answer.closes:
                raise Wrong(f"an answer without a length on a connection that stays: {headers}")
            while self.receive() or self.buffer:
                answer.body += bytes(self.buffer)
                self.buffer.clear()
                yield
            if self.was_reset:
                raise Hurried("reset")
        answer.complete = True
        yield

    def _chunks(self, answer: Answer) -> object:
        while True:
            line = self.take_line()
            if not re.fullmatch(rb"[0-9a-f]{1,8}", line):
                raise Wrong(f"no size of a chunk: {line[:100]!r}")
            size = int(line, 16)
            data = self.take(size + 2)
            if data[size:] != b"\r\n":
                raise Wrong("a chunk does not end where it says")
            if size == 0:
                return
            answer.body += data[:size]
            yield

    def answer(self, head_only: bool = False) -> Answer:
        """A whole answer. Hurried when it is cut."""
        answer = self.head()
        for _ in self.body_pieces(answer, head_only):
            pass
        return answer

    def expect_end(self) -> None:
        """The server closes, and says nothing more."""
        rest = self.take_rest()
        if rest:
            raise Wrong(f"bytes behind the last answer: {rest[:200]!r}")


def request(
    address: tuple[str, int], method: str = "GET", path: str = "/health", body: bytes | None = None, headers: tuple = (),
    version: str = "1.1",
) -> bytes:  # fmt: skip
    """A correct request, unless headers say otherwise: a name there replaces the default, the value None drops it."""
    fields = {"Host": f"{address[0]}:{address[1]}"}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    more = []
    for name, value in headers:
        fields.pop(name, None)
        if value is not None:
            more.append((name, value))
    lines = [f"{method} {path} HTTP/{version}"] + [f"{n}: {v}" for n, v in [*fields.items(), *more]]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def chunked(body: bytes, sizes: object, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """The body in chunks of the sizes that the iterator gives."""
    out, at = b"", 0
    while at < len(body):
        piece = body[at : at + max(1, next(sizes))]
        out += b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)
        at += len(piece)
    return out + b"0\r\n" + trailer + b"\r\n"


def wait_until(condition: object, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
