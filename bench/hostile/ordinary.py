"""Requests of well-behaved clients. Each answer is compared with the plain decoder's, id by id."""

from __future__ import annotations

import json
import random
import time

import wire
from context import Context
from expected import Expected
from wire import Answer, Line, Wrong, request

SHORT_OF = {"stop": "stop", "length": "length", "context": "length"}
REFUSED_TRIES = 400  # a full queue is a right answer; who asks again is served in the end


def same(got: object, want: object, what: str) -> None:
    if got != want:
        raise Wrong(f"{what}: got {str(got)[:600]}, want {str(want)[:600]}")


class Wish:
    """How an answer is asked for; none of it changes what is answered."""

    def __init__(self, rng: random.Random, stream: bool | None = None):
        self.stream = rng.random() < 0.6 if stream is None else stream
        self.ids = rng.random() < 0.8
        self.usage = self.stream and rng.random() < 0.5
        self.cycles = self.stream and rng.random() < 0.4
        self.logprobs = rng.random() < 0.15
        self.no_cache = rng.random() < 0.2

    def fields(self, is_chat: bool) -> dict:
        out: dict = {}
        if self.stream:
            out["stream"] = True
        if self.ids:
            out["return_token_ids"] = True
        if self.usage:
            out["stream_options"] = {"include_usage": True}
        if self.cycles:
            out["cycle_events"] = True
        if self.logprobs:
            out |= {"logprobs": True, "top_logprobs": 2} if is_chat else {"logprobs": 2}
        if self.no_cache:
            out["cache_prompt"] = False
        return out


def check_usage(want: Expected, usage: dict) -> None:
    same(usage["prompt_tokens"], want.prompt_tokens, "prompt_tokens")
    same(usage["completion_tokens"], len(want.ids), "completion_tokens")
    same(usage["total_tokens"], want.prompt_tokens + len(want.ids), "total_tokens")
    if not 0 <= usage["prompt_tokens_details"]["cached_tokens"] <= want.prompt_tokens:
        raise Wrong(f"cached_tokens: {usage}")


def check_end(want: Expected, reason: str, extension: dict) -> None:
    same(reason, SHORT_OF[want.finish], "finish_reason")
    same(extension["finish"], want.finish, "stet.finish")
    same(extension["digest"], want.digest, "stet.digest")


def entries(logprobs: dict | None, is_chat: bool) -> int:
    return 0 if logprobs is None else len(logprobs["content" if is_chat else "tokens"])


def check_whole(want: Expected, wish: Wish, answer: Answer) -> None:
    body = answer.json()
    choice = body["choices"][0]
    same(choice["message"]["content"] if want.is_chat else choice["text"], want.text, "text")
    if wish.ids:
        same(choice["token_ids"], want.ids, "token_ids")
        if want.prompt_ids is not None:
            same(body["prompt_token_ids"], want.prompt_ids, "prompt_token_ids")
    if wish.logprobs:
        same(entries(choice["logprobs"], want.is_chat), len(want.ids), "log-probabilities")
    check_usage(want, body["usage"])
    check_end(want, choice["finish_reason"], body["stet"])


def check_cycles(events: list[dict], want: Expected) -> None:
    same([e["cycle"] for e in events], list(range(len(events))), "cycles")
    same([i for e in events for i in e["token_ids"]], want.ids, "token_ids of cycles")
    clock = [e["server_ns"] for e in events]
    same(clock, sorted(clock), "server_ns")
    for e in events:
        if not 0 <= e["accepted"] <= e["depth"] or len(e["token_ids"]) > e["accepted"] + 1:
            raise Wrong(f"cycle: {e}")


