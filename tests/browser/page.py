"""What the tests of the page do with it: open it, ask, read what it shows."""

from __future__ import annotations

from context import Context
from fake_server import Fake

STAGE = "return document.querySelector('#stage').innerText"
LAST = ".answer:last-of-type"
LAST_TEXT = f"return document.querySelector('{LAST} .text').textContent"


def opened(context: Context, fake: Fake) -> None:
    context.browser.open(fake.url)
    context.browser.wait("the model's name", "return document.querySelector('#model').innerText")
    context.browser.run("document.querySelector('#prompt').focus()")


def ask(context: Context, question: str, end: str = "Finished") -> None:
    """Sends a question and waits until the stage begins with these words."""
    context.browser.keys(question, "Enter")
    context.browser.wait(end, STAGE + ".startsWith(arguments[0])", end)


def ask_and_lose(context: Context, fake: Fake) -> None:
    """A question whose answer breaks off once the page shows the words before. (A browser drops what it has not handed to its page.)"""
    context.browser.keys("die", "Enter")
    context.browser.wait("the words before the cut", LAST_TEXT + " === 'It was cut '")
    fake.go_on()
    context.browser.wait("the cut", STAGE + ".startsWith('Incomplete')")


def ask_endlessly(context: Context) -> None:
    """A question whose answer goes on until it is stopped, of which there is something to see already."""
    context.browser.keys("endless", "Enter")
    context.browser.wait("text", LAST_TEXT + ".length > 20")


def notes(context: Context) -> str:
    return context.browser.text(f"{LAST}") + "".join(context.browser.texts(f"{LAST} .note"))


def pairs(context: Context, name: str) -> dict[str, str]:
    """The terms and values of a list of figures."""
    return dict(zip(context.browser.texts(f"{name} dt"), context.browser.texts(f"{name} dd"), strict=True))
