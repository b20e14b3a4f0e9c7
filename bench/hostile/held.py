"""Connections that are held while the others work: silent ones, half a head, half a body, an answer that nobody reads."""

from __future__ import annotations

import contextlib
import random
import threading
import time

import wire
from context import Context
from disconnects import check_beginning
from ordinary import Wish, check_answer
from wire import Hurried, Wrong, request


class Held:
    """Starts them; finish() lets go of those that are still held so many seconds after that, and judges each."""

    def __init__(self, ctx: Context, each: int):
        self.ctx, self.failures = ctx, []
        self.over = threading.Event()
        kinds = (self._silent, self._half_head, self._half_body, self._unread)
        self.threads = [threading.Thread(target=self._guarded, args=(kind,), daemon=True) for kind in kinds for _ in range(each)]
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()

    def finish(self, hold: float) -> list[str]:
        for thread in self.threads:
            thread.join(max(0.0, self.began + hold - time.monotonic()))
        self.over.set()
        for thread in self.threads:
            thread.join()
        return self.failures

    def _guarded(self, kind: object) -> None:
        name = f"held: {kind.__name__[1:].replace('_', ' ')}"
        ctx = self.ctx.of_case()
        ctx.tally.sent(name)
        try:
            ctx.tally.outcome(name, kind(ctx))
        except (Wrong, Hurried, OSError) as error:
            self.failures.append(f"{name}: {error}")
            ctx.tally.outcome(name, "FAILED")

    def _wait(self, line: wire.Line) -> bool:
        """Whether something came before all was over."""
        line.socket.settimeout(0.25)
        while not self.over.is_set():
            with contextlib.suppress(wire.Lost):
                line.receive()
                line.socket.settimeout(self.ctx.patience)
                return True
        return False

    def _late(self, ctx: Context, line: wire.Line) -> str:
        answer = line.answer()
        if answer.status != 408 or not answer.closes:
            raise Wrong(f"{answer.status} instead of 408")
        answer.error_code()
        ctx.tally.answer(None, 408)
        line.expect_end()
        return "408 closed"

    def _silent(self, ctx: Context) -> str:
        with ctx.line() as line:
            if not self._wait(line):
                return "left in the end"
            line.expect_end()
            return "closed after its time"

    def _half_head(self, ctx: Context) -> str:
        """Refused after 10 s, which every run waits for."""
        data = request(ctx.address, "POST", ctx.first.path, ctx.first.body())
        with ctx.line() as line:
            line.send(data[: random.Random(len(self.failures)).randrange(1, 60)])
            return self._late(ctx, line)

    def _half_body(self, ctx: Context) -> str:
        """Refused after 120 s."""
        data = request(ctx.address, "POST", ctx.first.path, ctx.first.body())
        with ctx.line() as line:
            line.send(data[:-10])
            return self._late(ctx, line) if self._wait(line) else "left in the end"

    def _unread(self, ctx: Context) -> str:
        """What is kept for it is bounded, and so is the time: it is cut off after 30 s, or gets all in the end."""
        want, wish = max(ctx.expected, key=lambda e: len(e.ids)), Wish(random.Random(0), stream=True)
        wish.ids = wish.logprobs = True
        many = {"logprobs": True, "top_logprobs": 20} if want.is_chat else {"logprobs": 20}
        with ctx.line(receive_buffer=2048) as line:
            line.send(request(ctx.address, "POST", want.path, want.body(wish.fields(want.is_chat) | many)))
            self.over.wait()
            time.sleep(0.1)
            answer = wire.Answer(0, {})
            try:
                answer = line.head()
                for _ in line.body_pieces(answer):
                    pass
            except Hurried:
                ctx.tally.cut(want.path, had=True)
                check_beginning(want, answer)
                return "cut off"
            return check_answer(ctx, want, wish, answer)
