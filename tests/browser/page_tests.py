"""The page against a server that says what a test wants."""

from __future__ import annotations

import re
import time

import accessibility
from context import Context
from fake_server import HOSTILE, IDENTITY, PROSE, Fake
from harness import check, equal
from page import LAST, LAST_TEXT, STAGE, ask, ask_and_lose, ask_endlessly, notes, opened, pairs

ACCEPTED = [0, 2, 1, 0, 3, 1, 4, 0]  # the draft of Fake.stream_text


def loads_without_a_word(context: Context) -> None:
    """No error, no warning, no breach of the policy, and nobody else is asked."""
    with context.fake() as fake:
        opened(context, fake)
        ask(context, "What is a stet?")
        equal(context.browser.complaints(), [], "console")
        for url in context.browser.requested():
            check(url.startswith((fake.url, "data:")), f"asked {url}")
        equal(context.browser.run("return document.title"), f"{IDENTITY['model']} · stet")


def is_used_with_keys_alone(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        browser.open(fake.url)
        browser.wait("the model's name", "return document.querySelector('#model').innerText")
        browser.keys("Tab")
        check("skip" in browser.run("return document.activeElement.className"), "the skip link comes first")
        check(browser.run("return document.activeElement.getBoundingClientRect().left >= 0"), "the skip link is seen while it has the focus")
        browser.keys("Enter")
        equal(browser.focused(), "prompt")
        browser.keys("first line", "Shift+Enter", "second line")
        equal(fake.chats(), [], "Shift+Enter does not send")
        ask(context, "")
        equal(fake.chats()[0]["messages"], [{"role": "user", "content": "first line\nsecond line"}])
        equal(browser.focused(), "prompt", "the focus stays where one writes")
        ask(context, "and then?")
        equal([m["role"] for m in fake.chats()[1]["messages"]], ["user", "assistant", "user"])
        equal(fake.chats()[1]["messages"][1]["content"], PROSE, "the answer is part of the next question")


def asks_for_what_it_shows(context: Context) -> None:
    with context.fake() as fake:
        opened(context, fake)
        ask(context, "x")
        body = fake.chats()[0]
        for name in ("stream", "cycle_events", "return_token_ids"):
            equal(body[name], True, name)
        equal(body["stream_options"], {"include_usage": True})
        equal(body["model"], IDENTITY["model"])
        equal(body["temperature"], 0)
        for name in ("max_tokens", "seed", "top_p", "top_k", "min_p"):
            check(name not in body, f"{name} was left empty, and is not sent")


def tab_goes_in_order(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        browser.run("document.querySelector('#settings').open = true; document.activeElement.blur(); scrollTo(0, 0)")
        for width, height in ((1280, 900), (640, 450)):
            browser.size(width, height)
            browser.run("document.activeElement.blur(); document.querySelector('.skip').focus()")
            order = []
            for _ in range(14):
                browser.keys("Tab")
                focus = browser.run(accessibility.FOCUS)
                if focus["id"] == "body.":
                    break
                order.append(focus["id"])
                check(focus["outline"] >= 2, f"{focus['id']}: the focus is not seen: {focus}")
                check(focus["inside"] and not focus["covered"], f"{focus['id']} is hidden at {width}x{height}: {focus}")
            want = ["prompt", "send", "clear", "summary.", "system", "temperature", "max_tokens", "seed", "top_p", "top_k", "min_p"]
            equal(order[: len(want)], want, f"order at {width}x{height}")


def text_streams(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        ask_endlessly(context)
        for _ in range(3):
            browser.wait("more text", LAST_TEXT + ".length > arguments[0]", len(browser.run(LAST_TEXT)))
        equal(browser.run(f"return document.querySelector('{LAST}').getAttribute('aria-busy')"), "true")
        browser.wait("a live rate", "return / tokens, 100\\.0 a second$/.test(document.querySelector('#live').innerText)")
        equal(browser.text("#rate"), "100.0", "ten milliseconds a token, by the clock of the server")
        browser.keys("Escape")
        browser.wait("the end", STAGE + ".startsWith('Stopped')")
        fake.wait_until_left()


def figures_are_right(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        ask(context, "What is a stet?")
        words = len(PROSE.split())
        sizes = []
        while sum(sizes) < words:
            sizes.append(min(ACCEPTED[len(sizes) % len(ACCEPTED)] + 1, words - sum(sizes)))
        figures = pairs(context, "#figures")
        equal(figures["Answer"], f"{words} tokens")
        equal(figures["Tokens a cycle"], f"{words / len(sizes):.2f}")
        equal(figures["Prompt"], "23 tokens")
        equal(figures["of them cached"], "7")
        equal(figures["Digest"], "0123456789abcdef")
        check("seed 4503599627370497" in notes(context), notes(context))
        check(re.fullmatch(r"[\d.]+ m?s", figures["First token"]), figures)
        rows = [re.split(r"\s+", row.strip(), maxsplit=1) for row in browser.texts("#accepted li")]
        stood = [sum(1 for s in sizes if s - 1 > p) / len(sizes) for p in range(4)]
        # JavaScript rounds halves up
        equal(rows, [[str(p + 1), f"{int(100 * share + 0.5)} % of {len(sizes)}"] for p, share in enumerate(stood)])
        bars = browser.run("return [...document.querySelectorAll('.bar span')].map((b) => b.style.width)")
        equal(bars, [f"{int(100 * share + 0.5)}%" for share in stood])
        check(f"{words} tokens · " in notes(context) and "ended by itself" in notes(context), notes(context))
        # The rate: tokens after the first chunk over the time since, by the stamps that the server sends.
        seconds = sum(0.02 if i % 4 == 0 else 0.01 for i in range(len(sizes) - 1))
        equal(browser.text("#rate"), f"{(words - sizes[0]) / seconds:.1f}")


def the_first_chunk_does_not_count(context: Context) -> None:
    """Nor does it matter how much of an answer the browser hands over at once."""
    with context.fake() as fake:
        opened(context, fake)
        ask(context, "heavy")
        equal(context.browser.text("#rate"), "10.0")


def status_is_shown(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        fake.status["queue"] = {"waiting": 3, "limit": 16}
        fake.status["active"] = {"stage": "decode", "output_tokens": 41}
        fake.status["last"] = {"decode_tokens_per_second": 51.25, "tokens_per_cycle": 2.5, "acceptance_by_position": [0.75, 0.5], "output_tokens": 88}
        opened(context, fake)
        equal(pairs(context, "#server"), {"Now": "writing, 41 tokens", "Queue": "3 of 16", "Cache": "1,204 of 8,192 tokens", "Up": "2.2 h"})
        identity = pairs(context, "#identity")
        equal((identity["Draft"], identity["Profile"], identity["Machine"]), ("ngram, depth 4", "portable", "avx512, 2 threads"))
        equal((browser.text("#rate"), browser.text("#h-answer")), ("51.3", "Last request"))
        equal(browser.texts("#tags li"), ["history-accelerated"])
        fake.status["identity"]["synthetic"] = True
        fake.status["queue"] = {"waiting": 0, "limit": 16}
        browser.wait("the next look", "return document.querySelectorAll('#tags li').length === 2")
        check("synthetic" in browser.text("#tags"), browser.text("#tags"))
        fake.status = {"state": "loading", "load": {"done": 43, "total": 100}}
        browser.wait("loading", "return document.querySelector('#link').innerText === 'Loading the model: 43 %'")
        fake.status = {"state": "failed", "load": {"done": 43, "total": 100, "error": "no such file"}}
        browser.wait("failed", "return document.querySelector('#link').innerText === 'The model did not load: no such file'")


def looks_only_while_it_is_seen(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        browser.run("Object.defineProperty(document, 'visibilityState', { get: () => 'hidden', configurable: true })")
        browser.wait("the end of a look under way", "return !asking")
        before = len(fake.seen)
        time.sleep(4.5)  # two looks of a page that is seen
        equal(len(fake.seen), before, "requests of a page that nobody sees")
        shown = "delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange')); return asking"
        check(browser.run(shown), "it looks at once when it is seen again")
        browser.wait("the end of this look", "return !asking")
        check(len(fake.seen) > before, "the server was asked")


def stop_stops(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        ask_endlessly(context)
        check(browser.shown("#stop") and not browser.shown("#send"), "the button stops while an answer is written")
        browser.click("#stop")
        browser.wait("the end", STAGE + ".startsWith('Stopped')")
        fake.wait_until_left()
        check("Stopped · " in notes(context), notes(context))
        check(browser.shown("#send") and not browser.shown("#stop"), "one can send again")
        equal(browser.focused(), "prompt")
        stood = browser.run(LAST_TEXT)
        ask(context, "go on")
        equal(fake.chats()[1]["messages"][1], {"role": "assistant", "content": stood}, "what stood is part of the conversation")


def a_cut_stream_is_shown_as_cut(context: Context) -> None:
    """Every way in which an answer can end without its end mark."""
    cases = {
        "die": ("It was cut", "Cut: the answer is incomplete, because after this the connection was lost."),
        "quiet end": ("Half a sen", "Cut: the answer is incomplete, because after this it ended without its end mark."),
        "broken event": ("Before the broken event", "Cut: the answer is incomplete, because after this an event of it cannot be read."),
        "error event": ("Before the error", "The server reports an error, and the answer is incomplete: the logits of step 4 hold NaN."),
    }
    with context.fake() as fake:
        opened(context, fake)
        for question, (text, words) in cases.items():
            if question == "die":
                ask_and_lose(context, fake)
            else:
                ask(context, question, "Incomplete")
            equal(context.browser.text(f"{LAST} .text").strip(), text)
            equal(context.browser.text(f"{LAST} .bad"), words)
            check(words in context.browser.run("return document.querySelector('#stage').textContent"), "and is said")
            check("ended by itself" not in notes(context), notes(context))
            if question.endswith("event"):
                fake.wait_until_left()  # nobody works on for a page that does not listen


def refusals_are_words(context: Context) -> None:
    cases = {
        "full": "The queue of the server is full; send again in a while. 16 requests wait already",
        "too long": "The server refused (HTTP 400). prompt is too long: 9000 tokens > 8192 maximum",
    }
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        for question, words in cases.items():
            ask(context, question, "No answer")
            equal(browser.text(f"{LAST} .bad"), words)
            equal(browser.run("const p = document.querySelector('#prompt'), v = p.value; p.value = ''; return v"), question,
                  "the question can be sent again")  # fmt: skip
        ask(context, "well?")
        equal(fake.chats()[-1]["messages"], [{"role": "user", "content": "well?"}], "what had no answer is no part of it")


def a_lost_server_is_noticed(context: Context) -> None:
    fake = Fake()
    port = fake.server_address[1]
    try:
        opened(context, fake)
    finally:
        fake.stop()
    browser = context.browser
    browser.wait("the loss", "return document.querySelector('#link').innerText === 'Connection lost'")
    ask(context, "anybody?", "No answer")
    equal(browser.text(f"{LAST} .bad"), "The server cannot be reached. Is it running?")
    again = Fake(port)
    try:
        browser.wait("the return", "return document.querySelector('#link').innerText === 'Connected'")
        ask(context, "")
        equal(again.chats()[0]["messages"], [{"role": "user", "content": "anybody?"}])
    finally:
        again.stop()


def a_key_is_asked_for(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        fake.key = "sesame"
        browser.open(fake.url)
        browser.wait("the field", "return document.querySelector('#key').checkVisibility()")
        equal(browser.focused(), "key")
        equal(browser.run("return document.querySelector('#key').type"), "password")
        browser.keys("wrong", "Enter")
        browser.wait("the refusal", "return document.querySelector('#link').innerText === 'The key is not right'")
        browser.wait("the field", "return document.querySelector('#key').checkVisibility()")
        browser.keys("sesame", "Enter")
        browser.wait("the model's name", "return document.querySelector('#model').innerText")
        check(not browser.shown("#keyform"), "the field goes away")
        ask(context, "open")
        everything = browser.run(
            "return document.documentElement.outerHTML + JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]) "
            "+ [...document.querySelectorAll('input')].map((i) => i.value).join()"
        )
        check("sesame" not in everything, "the key is nowhere in the page")
        fake.key = "another"
        ask(context, "still open", "No answer")
        check("The server asks for a key." in browser.text(f"{LAST} .bad"), browser.text(LAST))
        check(browser.shown("#keyform"), "the field is back")


def a_key_is_judged_by_its_own_answer(context: Context) -> None:
    """An answer to a question that was asked before the key came says nothing of the key."""
    with context.fake() as fake:
        browser = context.browser
        fake.key = "sesame"
        browser.open(fake.url)
        browser.wait("the field", "return document.querySelector('#key').checkVisibility()")
        fake.hold()
        browser.run("""
            window.said = [];
            new MutationObserver(() => said.push(document.querySelector('#link').textContent)).observe(document.querySelector('#link'), { childList: true });
            document.querySelector('#key').focus();
        """)
        browser.keys("sesame", "Enter")
        fake.go_on()
        browser.wait("the model's name", "return document.querySelector('#model').innerText")
        equal(browser.run("return said"), ["Connected"])
        check(not browser.shown("#keyform"), "the field stays away")


def spelled_out(text: str) -> str:
    """What the page makes of a text; written apart from it, after src/base/visible_text.h and the page's own additions."""
    hidden = {*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x206A), 0xFEFF,
              *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080)} - {9, 10}  # fmt: skip

    def one(c: str) -> str:
        code = ord(c)
        if code not in hidden:
            return c
        return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"

    return "".join(map(one, text))


def hostile_text_stays_text(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        fake.status["identity"]["model"] = "<img src=x onerror=alert(1)>\x1b]0;x\x07\u202egnp.exe"
        opened(context, fake)
        ask(context, "hostile <script>alert(2)</script>")
        equal(browser.run(LAST_TEXT), spelled_out(HOSTILE))
        equal(browser.run("return document.querySelector('.question .text').textContent"), "hostile <script>alert(2)</script>")
        equal(browser.run("return document.querySelector('#model').textContent"), spelled_out(fake.status["identity"]["model"]))
        made = browser.run("return [...new Set([...document.querySelectorAll('#turns *')].map((e) => e.tagName.toLowerCase()))].sort()")
        equal(made, ["div", "h2", "li", "p", "span"], "elements of the conversation")
        check("owned" not in browser.run("return document.title"), "a script ran")
        equal(browser.run("return document.scripts.length + document.images.length + document.links.length"), 2, "own script and skip link")
        equal(browser.complaints(), [], "console")
        for url in browser.requested():
            check(url.startswith((fake.url, "data:")), f"asked {url}")
        ask(context, "again")
        equal(fake.chats()[1]["messages"][1]["content"], HOSTILE, "the server gets it as it was")


def queue_and_prompt_are_told(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        browser.keys("queued", "Enter")
        for stage in ("Queued: 2 requests before this one", "Queued: 1 request before this one"):
            browser.wait(stage, STAGE + " === arguments[0]", stage)
            fake.go_on()
        for done, words in ((512, "512 of 2,048 tokens"), (1024, "1,024 of 2,048 tokens")):
            browser.wait(words, "return document.querySelector('#live').innerText === arguments[0]", words)
            equal(browser.text("#stage"), "Reading the prompt")
            equal(browser.run("const p = document.querySelector('#reading'); return [p.value, p.max, p.checkVisibility()]"), [done, 2048, True])
            check(("progressbar", "Prompt tokens read") in browser.accessible(), "the progress has a name")
            fake.go_on()
        browser.wait("the end", STAGE + ".startsWith('Finished')")
        check(not browser.shown("#reading"), "the progress goes away")


def settings_are_sent(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        browser.keys("Tab", "Tab", "Tab", "Enter", "Tab", "Be brief.", "Tab")  # past Send and Clear to Settings
        equal(browser.focused(), "temperature")
        browser.run("document.activeElement.select()")
        for value in ("0.7", "64", "12345", "0.9", "40", "0.05"):
            browser.keys(value, "Tab")
        browser.run("document.querySelector('#prompt').focus()")
        ask(context, "x")
        body = fake.chats()[0]
        equal(body["messages"][0], {"role": "system", "content": "Be brief."})
        got = {k: body[k] for k in ("temperature", "max_tokens", "seed", "top_p", "top_k", "min_p")}
        equal(got, {"temperature": 0.7, "max_tokens": 64, "seed": 12345, "top_p": 0.9, "top_k": 40, "min_p": 0.05})
        browser.run("const t = document.querySelector('#temperature'); t.value = '5'; document.querySelector('#settings').open = false")
        browser.run("document.querySelector('#prompt').focus()")
        browser.keys("y", "Enter")
        browser.wait("the focus on the field that is wrong", "return document.activeElement.id === 'temperature'")
        equal(len(fake.chats()), 1, "a value out of range is not sent")


def clear_forgets(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        ask(context, "one")
        ask_endlessly(context)
        browser.click("#clear")
        fake.wait_until_left()
        equal(browser.run("return document.querySelectorAll('.turn').length"), 0)
        check(browser.shown("#entry") and browser.shown("#send"), "it is as at the beginning")
        ask(context, "two")
        equal(fake.chats()[-1]["messages"], [{"role": "user", "content": "two"}])
        equal(len(browser.texts(".turn")), 2)


def a_thousand_chunks_arrive(context: Context) -> None:
    with context.fake() as fake:
        opened(context, fake)
        ask(context, "many")
        equal(context.browser.run(LAST_TEXT), "".join(f"{i} " for i in range(1000)))
        check("1,000 tokens" in notes(context) and "max tokens reached" in notes(context), notes(context))


def a_screen_reader_hears_answers_once(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        browser.run("""
            window.heard = { said: 0, stage: [] };
            new MutationObserver((m) => m.forEach((r) => heard.said += r.addedNodes.length)).observe(document.querySelector('#said'), { childList: true, subtree: true });
            new MutationObserver(() => heard.stage.push(document.querySelector('#stage').textContent)).observe(document.querySelector('#stage'), { childList: true });
        """)
        ask(context, "What is a stet?")
        heard = browser.run("return heard")
        equal(heard["said"], 1, "one announcement an answer")
        equal(browser.run("return document.querySelector('#said').textContent"), "Answer: " + PROSE)
        equal([s.split(":")[0] for s in heard["stage"]], ["Waiting for the server", "Writing", "Finished"])
        equal(browser.run("return document.querySelector('#said').getAttribute('aria-live')"), "polite")
        check(not browser.run("return document.querySelector('#turns').closest('[aria-live], [role=log], [role=status]')"),
              "the text that streams is no live region")  # fmt: skip


TESTS = [
    loads_without_a_word, is_used_with_keys_alone, asks_for_what_it_shows, tab_goes_in_order, text_streams, figures_are_right, the_first_chunk_does_not_count,
    status_is_shown, looks_only_while_it_is_seen, stop_stops, a_cut_stream_is_shown_as_cut, refusals_are_words, a_lost_server_is_noticed, a_key_is_asked_for,
    a_key_is_judged_by_its_own_answer, hostile_text_stays_text, queue_and_prompt_are_told, settings_are_sent, clear_forgets, a_thousand_chunks_arrive,
    a_screen_reader_hears_answers_once,
]  # fmt: skip
