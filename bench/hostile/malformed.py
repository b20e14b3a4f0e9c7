"""Requests that are wrong in one way, each with the answers that are right.

A spell is a name, the bytes, and the outcomes that are allowed: "400 open" (answered, and the connection serves the next
request), "400 closed" (answered, and the connection is closed in order), "closed" (no answer, because no request was there),
"reset" (only where the client still sent more than anybody would read). `endpoint` is where /metrics counts what stays open;
what is closed was refused by the transport, before anybody read a body.
"""

from __future__ import annotations

import json
import random
from typing import NamedTuple

from context import Context
from wire import Hurried, Line, Wrong, request

COMPLETIONS = "/v1/completions"
HUGE = 1 << 20


class Spell(NamedTuple):
    name: str
    data: bytes
    allowed: tuple[str, ...]
    endpoint: str | None = None
    half_close: bool = False


def outcome_of(ctx: Context, line: Line, spell: Spell) -> str:
    whole = line.try_send(spell.data)
    if spell.half_close and whole:
        line.close_half()
    try:
        answer = line.answer(head_only=spell.data.startswith(b"HEAD "))
    except Hurried:
        if line.received:
            raise Wrong(f"a cut answer: {bytes(line.received[:300])!r}") from None
        return "reset" if line.was_reset else "closed"
    if answer.status >= 400 and answer.body:
        answer.error_code()
    if not answer.closes:
        line.send(request(ctx.address))
        if line.answer().status != 200:
            raise Wrong("the request behind it on the same connection was not served")
        ctx.tally.answer("/health", 200)
        return f"{answer.status} open"
    line.expect_end()
    return f"{answer.status} closed"


def cast(ctx: Context, kind: str, spell: Spell) -> str:
    ctx.tally.sent(kind)
    with ctx.line() as line:
        try:
            outcome = outcome_of(ctx, line, spell)
        except Wrong as wrong:
            raise Wrong(f"{spell.name}: {wrong}") from None
    if outcome not in spell.allowed:
        raise Wrong(f"{spell.name}: {outcome}; allowed: {', '.join(spell.allowed)}; {bytes(line.received[:400])!r}")
    if outcome[0].isdigit():
        ctx.tally.answer(spell.endpoint if outcome.endswith("open") else None, int(outcome[:3]))
    elif outcome == "reset":
        ctx.tally.maybe_refused()
    return outcome


# ---- framing: lengths and chunks


def framing(ctx: Context, rng: random.Random) -> Spell:
    a, good = ctx.address, ctx.first.body()

    def post(*headers: tuple, body: bytes = good) -> bytes:
        return request(a, "POST", COMPLETIONS, body, (("Content-Length", None), *headers))

    def chunks(body: bytes) -> bytes:
        return post(("Transfer-Encoding", "chunked"), body=body)

    length = str(len(good))
    number = rng.choice(["-1", "+5", "0x10", "5 5", "", "1e3", "18446744073709551616", "99999999999999999999999", "5,5", "\t"])
    coding = rng.choice(["gzip, chunked", "identity", "chunked, chunked", "xchunked", "chunked;q=1"])
    size = rng.choice([b"zz", b"-1", b"0x5", b"fffffffffffffffff", b"", b" 5", b"5 5"])
    spells = [
        lambda: Spell("Content-Length that is none", post(("Content-Length", number)), ("400 closed",)),
        lambda: Spell("Content-Length beyond the limit", post(("Content-Length", rng.choice(["67108865", "999999999999", "18446744073709551615"]))), ("413 closed",)),
        lambda: Spell("Content-Length twice", post(("Content-Length", length), ("Content-Length", rng.choice([length, "5"]))), ("400 closed",)),
        lambda: Spell("Content-Length and chunked", post(("Content-Length", length), ("Transfer-Encoding", "chunked")), ("400 closed",)),
        lambda: Spell("no length", post(), ("411 closed",)),
        lambda: Spell("another coding", post(("Transfer-Encoding", coding)), ("400 closed", "501 closed")),
        lambda: Spell("chunked in HTTP/1.0", chunks(good).replace(b"HTTP/1.1", b"HTTP/1.0", 1), ("400 closed",)),
        lambda: Spell("a size of a chunk that is none", chunks(size + b"\r\n" + good + b"\r\n0\r\n\r\n"), ("400 closed",)),
        lambda: Spell("a chunk longer than the limit", chunks(b"7fffffff\r\n" + good), ("413 closed",)),
        lambda: Spell("a chunk longer than it says", chunks(b"%x\r\n" % (len(good) - 3) + good + b"\r\n0\r\n\r\n"), ("400 closed",)),
        lambda: Spell("an endless line of a chunk", chunks(b"5;" + b"x" * 70_000), ("400 closed", "reset")),
        lambda: Spell("chunks that end too early", chunks(b"%x\r\n" % (len(good) + 9) + good), ("closed",), None, True),
        lambda: Spell("a body shorter than its length", post(("Content-Length", str(len(good) + rng.randint(1, 500)))), ("closed",), None, True),
        lambda: Spell("an Expect that nobody knows", post(("Content-Length", length), ("Expect", "200-maybe")), ("417 closed",)),
    ]  # fmt: skip
    return rng.choice(spells)()


