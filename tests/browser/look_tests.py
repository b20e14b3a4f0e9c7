"""What the page owes everybody: roles and names, contrast, room at every width, as little motion as one likes."""

from __future__ import annotations

import accessibility
from context import Context
from harness import Skip, check, equal
from page import LAST, STAGE, ask, ask_and_lose, ask_endlessly, opened


def everything_has_a_role_and_a_name(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        opened(context, fake)
        ask(context, "What is a stet?")
        browser.run("document.querySelector('#settings').open = true")
        tree = browser.accessible()
        for role, name in (
            ("banner", ""), ("main", ""), ("complementary", "Figures"), ("region", "Conversation"), ("region", "Write"),
            ("textbox", "Message"), ("button", "Send"), ("button", "Clear the conversation"), ("textbox", "System message"),
            ("spinbutton", "Temperature"), ("spinbutton", "Max tokens"), ("spinbutton", "Seed"), ("spinbutton", "Top p"),
            ("spinbutton", "Top k"), ("spinbutton", "Min p"), ("status", ""), ("log", "Finished answers"), ("heading", "You"),
            ("heading", "Answer"), ("heading", "The server"), ("link", "Skip to the message field"),
        ):  # fmt: skip
            check((role, name) in [(r, n if name else "") for r, n in tree], f"no {role} {name!r}")
        equal(accessibility.unnamed(browser), [], "controls without a name")
        levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map((h) => +h.tagName[1])")
        check(levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:])), f"headings skip a level: {levels}")
        equal(browser.run("return document.documentElement.lang"), "en")


def in_every_state(context: Context, look: object) -> None:
    """look(state) for what the page can look like: light and dark; empty, with answers and faults, settings and key field open."""
    browser = context.browser
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        with context.fake() as fake:
            opened(context, fake)
            look(f"{scheme}, empty")
            ask(context, "hostile")
            ask_and_lose(context, fake)
            browser.run("document.querySelector('#settings').open = true; document.querySelector('#keyform').hidden = false")
            browser.run("document.querySelector('#dotted').click()")
            look(f"{scheme}, all open")
            browser.run("document.querySelector('#settings').open = false; document.querySelector('#prompt').focus()")
            ask_endlessly(context)
            look(f"{scheme}, writing")
            browser.keys("Escape")


def contrast_is_enough(context: Context) -> None:
    found = []
    in_every_state(context, lambda state: found.extend(f"{state}: {f}" for f in accessibility.contrast(context.browser)))
    equal(found, [], "contrast")


def axe_finds_nothing(context: Context) -> None:
    source = accessibility.axe_source()
    if not source:
        raise Skip("axe-core-python is not installed")
    found = []
    in_every_state(context, lambda state: found.extend(f"{state}: {f}" for f in accessibility.axe(context.browser, source)))
    equal(found, [], "axe")


def every_width_has_room(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        fake.status["identity"]["model"] = "a-model-with-a-name-that-is-one-long-word-" * 3
        opened(context, fake)
        ask(context, "hostile " + "w" * 300)
        ask_and_lose(context, fake)
        browser.run("document.querySelector('#settings').open = true; document.querySelector('#keyform').hidden = false")
        # 1280 x 900 at 100 %, 200 % and 400 %; phones, a tablet, a wide screen
        for width, height, scale in ((1280, 900, 1), (640, 450, 2), (320, 256, 4), (320, 640, 2), (360, 740, 3), (768, 1024, 1), (2560, 1300, 1)):
            browser.size(width, height, scale)
            equal(accessibility.overflow(browser), [], f"beyond the edge at {width}x{height}")
            context.shot(f"page-{width}x{height}")
        browser.size(320, 640)
        browser.run(accessibility.SPREAD)
        equal(accessibility.overflow(browser), [], "beyond the edge with spread text")


def motion_can_be_declined(context: Context) -> None:
    with context.fake() as fake:
        browser = context.browser
        for value, want in (("no-preference", "wait"), ("reduce", "none")):
            browser.media(prefers_reduced_motion=value)
            opened(context, fake)
            ask_endlessly(context)
            equal(browser.run(f"return getComputedStyle(document.querySelector('{LAST} .text'), '::after').animationName"), want)
            browser.keys("Escape")
            browser.wait("the end", STAGE + ".startsWith('Stopped')")


TESTS = [everything_has_a_role_and_a_name, contrast_is_enough, axe_finds_nothing, every_width_has_room, motion_can_be_declined]
