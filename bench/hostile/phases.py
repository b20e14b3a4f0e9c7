"""What needs a server, or all of one, for itself: too many connections, deadlines, stops."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import threading
import time

from context import Context
from disconnects import check_beginning
from ordinary import Wish, ask, check_answer, same
from served import Served
from wire import Answer, Hurried, Line, Wrong, request

MOST_CONNECTIONS = 256


def flood(ctx: Context, kind: str) -> str:
    """More connections than the server takes: the others are refused by name, and who was there before is served."""
    with contextlib.ExitStack() as stack:
        before = stack.enter_context(ctx.line())
        wish = Wish(random.Random(1))
        same(ask(ctx, before, kind, ctx.first, wish), "right", "before the flood")
        lines = [stack.enter_context(ctx.line()) for _ in range(MOST_CONNECTIONS + 40)]
        refused = 0
        for line in lines[-30:]:
            answer = line.answer()
            same((answer.status, answer.error_code()), (503, "overloaded"), "a connection too many")
            refused += 1
        same(ask(ctx, before, kind, ctx.first, wish), "right", "during the flood")
    return f"{refused} refused with 503"


def long_bodies(ctx: Context, kind: str, server: Served, bound_kib: int) -> str:
    """Bodies of two million values, several at once: what they took is given back."""
    body = b'{"prompt": "a", "metadata": [' + b"0," * 1_999_000 + b"0]}"
    data = request(ctx.address, "POST", "/tokenize", body)
    before = server.memory_kib()["VmRSS"]
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            lines = [stack.enter_context(ctx.line()) for _ in range(4)]
            writers = [threading.Thread(target=line.send, args=(data,)) for line in lines]
            for writer in writers:
                writer.start()
            for line, writer in zip(lines, writers):
                ctx.tally.sent(kind)
                answer = line.answer()
                writer.join()
                ctx.tally.answer("/tokenize", answer.status)
                same(answer.status, 400, "a field that is unknown there")
    after = server.memory_kib()["VmRSS"]
    if after - before > bound_kib:
        raise Wrong(f"{before} KiB before, {after} KiB after: more than {bound_kib} KiB were kept")
    return f"{before} KiB before, {after} KiB after"


def long_stream(ctx: Context, line: Line, number: int) -> Wish:
    want, wish = ctx.long[number % len(ctx.long)], Wish(random.Random(number), stream=number % 3 != 2)
    wish.ids, wish.logprobs = True, False
    line.send(request(ctx.address, "POST", want.path, want.body(wish.fields(want.is_chat))))
    return wish


def right_or_error(ctx: Context, line: Line, number: int, wish: Wish, status: int, code: str) -> str:
    """The whole answer, or the error: with its status, or as the last event of a stream that looks cut."""
    want = ctx.long[number % len(ctx.long)]
    answer = Answer(0, {})
    try:
        answer = line.head()
        for _ in line.body_pieces(answer):
            pass
    except Hurried:
        if answer.status == 0:
            return "not answered"
        events = answer.events()
        if "[DONE]" in events or not events or "error" not in (last := json.loads(events[-1])):
            raise Wrong(f"a cut stream without an error in the end: {events[-1:]}") from None
        same(last["error"]["code"], code, "the error of a cut stream")
        check_beginning(want, answer)
        return "cut"
    if answer.status == status:
        same(answer.error_code(), code, f"the code of {status}")
        return str(status)
    return check_answer(ctx, want, wish, answer)


def all_outcomes(ctx: Context, lines: list[Line], wishes: list[Wish], status: int, code: str) -> dict[str, int]:
    outcomes: dict[str, int] = {}
    for number, (line, wish) in enumerate(zip(lines, wishes)):
        outcome = right_or_error(ctx, line, number, wish, status, code)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def shown(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))


def deadline(ctx: Context, kind: str, server: Served) -> str:
    """--deadline 1, and a server that stands still for longer than that while requests are under way."""
    for _ in range(10):  # a server that is quick enough has answered all before it stands still
        outcomes = stand_still(ctx, kind, server)
        same(set(outcomes) - {"right", "504", "cut"}, set(), "outcomes")
        if "504" in outcomes:
            break
    same("504" in outcomes, True, f"whether the deadline passed ({outcomes})")
    with ctx.line() as line:
        same(ask(ctx, line, kind, ctx.first, Wish(random.Random(1))), "right", "after the deadline")
    return shown(outcomes)


def stand_still(ctx: Context, kind: str, server: Served) -> dict[str, int]:
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(ctx.line()) for _ in range(12)]
        ctx.tally.sent(kind, len(lines))
        wishes = [long_stream(ctx, line, number) for number, line in enumerate(lines)]
        lines[0].receive(1)
        server.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        server.send_signal(signal.SIGCONT)
        return all_outcomes(ctx, lines, wishes, 504, "deadline_exceeded")


def graceful_stop(ctx: Context, kind: str, server: Served) -> str:
    """SIGTERM while requests are under way: all of them are answered, nobody else is, and the exit code is 0."""
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(ctx.line()) for _ in range(10)]
        ctx.tally.sent(kind, len(lines))
        wishes = [long_stream(ctx, line, number) for number, line in enumerate(lines)]
        lines[0].receive(1)
        wait_for_waiting(server, len(lines))
        server.send_signal(signal.SIGTERM)
        outcomes = all_outcomes(ctx, lines, wishes, 503, "stopping")
        same(set(outcomes), {"right"}, "outcomes")
        same(server.end(None), 0, "the exit code")
    return shown(outcomes)


def wait_for_waiting(server: Served, asked: int) -> None:
    """Until the server has read all that was asked."""
    for _ in range(500):
        status = server.status()
        totals = status["totals"]
        if totals["finished"] + (status["active"] is not None) + status["queue"]["waiting"] >= asked:
            return
        time.sleep(0.01)
    raise Wrong(f"{asked} requests were sent; the server has {status}")


def hard_stop(ctx: Context, kind: str, server: Served) -> str:
    """--grace 0: what is under way is cancelled; nothing that was cut looks complete."""
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(ctx.line()) for _ in range(12)]
        ctx.tally.sent(kind, len(lines))
        wishes = [long_stream(ctx, line, number) for number, line in enumerate(lines)]
        lines[0].receive(1)
        ended: list[int] = []
        stopper = threading.Thread(target=lambda: ended.append(server.end(signal.SIGTERM)))
        stopper.start()
        outcomes = all_outcomes(ctx, lines, wishes, 503, "stopping")
        same(set(outcomes) - {"right", "503", "cut", "not answered"}, set(), "outcomes")
        stopper.join()
        same(ended, [0], "the exit code")
    return shown(outcomes)
