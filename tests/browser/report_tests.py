"""The page that `stet report` writes."""

from __future__ import annotations

import json
import pathlib

import accessibility
from context import Context
from harness import Skip, check, equal

CLASSES = ("operations", "code", "prose", "analysis", "documentation")
# What a program measures that is one of two: the second is a fifth better. It differs a little from start to start.
MEASURE = """
import json, sys, time
x = (1.2 if sys.argv[1] == "B" else 1.0) * (1 + 0.003 * (time.time_ns() % 7) / 7)
print(json.dumps({"decode_tokens_per_second": 50 * x, "first_token_ms": 80 / x}))
"""


def patient(context: Context, *args: object) -> None:
    """Runs the program, however busy the machine is. Its exit code says whether the run proves something, which is of no matter here."""
    context.stet.start(*args).communicate(timeout=900)


def bench_packet(context: Context, packet: pathlib.Path) -> None:
    steps = [{"id": f"question-{i:02}", "class": CLASSES[i % 5], "messages": [{"role": "user", "content": f"Tell me of thing {i}."}]} for i in range(10)]
    suite = context.folder / "suite.json"
    suite.write_text(json.dumps({"suite_id": "browser", "version": 1, "description": "a test", "cold": True, "repeats_allowed": False,
                                 "ordered": False, "nonce": True, "max_tokens": 48, "steps": steps}))  # fmt: skip
    # Sampled, because a synthetic model repeats itself when it is greedy.
    patient(context, "bench", "-m", "synth:tiny:q4_0", "--suite", suite, "--draft", "ngram", "--teacher", "self", "--starts", "2", "--temperature", "1.5",
                 "--nonce-seed", "7", "--threads", "1", "--pack", "none", "--quiet", "--out", packet, "--ledger", context.folder / "ledger.sqlite")  # fmt: skip


def compare_packet(context: Context, packet: pathlib.Path) -> None:
    script = context.folder / "measure.py"
    script.write_text(MEASURE)
    patient(context, "compare", f"measure:python3 {script} A", f"measure:python3 {script} B", "--rounds", "4", "--quiet", "--out", packet,
                 "--ledger", context.folder / "ledger.sqlite")  # fmt: skip


PACKETS = {"bench": bench_packet, "compare": compare_packet}


def report_of(context: Context, kind: str) -> pathlib.Path:
    """The report of a packet of this kind; both are made once."""
    if not context.stet.program.exists():
        raise Skip(f"{context.stet.program} is not there")
    page, packet = context.folder / f"{kind}.html", context.folder / f"{kind}-packet"
    if not page.exists():
        PACKETS[kind](context, packet)
        check(packet.exists(), f"no packet of stet {kind}")
        patient(context, "report", packet, "--out", page)
        check(page.exists(), f"no report of the packet of stet {kind}")
    return page


def opened(context: Context, kind: str) -> None:
    page = report_of(context, kind)
    context.browser.open(page.as_uri())
    context.browser.run("document.querySelectorAll('details').forEach((d) => d.open = true)")


def opens_without_a_word(context: Context, kind: str) -> None:
    opened(context, kind)
    equal(context.browser.complaints(), [], "console")
    for url in context.browser.requested():
        check(url.startswith(("file:", "data:")), f"asked {url}")
    equal(context.browser.run("return document.scripts.length"), 0)


def report_is_accessible(context: Context, kind: str) -> None:
    browser = context.browser
    found = []
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        opened(context, kind)
        found += [f"{scheme}: {f}" for f in accessibility.contrast(browser)]
        source = accessibility.axe_source()
        found += [f"{scheme}: {f}" for f in (accessibility.axe(browser, source) if source else [])]
        context.shot(f"report-{kind}-{scheme}")
    equal(found, [], "accessibility")
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3, h4')].map((h) => +h.tagName[1])")
    check(levels[0] == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:])), f"headings skip a level: {levels}")
    check(browser.run("return document.querySelector('.stamp').innerText"), "a verdict in words")
    pictures = browser.run("return [...document.querySelectorAll('svg')].map((s) => [s.querySelector('title').textContent, s.querySelector('desc').textContent, "
                           "s.closest('figure').querySelectorAll('table').length])")  # fmt: skip
    for title, description, tables in pictures:
        check(title and description and tables == 1, f"a picture without words or table: {title!r}, {description!r}")


def report_has_room(context: Context, kind: str) -> None:
    for width, height, scale in ((1280, 900, 1), (640, 450, 2), (320, 256, 4), (360, 740, 3)):
        context.browser.size(width, height, scale)
        opened(context, kind)
        wide = context.browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        equal(wide[0], wide[1], f"the page scrolls sideways at {width} px")
        context.shot(f"report-{kind}-{width}")


def pictures_stay_inside(context: Context, kind: str) -> None:
    """Nothing of a picture lies outside of it, and no name covers another."""
    opened(context, kind)
    faults = context.browser.run("""
        const faults = [];
        for (const svg of document.querySelectorAll('svg')) {
          const frame = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')].map((t) => [t.textContent, t.getBoundingClientRect()]);
          for (const [text, box] of texts)
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
              faults.push('outside: ' + text + ' of ' + svg.id);
          for (let i = 0; i < texts.length; ++i)
            for (let j = i + 1; j < texts.length; ++j) {
              const [a, b] = [texts[i][1], texts[j][1]];
              if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5)
                faults.push('covered: ' + texts[i][0] + ' and ' + texts[j][0]);
            }
        }
        return faults.slice(0, 10);
    """)
    equal(faults, [], "pictures")


def of_kind(test: object, kind: str) -> object:
    def run(context: Context) -> None:
        test(context, kind)

    run.__name__ = f"{test.__name__}_{kind}"
    return run


TESTS = [of_kind(t, kind) for kind in PACKETS for t in (opens_without_a_word, report_is_accessible, report_has_room, pictures_stay_inside)]
