"""Clients that leave, stall, hurry, or come all at once."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import threading
import time

import wire
from context import Context
from expected import Expected
from ordinary import Wish, check_answer, same, until_served
from wire import Answer, Hurried, Line, Wrong, request

WAYS = ("close", "reset", "half")


def leave(line: Line, way: str) -> None:
    """half: the client closes its sending half, and waits until the server has closed."""
    if way == "half":
        line.close_half()
        line.take_rest()
    line.close(hard=way == "reset")


def template(ctx: Context, stream: bool) -> tuple[Expected, Wish, bytes]:
    wish = Wish(random.Random(0), stream)
    wish.ids, wish.usage, wish.cycles, wish.logprobs, wish.no_cache = True, stream, stream, False, False
    return ctx.first, wish, request(ctx.address, "POST", ctx.first.path, ctx.first.body(wish.fields(ctx.first.is_chat)))


def request_length(ctx: Context) -> int:
    return len(template(ctx, True)[2])


def answer_length(ctx: Context, stream: bool) -> int:
    """Of one answer to the template; others differ by the digits of their id."""
    want, wish, data = template(ctx, stream)
    with ctx.line() as line:
        line.send(data)
        ctx.tally.sent("templates")
        check_answer(ctx, want, wish, line.answer())
        return len(line.received)


def cut_request(ctx: Context, kind: str, _: random.Random, number: int) -> str:
    """number: how many bytes of the request are sent, and in which way the client leaves."""
    _, _, data = template(ctx, True)
    way, offset = WAYS[number % len(WAYS)], number // len(WAYS)
    ctx.tally.sent(kind)
    with ctx.line() as line:
        line.send(data[:offset])
        if way == "half" and offset == len(data):
            return _cut_whole(ctx, line)
        leave(line, way)
        if line.received:
            raise Wrong(f"an answer to {offset} of {len(data)} bytes: {bytes(line.received[:200])!r}")
    if offset == len(data):
        ctx.tally.cut(ctx.first.path, had=False)
    return f"{way}, not answered"


def _cut_whole(ctx: Context, line: Line) -> str:
    """The whole request, and half of the connection closed: it counts as leaving, unless the answer was there already."""
    line.close_half()
    text = line.take_rest()
    ctx.tally.cut(ctx.first.path, had=bool(text))
    if text and b"[DONE]" not in text and text.endswith(b"0\r\n\r\n"):
        raise Wrong(f"a cut stream that looks complete: {text[-300:]!r}")
    return "half, left"


def cut_answer(ctx: Context, kind: str, _: random.Random, number: int, stream: bool = True) -> str:
    """number: so many bytes of the answer are read before the client leaves."""
    want, wish, data = template(ctx, stream)
    ctx.tally.sent(kind)
    with ctx.line() as line:
        line.send(data)
        while len(line.received) < number and not line.received.startswith(b"HTTP/1.1 429"):
            if not line.receive(number - len(line.received)):  # behind a whole answer it stays open, so this one was cut
                raise Wrong(f"the server closed inside an answer: {bytes(line.received[-300:])!r}")
        if line.received.startswith(b"HTTP/1.1 429"):
            return check_answer(ctx, want, wish, line.answer())
        leave(line, WAYS[number % 2])
    ctx.tally.cut(want.path, had=number > 0)
    return f"left ({WAYS[number % 2]})"


def cut_whole_answer(ctx: Context, kind: str, rng: random.Random, number: int) -> str:
    return cut_answer(ctx, kind, rng, number, stream=False)


def cancel(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """A long stream, left after some of its events. Those that came are a beginning of the right ids."""
    want, wish = rng.choice(ctx.long), Wish(rng, stream=True)
    wish.ids, patience = True, rng.choice([1, 1, 2, 5, 20, 60])
    ctx.tally.sent(kind)
    with ctx.line() as line:
        line.send(request(ctx.address, "POST", want.path, want.body(wish.fields(want.is_chat))))
        answer = line.head()
        if answer.status == 429:
            for _ in line.body_pieces(answer):
                pass
            return check_answer(ctx, want, wish, answer)
        ctx.tally.cut(want.path, had=True)
        for _ in itertools.islice(line.body_pieces(answer), patience):
            pass
        leave(line, rng.choice(("close", "reset")))
    check_beginning(want, answer)
    return "left"


def check_beginning(want: Expected, answer: Answer) -> None:
    events = [json.loads(e) for e in answer.events() if e != "[DONE]"]
    ids = [i for e in events for c in e.get("choices", []) for i in c.get("token_ids", [])]
    same(ids, want.ids[: len(ids)], "token_ids before the client left")


# ---- pace


def slow_writer(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    want, wish = ctx.pick(rng), Wish(rng)
    data = request(ctx.address, "POST", want.path, want.body(wish.fields(want.is_chat)))
    piece, pause = rng.choice([1, 2, 5, 40]), rng.choice([0, 0.0005, 0.002])

    def once() -> str:
        ctx.tally.sent(kind)
        with ctx.line() as line:
            for at in range(0, len(data), piece):
                line.send(data[at : at + piece])
                if pause:
                    time.sleep(pause)
            return check_answer(ctx, want, wish, line.answer())

    return until_served(ctx, kind, once)


def slow_reader(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """With a small window and many log-probabilities, so that the answer waits at the server."""
    want, wish = rng.choice(ctx.long if rng.random() < 0.5 else ctx.short), Wish(rng, stream=True)
    fields = wish.fields(want.is_chat) | ({"logprobs": True, "top_logprobs": 20} if want.is_chat else {"logprobs": 20})
    wish.logprobs = True
    data = request(ctx.address, "POST", want.path, want.body(fields))
    pace = rng.choice([(64, 0.0002), (500, 0.001), (3000, 0.005)])

    def once() -> str:
        ctx.tally.sent(kind)
        with ctx.line(receive_buffer=2048) as line:
            line.send(data)
            line.pace = pace
            answer = line.head()
            for count, _ in enumerate(line.body_pieces(answer)):
                line.pace = pace if count < 40 else None
            return check_answer(ctx, want, wish, answer)

    return until_served(ctx, kind, once)


# ---- many at once


def pipelined(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """Several requests in one go; the answers come in their order. Some end with one that is wrong, or leave early."""
    asked = [(ctx.pick(rng), Wish(rng)) for _ in range(rng.randint(2, 8))]
    data = [request(ctx.address, "POST", w.path, w.body(wish.fields(w.is_chat))) for w, wish in asked]
    ending = rng.choice(["", "", "wrong", "leave", "close"])
    if ending == "wrong":
        data.append(b"BREW / HTTP/1.1\r\n\r\n")
    if ending == "close":
        want, wish = asked[-1]
        data[-1] = request(ctx.address, "POST", want.path, want.body(wish.fields(want.is_chat)), (("Connection", "close"),))
        data.append(b"GET /not-answered HTTP/1.1\r\n\r\n")
    ctx.tally.sent(kind, len(data) - (ending == "close"))
    read = rng.randrange(len(asked)) if ending == "leave" else len(asked)
    outcomes = []
    with ctx.line() as line:
        line.send(b"".join(data))
        for want, wish in asked[:read]:
            outcomes.append(check_answer(ctx, want, wish, line.answer()))
        if ending == "leave":
            for want, _ in asked[read:]:
                ctx.tally.cut(want.path, had=False)
        if ending == "wrong":
            refused = line.answer()
            same((refused.status, refused.closes), (400, True), "the answer to the wrong one")
            ctx.tally.answer(None, refused.status)
        if ending in ("wrong", "close"):
            line.expect_end()
    refusals = outcomes.count("429")
    ctx.tally.outcome(kind, "answers, in order", len(outcomes) - refusals)
    ctx.tally.outcome(kind, "429 among them", refusals)
    return "done"


def pipelined_reads(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """Hundreds of small requests ahead of their answers."""
    paths = [rng.choice(["/health", "/v1/models", "/nothing"]) for _ in range(rng.randint(20, 300))]
    ctx.tally.sent(kind, len(paths))
    with ctx.line() as line:
        writer = threading.Thread(target=line.try_send, args=(b"".join(request(ctx.address, path=p) for p in paths),))
        writer.start()
        for path in paths:
            answer = line.answer()
            same(answer.status, 404 if path == "/nothing" else 200, path)
            if path == "/v1/models":
                same(answer.json()["object"], "list", path)
            ctx.tally.answer("other" if path == "/nothing" else path, answer.status)
        writer.join()
    return "done"


def burst(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """More long requests at one moment than the queue holds: each is answered right or refused by name."""
    count = rng.randint(24, 40)
    want, wish = rng.choice(ctx.long), Wish(rng)
    wish.logprobs = False
    data = request(ctx.address, "POST", want.path, want.body(wish.fields(want.is_chat)))
    ctx.tally.sent(kind, count)
    outcomes = []
    with ctx.crowd, contextlib.ExitStack() as stack:
        lines = [stack.enter_context(ctx.line()) for _ in range(count)]
        for line in lines:
            line.send(data)
        for line in lines:
            outcomes.append(check_answer(ctx, want, wish, line.answer()))
    ctx.tally.outcome(kind, "right", outcomes.count("right"))
    ctx.tally.outcome(kind, "429", outcomes.count("429"))
    return "done"


def stampede(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """The same, but all of them leave, some while they wait and some while they are answered."""
    count = rng.randint(8, 24)
    want = rng.choice(ctx.long)
    data = request(ctx.address, "POST", want.path, want.body({"stream": True}))
    ctx.tally.sent(kind, count)
    with ctx.crowd, contextlib.ExitStack() as stack:
        lines = [stack.enter_context(ctx.line()) for _ in range(count)]
        for line in lines:
            line.send(data)
            ctx.tally.cut(want.path, had=False)
        if rng.random() < 0.5:
            try:
                lines[0].head()
            except Hurried as error:
                raise wire.Lost(f"a request in the queue was not answered: {error}") from None
        for line in lines:
            leave(line, rng.choice(("close", "reset")))
    return "left"
