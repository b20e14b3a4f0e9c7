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

STAGE = "return document.querySelector('#stage').innerText"
LAST = ".answer:last-of-type"
# Writes up to 8,192 tokens at the pace of a small model, and needs no file.
TALKATIVE = ("-m", "synth:smollm-135m:q4_0", "--pack", "none")
QUESTION = "Write three short sentences about the sea."


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
        check(self.listening.wait(60) and self.url, f"the server does not listen: {self.log}")

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
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.loads(reply.read())

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(timeout=20)


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
    context.browser.wait("the model", "return document.querySelector('#link').innerText === 'Connected'")
    context.browser.run("document.querySelector('#prompt').focus()")


def the_server_serves_the_page(context: Context) -> None:
    with serving(context, "-m", "synth:tiny:q4_0", "--pack", "none", "--draft", "ngram") as server:
        with urllib.request.urlopen(server.url, timeout=20) as reply:
            page, policy = reply.read(), reply.headers["Content-Security-Policy"]
        equal(page, fake_server.PAGE.read_bytes(), "the page")
        equal(policy, fake_server.policy(page), "its policy, computed here once more")
        opened(context, server)
        browser = context.browser
        time.sleep(2.5)  # one more look at /status
        equal(browser.complaints(), [], "console")
        for url in browser.requested():
            check(url.startswith((server.url, "data:")), f"asked {url}")
        identity = server.get("status")["identity"]
        equal(browser.text("#model"), identity["model"])
        equal(browser.texts("#tags li"), ["synthetic: random weights, the text means nothing", "history-accelerated"])
        browser.keys("hello", "Enter")
        browser.wait("the end", STAGE + ".startsWith('Finished')")
        # A question that does not fit: what the server says of it is what the page says.
        browser.run("document.querySelector('#prompt').value = 'word '.repeat(2000)")
        browser.keys("Enter")
        browser.wait("the refusal", STAGE + ".startsWith('No answer')")
        check(re.search(r"The server refused \(HTTP 400\)\. .*\d+ tokens", browser.text(f"{LAST} .bad")), browser.text(f"{LAST} .bad"))


def a_conversation_with_the_model(context: Context) -> None:
    with serving(context, "-m", model_of(context), "--draft", "ngram") as server:
        opened(context, server)
        browser = context.browser
        browser.run("document.querySelector('#max_tokens').value = 120")
        browser.keys(QUESTION, "Enter")
        browser.wait("the end", STAGE + ".startsWith('Finished')", seconds=180)
        body = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 120}
        direct = server.get("v1/chat/completions", {**body, "return_token_ids": True})
        equal(browser.run(f"return document.querySelector('{LAST} .text').textContent"), direct["choices"][0]["message"]["content"],
              "text of the page and of the API")  # fmt: skip
        figures = dict(zip(browser.texts("#figures dt"), browser.texts("#figures dd"), strict=True))
        tokens = direct["usage"]["completion_tokens"]
        equal(figures["Answer"], f"{tokens} tokens")
        equal(figures["Prompt"], f"{direct['usage']['prompt_tokens']} tokens")
        equal(figures["of them cached"], "0")
        equal(figures["Digest"], direct["stet"]["digest"][:16])
        check(float(browser.text("#rate")) > 0, browser.text("#rate"))
        context.shot("serve-answer")
        browser.keys("And one about the shore.", "Enter")
        browser.wait("the end", STAGE + ".startsWith('Finished') && document.querySelectorAll('.note').length === 2", seconds=180)
        figures = dict(zip(browser.texts("#figures dt"), browser.texts("#figures dd"), strict=True))
        check(int(figures["of them cached"].replace(",", "")) > 0, f"the second turn reuses the first: {figures}")
        equal(browser.complaints(), [], "console")


def stopping_frees_the_model(context: Context) -> None:
    with serving(context, *TALKATIVE) as server:
        opened(context, server)
        browser = context.browser
        browser.keys("Go on and on.", "Enter")
        browser.wait("text", f"return document.querySelector('{LAST} .text').textContent.length > 5", seconds=180)
        browser.keys("Escape")
        browser.wait("the end", STAGE + ".startsWith('Stopped')")
        end = time.monotonic() + 30
        while server.get("status")["active"] is not None:
            check(time.monotonic() < end, "the server goes on")
            time.sleep(0.1)
        equal(server.get("status")["totals"]["cancelled"], 1)


def a_server_that_dies_is_a_cut(context: Context) -> None:
    with serving(context, *TALKATIVE) as server:
        opened(context, server)
        browser = context.browser
        browser.keys("Go on and on.", "Enter")
        browser.wait("text", f"return document.querySelector('{LAST} .text').textContent.length > 5", seconds=180)
        server.process.kill()
        browser.wait("the end", STAGE + ".startsWith('Incomplete')")
        equal(browser.text(f"{LAST} .bad"), "Cut: the answer is incomplete, because after this the connection was lost.")
        browser.wait("the loss", "return document.querySelector('#link').innerText === 'Connection lost'")


def an_error_after_the_first_byte_is_told(context: Context) -> None:
    with serving(context, *TALKATIVE, "--deadline", "2") as server:
        opened(context, server)
        browser = context.browser
        browser.keys("Go on and on.", "Enter")
        browser.wait("the end", STAGE + ".startsWith('Incomplete')", seconds=180)
        said = browser.text(f"{LAST} .bad")
        check(said.startswith("The server reports an error, and the answer is incomplete: ") and "deadline" in said, said)


def a_server_with_a_key_serves_the_page_without(context: Context) -> None:
    keys = context.folder / "keys"
    keys.write_text("sesame-open-7291-cobalt-forest\n")
    keys.chmod(0o600)
    with serving(context, "-m", "synth:tiny:q4_0", "--pack", "none", "--api-key-file", keys) as server:
        browser = context.browser
        browser.open(server.url)
        browser.wait("the field", "return document.querySelector('#key').checkVisibility()")
        equal(browser.focused(), "key")
        browser.keys("sesame-open-7291-cobalt-forest", "Enter")
        browser.wait("the model", "return document.querySelector('#link').innerText === 'Connected'")
        check(not any("sesame" in line for line in server.log), "the key is in the log")


TESTS = [
    the_server_serves_the_page, a_conversation_with_the_model, stopping_frees_the_model, a_server_that_dies_is_a_cut,
    an_error_after_the_first_byte_is_told,    a_server_with_a_key_serves_the_page_without,
]  # fmt: skip
