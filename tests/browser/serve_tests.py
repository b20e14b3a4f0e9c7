"""The page as `stet serve` serves it, with a model behind it."""

from __future__ import annotations

import collections.abc
import contextlib
import json
import re
import threading
import time
import urllib.request

import fake_server
from context import Context
from harness import Skip, check, equal
from page import LAST, LAST_TEXT, STAGE, pairs

# Writes up to 8,192 tokens at the pace of a small model, and needs no file.
TALKATIVE = ("-m", "synth:smollm-135m:q4_0", "--pack", "none")
QUESTION = "Write three short sentences about the sea."
# What a busy machine may need to load a model, or to write some hundred words.
PATIENCE_S = 300
ASK = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever proxy the environment names


class Server:
    def __init__(self, context: Context, *flags: object):
        if not context.stet.program.exists():
            raise Skip(f"{context.stet.program} is not there")
        self.process = context.stet.start("serve", "--port", "0", *flags)
        self.log: list[str] = []
        self.url = ""
        self.listening = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        check(self.listening.wait(PATIENCE_S) and self.url, f"the server does not listen: {self.log}")

    def _read(self) -> None:
        for raw in self.process.stderr:
            line = raw.decode("utf-8", "replace")
            self.log.append(line)
            match = re.search(r"listening on (http://\S+)", line)
            if match:
                self.url = match[1].rstrip("/") + "/"
                self.listening.set()
        self.listening.set()

    def get(self, path: str, body: dict | None = None) -> dict:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with ASK.open(request, timeout=PATIENCE_S) as reply:
            return json.loads(reply.read())

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)


@contextlib.contextmanager
def serving(context: Context, *flags: object) -> collections.abc.Iterator[Server]:
    server = Server(context, *flags)
    try:
        yield server
    finally:
        context.browser.open("about:blank")
        server.stop()


def model_of(context: Context) -> str:
    if not context.model:
        raise Skip("no --model was given")
    return context.model


def opened(context: Context, server: Server) -> None:
    context.browser.open(server.url)
    context.browser.wait("the model", "return document.querySelector('#link').innerText === 'Connected'", seconds=PATIENCE_S)
    context.browser.run("document.querySelector('#prompt').focus()")


def goes_on_and_on(context: Context, server: Server) -> None:
    """An answer that is being written, and will be for a while."""
    opened(context, server)
    context.browser.keys("Go on and on.", "Enter")
    context.browser.wait("text", LAST_TEXT + ".length > 5", seconds=PATIENCE_S)


def ended(context: Context, stage: str, answers: int = 1) -> None:
    """Waits until this many answers are there and the stage begins with this word."""
    condition = STAGE + ".startsWith(arguments[0]) && document.querySelectorAll('.answer').length === arguments[1]"
    context.browser.wait(f"{stage}, {answers} answers", condition, stage, answers, seconds=PATIENCE_S)


def the_server_serves_the_page(context: Context) -> None:
    with serving(context, "-m", "synth:tiny:q4_0", "--pack", "none", "--draft", "ngram") as server:
        with ASK.open(server.url, timeout=PATIENCE_S) as reply:
            page, policy = reply.read(), reply.headers["Content-Security-Policy"]
        equal(page, fake_server.PAGE.read_bytes(), "the page")
        equal(policy, fake_server.policy(page), "its policy, computed here once more")
        opened(context, server)
        browser = context.browser
        end = time.monotonic() + PATIENCE_S
        while browser.requested().count(server.url + "status") < 2:
            check(time.monotonic() < end, "the page does not look at the server again")
            time.sleep(0.2)
        equal(browser.complaints(), [], "console")
        for url in browser.requested():
            check(url.startswith((server.url, "data:")), f"asked {url}")
        identity = server.get("status")["identity"]
        equal(browser.text("#model"), identity["model"])
        equal(browser.texts("#tags li"), ["synthetic: random weights, the text means nothing", "history-accelerated"])
        browser.keys("hello", "Enter")
        ended(context, "Finished")
        # A question that does not fit: what the server says of it is what the page says.
        browser.run("document.querySelector('#prompt').value = 'word '.repeat(2000)")
        browser.keys("Enter")
        ended(context, "No answer", 2)
        check(re.search(r"The server refused \(HTTP 400\)\. .*\d+ tokens", browser.text(f"{LAST} .bad")), browser.text(f"{LAST} .bad"))