def check_stream(want: Expected, wish: Wish, answer: Answer) -> None:
    events = answer.events()
    if not events or events[-1] != "[DONE]":
        raise Wrong(f"a complete stream without [DONE]: {events[-1:]}")
    chunks = [json.loads(event) for event in events[:-1]]
    if wish.usage:
        last = chunks.pop()
        same(last["choices"], [], "choices beside the usage")
        check_usage(want, last["usage"])
    choices = [c["choices"][0] for c in chunks]
    text = "".join((c["delta"].get("content") or "") if want.is_chat else c["text"] for c in choices)
    same(text, want.text, "text")
    if wish.ids:
        same([i for c in choices for i in c.get("token_ids", [])], want.ids, "token_ids")
        if want.prompt_ids is not None:
            same(chunks[0]["prompt_token_ids"], want.prompt_ids, "prompt_token_ids")
    if wish.cycles:
        check_cycles([c["stet"] for c in chunks if "cycle" in c.get("stet", {})], want)
    if wish.logprobs:
        same(sum(entries(c["logprobs"], want.is_chat) for c in choices), len(want.ids), "log-probabilities")
    same([c["finish_reason"] for c in choices[:-1] if c["finish_reason"]], [], "finish_reason before the end")
    check_end(want, choices[-1]["finish_reason"], chunks[-1]["stet"])


def check_answer(ctx: Context, want: Expected, wish: Wish, answer: Answer) -> str:
    """'right', or '429' for a full queue, which asks to come again. Counts it."""
    ctx.tally.answer(want.path, answer.status)
    if answer.status == 429:
        same(answer.error_code(), "queue_full", "the code of 429")
        same("retry-after" in answer.headers, True, "Retry-After of 429")
        return "429"
    if answer.status != 200:
        raise Wrong(f"status {answer.status}: {answer.body[:300]!r}")
    streamed = answer.headers["content-type"].startswith("text/event-stream")
    same(streamed, wish.stream, "whether it is a stream")
    (check_stream if wish.stream else check_whole)(want, wish, answer)
    ctx.tally.checked(len(want.ids))
    return "right"


def until_served(ctx: Context, kind: str, once: object) -> str:
    """Asks again while the queue is full: no request may be lost."""
    refusals = 0
    while (outcome := once()) == "429":
        refusals += 1
        ctx.tally.outcome(kind, "429, asked again")
        if refusals > REFUSED_TRIES:
            raise wire.Lost(f"the queue was full {REFUSED_TRIES} times")
        time.sleep(min(0.02 * refusals, 0.3))
    return outcome


def ask(ctx: Context, line: Line, kind: str, want: Expected, wish: Wish, headers: tuple = (), version: str = "1.1") -> str:
    line.send(request(ctx.address, "POST", want.path, want.body(wish.fields(want.is_chat)), headers, version))
    ctx.tally.sent(kind)
    return check_answer(ctx, want, wish, line.answer())


# ---- the kinds