def too_long_body(ctx: Context, rng: random.Random) -> Spell:
    """Content-Length says less than there is: the rest is no request."""
    good = ctx.first.body()
    less = rng.randint(1, len(good) - 2)
    data = request(ctx.address, "POST", COMPLETIONS, good, (("Content-Length", str(less)),))
    return Spell("a body longer than its length", data, ("400",), COMPLETIONS)


def cast_too_long(ctx: Context, kind: str, spell: Spell) -> str:
    """Two answers: the cut JSON is refused, and then what follows, which is no request."""
    ctx.tally.sent(kind)
    with ctx.line() as line:
        line.send(spell.data)
        first = line.answer()
        if first.status != 400 or first.closes:
            raise Wrong(f"{spell.name}: {first.status} {first.headers}")
        ctx.tally.answer(COMPLETIONS, 400)
        line.close_half()
        try:
            second = line.answer()
        except Hurried:
            if line.buffer:
                raise Wrong("the second answer was cut") from None
            ctx.tally.maybe_refused()
            return "400, closed"
        if second.status not in (400, 501, 505) or not second.closes:
            raise Wrong(f"{spell.name}: the rest got {second.status}")
        ctx.tally.answer(None, second.status)
        line.expect_end()
    return f"400, {second.status} closed"


# ---- heads


def head(ctx: Context, rng: random.Random) -> Spell:
    a = ctx.address

    def get(*headers: tuple, method: str = "GET", path: str = "/health", version: str = "1.1") -> bytes:
        return request(a, method, path, None, headers, version)

    plain = get()
    spells = [
        lambda: Spell("a header of 1 MB", get(("X-Long", "x" * HUGE)), ("431 closed", "reset")),
        lambda: Spell("a target of 1 MB", get(path="/" + "x" * HUGE), ("431 closed", "400 closed", "reset")),
        lambda: Spell("a name of 1 MB", get(("X" * HUGE, "1")), ("431 closed", "400 closed", "reset")),
        lambda: Spell("thousands of headers", get(*((f"X-{i}", "y") for i in range(rng.randint(300, 5000)))), ("431 closed", "reset")),
        lambda: Spell("a header without a name", get(("", "x")), ("400 closed",)),
        lambda: Spell("a space in a name", get(("X Y", "x")), ("400 closed",)),
        lambda: Spell("a zero byte in a value", get(("X-Zero", "a\0b")), ("400 closed",)),
        lambda: Spell("a carriage return in a value", get(("X-Return", "a\rb")), ("400 closed",)),
        lambda: Spell("a folded header", get(("X-Folded", "a\r\n b")), ("400 closed", "200 open"), "/health"),
        lambda: Spell("line feeds alone", plain.replace(b"\r\n", b"\n"), ("400 closed", "closed"), None, True),
        lambda: Spell("a space before the colon", plain.replace(b"Host:", b"Host :"), ("400 closed",)),
        lambda: Spell("a method that nobody knows", get(method=rng.choice(["BREW", "get", "TRACE", "CONNECT", "PROPFIND", "G\xcbT"])), ("400 closed", "501 closed")),
        lambda: Spell("another version", get(version=rng.choice(["2.0", "1.2", "0.9", "3.7"])), ("505 closed",)),
        lambda: Spell("no version that anybody reads", get(version=rng.choice(["1", "11", "x.y", ""])), ("400 closed", "505 closed")),
        lambda: Spell("HTTP/0.9", b"GET /health\r\n\r\n", ("400 closed", "505 closed")),
        lambda: Spell("bytes in the target", get(path="/\xff\xfe"), ("400 closed",)),
        lambda: Spell("a fragment in the target", get(path="/health#x"), ("400 closed",)),
        lambda: Spell("a proxy's target", get(path=rng.choice(["http://example.com/", "example.com:443", "ftp://127.0.0.1/", "health", "*"])), ("400 closed",)),
        lambda: Spell("a target of its own", get(path=f"http://{a[0]}:{a[1]}/health"), ("200 open",), "/health"),
        lambda: Spell("HTTP/2 at once", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ("400 closed", "501 closed", "505 closed")),
    ]  # fmt: skip
    return rng.choice(spells)()