def a_conversation_with_the_model(context: Context) -> None:
    with serving(context, "-m", model_of(context), "--draft", "ngram") as server:
        opened(context, server)
        browser = context.browser
        browser.run("document.querySelector('#max_tokens').value = 120")
        browser.keys(QUESTION, "Enter")
        ended(context, "Finished")
        body = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 120}
        direct = server.get("v1/chat/completions", {**body, "return_token_ids": True})
        equal(browser.run(LAST_TEXT), direct["choices"][0]["message"]["content"], "text of the page and of the API")
        figures = pairs(context, "#figures")
        tokens = direct["usage"]["completion_tokens"]
        equal(figures["Answer"], f"{tokens} tokens")
        equal(figures["Prompt"], f"{direct['usage']['prompt_tokens']} tokens")
        equal(figures["of them cached"], "0")
        equal(figures["Digest"], direct["stet"]["digest"][:16])
        check(float(browser.text("#rate")) > 0, browser.text("#rate"))
        context.shot("serve-answer")
        browser.keys("And one about the shore.", "Enter")
        ended(context, "Finished", 2)
        figures = pairs(context, "#figures")
        check(int(figures["of them cached"].replace(",", "")) > 0, f"the second turn reuses the first: {figures}")
        equal(browser.complaints(), [], "console")


def stopping_frees_the_model(context: Context) -> None:
    with serving(context, *TALKATIVE) as server:
        goes_on_and_on(context, server)
        context.browser.keys("Escape")
        ended(context, "Stopped")
        end = time.monotonic() + PATIENCE_S
        while server.get("status")["active"] is not None:
            check(time.monotonic() < end, "the server goes on")
            time.sleep(0.1)
        equal(server.get("status")["totals"]["cancelled"], 1)


def a_server_that_dies_is_a_cut(context: Context) -> None:
    with serving(context, *TALKATIVE) as server:
        goes_on_and_on(context, server)
        server.process.kill()
        ended(context, "Incomplete")
        browser = context.browser
        equal(browser.text(f"{LAST} .bad"), "Cut: the answer is incomplete, because after this the connection was lost.")
        browser.wait("the loss", "return document.querySelector('#link').innerText === 'Connection lost'")


def an_error_after_the_first_byte_is_told(context: Context) -> None:
    with serving(context, *TALKATIVE, "--deadline", "5") as server:
        goes_on_and_on(context, server)
        ended(context, "Incomplete")
        said = context.browser.text(f"{LAST} .bad")
        check(said.startswith("The server reports an error, and the answer is incomplete: ") and "deadline" in said, said)


def a_server_with_a_key_serves_the_page_without(context: Context) -> None:
    keys = context.folder / "keys"
    keys.write_text("sesame-open-7291-cobalt-forest\n")
    keys.chmod(0o600)
    with serving(context, "-m", "synth:tiny:q4_0", "--pack", "none", "--api-key-file", keys) as server:
        browser = context.browser
        browser.open(server.url)
        browser.wait("the field", "return document.querySelector('#key').checkVisibility()", seconds=PATIENCE_S)
        equal(browser.focused(), "key")
        browser.keys("sesame-open-7291-cobalt-forest", "Enter")
        browser.wait("the model", "return document.querySelector('#link').innerText === 'Connected'", seconds=PATIENCE_S)
        check(not any("sesame" in line for line in server.log), "the key is in the log")


TESTS = [
    the_server_serves_the_page, a_conversation_with_the_model, stopping_frees_the_model, a_server_that_dies_is_a_cut,
    an_error_after_the_first_byte_is_told, a_server_with_a_key_serves_the_page_without,
]  # fmt: skip