def one(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    want, wish = ctx.pick(rng), Wish(rng)

    def once() -> str:
        with ctx.line() as line:
            return ask(ctx, line, kind, want, wish)

    return until_served(ctx, kind, once)


def kept_alive(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    with ctx.line() as line:
        for _ in range(rng.randint(2, 5)):
            want, wish = ctx.pick(rng), Wish(rng)
            until_served(ctx, kind, lambda: ask(ctx, line, kind, want, wish))  # noqa: B023: called at once
    return "right"


def http_1_0(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """Without keep-alive the answer ends with the connection; a whole one says its length all the same."""
    want, wish = ctx.pick(rng), Wish(rng)
    host = () if rng.random() < 0.5 else (("Connection", "close"),)

    def once() -> str:
        with ctx.line() as line:
            outcome = ask(ctx, line, kind, want, wish, host, "1.0")
            line.expect_end()
            return outcome

    return until_served(ctx, kind, once)


def in_chunks(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    want, wish = ctx.pick(rng), Wish(rng)
    body = want.body(wish.fields(want.is_chat))
    most = rng.choice([1, 7, 64, 4096])
    sizes = iter(lambda: rng.randint(1, most), None)
    extension = rng.choice([b"", b";name", b';a="b"'])
    trailer = rng.choice([b"", b"X-Sum: 1\r\n"])
    fields = (("Content-Length", None), ("Transfer-Encoding", rng.choice(["chunked", "Chunked"])))
    head = request(ctx.address, "POST", want.path, b"", fields)
    data = head + wire.chunked(body, sizes, extension, trailer)

    def once() -> str:
        with ctx.line() as line:
            line.send(data)
            ctx.tally.sent(kind)
            return check_answer(ctx, want, wish, line.answer())

    return until_served(ctx, kind, once)


def expecting(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """Expect: 100-continue, as curl sends it."""
    want, wish = ctx.pick(rng), Wish(rng)
    body = want.body(wish.fields(want.is_chat))
    data = request(ctx.address, "POST", want.path, body, (("Expect", "100-continue"),))
    head = data[: len(data) - len(body)]

    def once() -> str:
        with ctx.line() as line:
            line.send(head)
            ctx.tally.sent(kind)
            same(line.head().status, 100, "the answer to Expect")
            line.send(body)
            return check_answer(ctx, want, wish, line.answer())

    return until_served(ctx, kind, once)


def oddly_written(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """The same JSON in other bytes: escapes, white space, another order, hints that change nothing."""
    want, wish = ctx.pick(rng), Wish(rng)
    fields = {**want.fields, **wish.fields(want.is_chat)}
    if rng.random() < 0.5:
        fields |= {"user": "someone", "metadata": {"a": [1, {"b": None}]}, "model": "any name"}
    items = list(fields.items())
    rng.shuffle(items)
    text = json.dumps(dict(items), indent=rng.choice([None, 1, 7]), separators=rng.choice([(",", ":"), (" ,\t", " : ")]))
    if rng.random() < 0.5:
        text = text.replace("prompt", "\\u0070r\\u006Fmpt", 1).replace("stream", "\\u0073tream", 1)
    body = rng.choice(["", " ", "\r\n\t"]).encode() + text.encode() + rng.choice([b"", b"\n", b" \r\n"])
    data = request(ctx.address, "POST", want.path, body, (("X-Latin", "caf\xe9"), ("Accept", "*/*")))

    def once() -> str:
        with ctx.line() as line:
            line.send(rng.choice([b"", b"\r\n", b"\r\n\r\n"]) + data)
            ctx.tally.sent(kind)
            return check_answer(ctx, want, wish, line.answer())

    return until_served(ctx, kind, once)


def reading(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    """What is no generation, in a random order on one connection."""
    with ctx.line() as line:
        for _ in range(rng.randint(1, 6)):
            path = rng.choice(["/", "/health", "/status", "/metrics", "/v1/models", "tokenize", "detokenize", "HEAD"])
            ctx.tally.sent(kind)
            if path in ("tokenize", "detokenize"):
                _tokens(ctx, line, ctx.pick_text(rng), path)
                continue
            method, path = ("HEAD", rng.choice(["/", "/health"])) if path == "HEAD" else ("GET", path)
            line.send(request(ctx.address, method, path + rng.choice(["", "?", "?a=b&c=%00"])))
            answer = line.answer(head_only=method == "HEAD")
            same(answer.status, 200, f"{method} {path}")
            ctx.tally.answer(path, 200)
            if path in ("/status", "/v1/models") and method == "GET":
                answer.json()
    return "right"


def _tokens(ctx: Context, line: Line, want: Expected, which: str) -> None:
    forth = which == "tokenize"
    fields = {"prompt": want.fields["prompt"]} if forth else {"tokens": want.prompt_ids}
    line.send(request(ctx.address, "POST", f"/{which}", json.dumps(fields).encode()))
    answer = line.answer()
    ctx.tally.answer(f"/{which}", answer.status)
    same(answer.status, 200, which)
    if forth:
        same(answer.json()["tokens"], want.prompt_ids, "tokens")
    elif want.fields["prompt"] not in answer.json()["prompt"]:  # the token that begins a text is shown, too
        raise Wrong(f"detokenize: {answer.body[:300]!r}")