def who(ctx: Context, rng: random.Random) -> Spell:
    """Host and Origin, as a page of another site or a rebound name would send them."""
    a, body = ctx.address, ctx.first.body()
    here = f"{a[0]}:{a[1]}"

    def post(*headers: tuple) -> bytes:
        return request(a, "POST", COMPLETIONS, body, headers)

    host = rng.choice(["evil.example", "127.0.0.1.evil.example", "0.0.0.0", "[::]", "10.1.2.3:80", "localhost.evil.example"])
    bad = rng.choice(["user@127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", "a b", "", "[::1", "%31", "127.0.0.1:"])
    origin = rng.choice(["http://evil.example", "null", "https://evil.example", "http://127.0.0.1:1", "file://", "*"])
    spells = [
        lambda: Spell("another host", post(("Host", host)), ("403 closed",)),
        lambda: Spell("no host that anybody reads", post(("Host", bad)), ("400 closed",)),
        lambda: Spell("no Host", post(("Host", None)), ("400 closed",)),
        lambda: Spell("two Hosts", post(("Host", here), ("Host", here)), ("400 closed",)),
        lambda: Spell("another origin", post(("Origin", origin)), ("403 closed",)),
        lambda: Spell("two origins", post(("Origin", f"http://{here}"), ("Origin", "http://evil.example")), ("400 closed",)),
        lambda: Spell("a page of another site", post(("Sec-Fetch-Site", rng.choice(["cross-site", "same-site"]))), ("403 closed",)),
        lambda: Spell("its own page", request(a, "GET", "/status", None, (("Origin", f"http://{here}"),)), ("200 open",), "/status"),
        lambda: Spell("a preflight of another origin", request(a, "OPTIONS", COMPLETIONS, None, (("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST"))), ("403 closed",)),
    ]  # fmt: skip
    return rng.choice(spells)()


def garbage(ctx: Context, rng: random.Random) -> Spell:
    size = rng.choice([1, 3, 20, 200, 3000, 40_000])
    noise = rng.randbytes(size)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200)
    text = "".join(rng.choice("GET /HTP1.:\r\n \t{}[]") for _ in range(size)).encode()
    name, data = rng.choice([("noise", noise), ("a TLS hello", hello), ("almost HTTP", text), ("nothing but line ends", b"\r\n" * size)])
    # Half a head is none, and what closes its half has left.
    return Spell(name, data, ("400 closed", "501 closed", "505 closed", "431 closed", "closed"), None, True)


def route(ctx: Context, rng: random.Random) -> Spell:
    a, body = ctx.address, b"{}"
    path = rng.choice(["/v2", "/v1/chat", "//health", "/health/", "/%2e%2e/etc/passwd", "/../../etc/passwd", "/v1/responses", "/favicon.ico"])
    spells = [
        lambda: Spell("a path that is none", request(a, rng.choice(["GET", "DELETE"]), path), ("404 open",), "other"),
        lambda: Spell("a path that is none, with a body", request(a, "POST", path, body), ("404 open",), "other"),
        lambda: Spell("a model that is none", request(a, "GET", "/v1/models/none%2F" + "x" * rng.randint(0, 900)), ("404 open",), "/v1/models/"),
        lambda: Spell("GET of a POST path", request(a, "GET", COMPLETIONS), ("405 open",), COMPLETIONS),
        lambda: Spell("POST of a GET path", request(a, "POST", "/health", body), ("405 open",), "/health"),
        lambda: Spell("PUT, PATCH", request(a, rng.choice(["PUT", "PATCH"]), "/status", body), ("405 open",), "/status"),
        lambda: Spell("DELETE", request(a, "DELETE", COMPLETIONS), ("405 open",), COMPLETIONS),
    ]  # fmt: skip
    return rng.choice(spells)()


# ---- bodies


def body_spell(ctx: Context, name: str, body: bytes, path: str = COMPLETIONS, status: str = "400") -> Spell:
    return Spell(name, request(ctx.address, "POST", path, body), (f"{status} open",), path)


def json_text(ctx: Context, rng: random.Random) -> Spell:
    """Bodies that are no JSON, or JSON that no reader agrees about."""
    deep = rng.choice([65, 100, 1000, 100_000, 500_000])
    good = ctx.first.body()
    flat = b'{"prompt": "a", "max_tokens": 1, '
    spells = [
        ("an empty body", lambda: b""),
        ("white space", lambda: b" \r\n\t "),
        ("no JSON", lambda: rng.choice([b"hello", b"{", b"}", b"[1", b"{'prompt': 1}", b"{\"prompt\"}", b"<xml/>", b"\0", b"{} {}", b"tru"])),
        ("JSON that is cut", lambda: good[: rng.randrange(1, len(good) - 1)]),
        ("no object", lambda: rng.choice([b"[]", b"1", b"null", b'"text"', b"true", b"[{}]"])),
        ("arrays in arrays", lambda: b"[" * deep),
        ("arrays in arrays, closed", lambda: flat + b'"metadata": ' + b"[" * deep + b"]" * deep + b"}"),
        ("objects in objects", lambda: b'{"a":' * deep),
        ("a number beyond all", lambda: flat + b'"temperature": ' + rng.choice([b"1e999", b"-1e999", b"9" * 400, b"1e99999999999"]) + b"}"),
        ("no number", lambda: flat + b'"temperature": ' + rng.choice([b"NaN", b"Infinity", b"-", b"01", b"1.", b".5", b"+1", b"0x1", b"1e"]) + b"}"),
        ("a key twice", lambda: flat + rng.choice([b'"max_tokens": 1}', b'"seed": 1, "seed": 1}', b'"max\\u005ftokens": 2}', b'"metadata": {"a": 1, "a": 2}}'])),
        ("bad UTF-8", lambda: b'{"prompt": "a' + rng.choice([b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]) + b'"}'),
        ("half a surrogate", lambda: b'{"prompt": "' + rng.choice([b"\\ud800", b"\\udc00", b"\\ud800x", b"\\ud800\\u0041", b"\\uZZZZ", b"\\x41"]) + b'"}'),
        ("a control character in a text", lambda: b'{"prompt": "a\nb"}'),
        ("UTF-16", lambda: '{"prompt": "a"}'.encode(rng.choice(["utf-16", "utf-16-le", "utf-32"]))),
        ("two million values", lambda: flat + b'"metadata": [' + b"0," * (2_000_001 if rng.random() < 0.1 else 9) + b"]}"),
    ]  # fmt: skip
    name, body = rng.choice(spells)
    return body_spell(ctx, name, body())


BOOLEANS = ("stream", "return_token_ids", "cycle_events", "cache_prompt", "ignore_eos")
WHOLES = ("max_tokens", "seed", "logprobs")
NUMBERS = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")


def wrong_value(rng: random.Random) -> tuple[str, object]:
    common = ["text", [], {}, [1], {"a": 1}]
    choices: list[tuple[str, object]] = [
        (rng.choice(BOOLEANS), rng.choice([*common, 0, 1, 1.5])),
        (rng.choice(WHOLES), rng.choice([*common, True, 1.5, -1, -(2**63), 1e30, 2**64, "1"])),
        (rng.choice(NUMBERS), rng.choice([*common, True, 1e39, -1e39, 1001, -1001, "0.5"])),
        ("top_k", rng.choice([*common, -2, 2**31, 1.0, True])),
        ("logprobs", rng.choice([21, 1000])),
        ("logit_bias", rng.choice([[], "x", {"a": 1}, {"1": "x"}, {"-1": 1}, {"4000000000": 1}, {"1": 1e9}, {"1": 1, "01": 1}, {"": 1}, {"1 ": 1}])),
        ("stop", rng.choice([5, "", [5], [""], ["x" * 1025], ["a"] * 65, {"a": "b"}, [["a"]], True])),
        ("stream_options", rng.choice([{"include_usage": True}, 1, [], {"include_usage": 1}])),
        ("prompt", rng.choice([1, True, {}, [], [-1], [1.5], [4_000_000_000], ["a", "b"], [["a"], ["b"]], [[]], [1, "a"], [None], [[1], [2]]])),
        ("model", rng.choice([1, [], {}, True])),
        (rng.choice(["n", "best_of"]), rng.choice([0, 2, -1, "1", 1.5])),
        (rng.choice(["echo", "use_beam_search", "include_stop_str_in_output"]), True),
        (rng.choice(["tools", "grammar", "json_schema", "stop_token_ids", "min_tokens", "suffix"]), "x"),
        (rng.choice(["", "prompt ", "Prompt", "max_token", "x" * 5000, "\u0000", "ключ"]), 1),
    ]  # fmt: skip
    return rng.choice(choices)


def field(ctx: Context, rng: random.Random) -> Spell:
    """Values of the wrong type or beyond their range, and fields that would change the answer."""
    name, value = wrong_value(rng)
    body = {**ctx.first.fields, "max_tokens": 1, name: value}
    return body_spell(ctx, f"{name[:40]!r}: {str(value)[:60]}", json.dumps(body).encode())


def too_much(ctx: Context, rng: random.Random) -> Spell:
    """Prompts beyond the context, as text and as ids; and texts for endpoints that take none so long."""
    prompt = rng.choice(["x" * 600_000, [1] * 100_000, "\U0001f98a" * 50_000, [1] * 200_000])
    body = json.dumps({"prompt": prompt, "max_tokens": 1, "stream": rng.random() < 0.5}).encode()
    return body_spell(ctx, "a prompt beyond the context", body)


def tokens(ctx: Context, rng: random.Random) -> Spell:
    path = rng.choice(["/tokenize", "/detokenize"])
    body = rng.choice([{}, {"prompt": 1}, {"tokens": "x"}, {"tokens": [-1]}, {"tokens": [4_000_000_000]}, {"tokens": [1.5]}, {"x": 1}, []])
    return body_spell(ctx, f"{path} {body}", json.dumps(body).encode(), path)


def chat_without_template(ctx: Context, rng: random.Random) -> Spell:
    """Wrong messages; right ones, too, are refused where the model has no template."""
    messages = rng.choice([[], {}, "x", [1], [{}], [{"role": "user"}], [{"content": "x"}], [{"role": "tool", "content": "x"}],
                           [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], [{"role": 1, "content": 1}],
                           [{"role": "user", "content": "x", "name": "y"}], [{"role": "user", "content": 5}], None])  # fmt: skip
    return body_spell(ctx, f"messages {messages}", json.dumps({"messages": messages}).encode(), "/v1/chat/completions")


SPELLS = {
    "wrong framing": framing, "wrong heads": head, "wrong host or origin": who, "garbage": garbage, "wrong paths": route,
    "wrong JSON": json_text, "wrong fields": field, "prompts too long": too_much, "wrong tokens": tokens,
    "wrong messages": chat_without_template,
}  # fmt: skip


def run(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    return cast(ctx, kind, SPELLS[kind](ctx, rng))


def run_too_long(ctx: Context, kind: str, rng: random.Random, _: int) -> str:
    return cast_too_long(ctx, kind, too_long_body(ctx, rng))

