"""A conversation in a terminal."""

from __future__ import annotations

import json
import os
import signal
import time

from harness import Stet, Terminal, check, equal

TINY = "synth:tiny:q4_0"


def talk(stet: Stet, *flags: object) -> Terminal:
    terminal = Terminal(stet, "run", "-m", TINY, "-n", 10, *flags)
    terminal.expect("> ")
    return terminal


def endless(stet: Stet) -> Terminal:
    terminal = Terminal(stet, "run", "-m", TINY, "--ctx", 100000, "--ignore-eos")
    terminal.expect("> ")
    return terminal


def answers_and_ctrl_d_leaves(stet: Stet) -> None:
    terminal = talk(stet)
    terminal.line("hello")
    terminal.expect("prompt 24 tokens", "finish length", "> ")
    terminal.line("again")
    terminal.expect("cached)", "> ")  # the turns before are there already
    terminal.send("\x04")
    equal(terminal.close(), 0)


def ctrl_c_stops_the_answer_and_keeps_it(stet: Stet) -> None:
    terminal = endless(stet)
    terminal.line("hello")
    time.sleep(0.5)
    terminal.send("\x03")
    terminal.expect("finish cancelled", "> ")
    terminal.line("/save stopped.json")
    terminal.expect("saved to", "> ")
    messages = json.loads((stet.folder / "stopped.json").read_text())["messages"]
    equal([m["role"] for m in messages], ["user", "assistant"])
    check(messages[1]["content"], "what stood of the answer")
    terminal.line("more")
    time.sleep(0.5)
    terminal.send("\x03")
    terminal.expect("cached)", "> ")
    terminal.send("\x03")
    equal(terminal.close(), 0, "a second Ctrl-C leaves")


def second_ctrl_c_right_after_the_first_leaves(stet: Stet) -> None:
    terminal = endless(stet)
    terminal.line("hello")
    time.sleep(0.5)
    os.kill(terminal.pid, signal.SIGINT)
    terminal.expect("finish cancelled")
    os.kill(terminal.pid, signal.SIGINT)  # as early as can be: before the prompt is there
    equal(terminal.close(), 0)


def ctrl_c_drops_the_line(stet: Stet) -> None:
    terminal = talk(stet)
    terminal.send("half a line")
    terminal.expect("half a line")
    terminal.send("\x03")
    terminal.expect("> ")
    terminal.send("\x03")
    equal(terminal.close(), 0, "a second Ctrl-C leaves")


def ctrl_c_at_an_empty_prompt_asks_first(stet: Stet) -> None:
    terminal = talk(stet)
    terminal.send("\x03")
    terminal.expect("Ctrl-C again or Ctrl-D leaves", "> ")
    terminal.line("hello")
    terminal.expect("finish length", "> ")
    terminal.send("\x03")
    terminal.expect("Ctrl-C again or Ctrl-D leaves", "> ")
    terminal.send("\x03")
    equal(terminal.close(), 0)


def clear_system_and_help(stet: Stet) -> None:
    terminal = talk(stet, "--system", "Be brief.")
    terminal.line("/system")
    terminal.expect("Be brief.", "> ")
    terminal.line("hello")
    terminal.expect("prompt 43 tokens", "> ")
    terminal.line("/clear")
    terminal.expect("anew", "> ")
    terminal.line("/system -")
    terminal.expect("no system message", "> ")
    terminal.line("hello")
    terminal.expect("prompt 24 tokens", "> ")
    terminal.line("/system Sing.")
    terminal.expect("next answer", "> ")
    terminal.line("/clear")
    terminal.expect("anew", "> ")
    terminal.line("hello")
    terminal.expect("prompt 39 tokens", "> ")
    for word, answer in {"/help": "/save FILE", "/nonsense": "no command /nonsense", "//x": "prompt"}.items():
        terminal.line(word)
        terminal.expect(answer, "> ")
    terminal.line("/exit")
    equal(terminal.close(), 0)


def save_writes_json_and_markdown(stet: Stet) -> None:
    terminal = talk(stet)
    terminal.line("grüß dich \\")
    terminal.expect(". ")
    terminal.line("zweite Zeile")
    terminal.expect("finish length", "> ")
    for name in ("talk.json", "talk.md"):
        terminal.line(f"/save {name}")
        terminal.expect(f"saved to {name}", "> ")
    content = json.loads((stet.folder / "talk.json").read_text(encoding="utf-8"))
    equal((content["synthetic"], content["messages"][0]), (True, {"role": "user", "content": "grüß dich \nzweite Zeile"}))
    check("## assistant" in (stet.folder / "talk.md").read_text(encoding="utf-8", errors="replace"), "Markdown")
    (stet.folder / "talk.md").write_text("mine")
    terminal.line("/save talk.md")
    terminal.expect("overwrite it? [y/N] ")
    terminal.line("n")
    terminal.expect("not saved", "> ")
    equal((stet.folder / "talk.md").read_text(), "mine")
    terminal.line("/save talk.md")
    terminal.expect("overwrite it? [y/N] ")
    terminal.line("y")
    terminal.expect("saved to talk.md", "> ")
    check((stet.folder / "talk.md").read_text(encoding="utf-8", errors="replace") != "mine", "it was not overwritten")
    terminal.line("/save nowhere/talk.md")
    terminal.expect("error", "nowhere", "> ")
    terminal.send("\x04")
    equal(terminal.close(), 0)


def line_editing_and_history(stet: Stet) -> None:
    terminal = talk(stet)
    terminal.line("hello")
    terminal.expect("prompt 24 tokens", "> ")
    terminal.line("/clear")
    terminal.expect("anew", "> ")
    terminal.send("\x1b[A")
    time.sleep(0.2)
    terminal.send("\x1b[A")
    terminal.expect("hello")
    terminal.send("\x01\x1b[C\x08H\r")  # the first letter replaced
    terminal.expect("prompt 24 tokens", "> ")
    terminal.line("/save edited.json")
    terminal.expect("saved", "> ")
    equal(json.loads((stet.folder / "edited.json").read_text())["messages"][0]["content"], "Hello")
    terminal.send("\x04")
    equal(terminal.close(), 0)
    equal([p.name for p in stet.folder.rglob("*history*")], [], "a history on disk")


def a_full_context_keeps_the_conversation(stet: Stet) -> None:
    terminal = talk(stet, "--ctx", 80)
    terminal.line("hello")
    terminal.expect("finish length", "> ")
    terminal.line("x" * 100)
    terminal.expect("error", "80", "the question was dropped", "> ")
    terminal.line("/save kept.json")
    terminal.expect("saved", "> ")
    equal(len(json.loads((stet.folder / "kept.json").read_text())["messages"]), 2)
    terminal.send("\x04")
    equal(terminal.close(), 0)


TESTS = [
    answers_and_ctrl_d_leaves, ctrl_c_stops_the_answer_and_keeps_it, second_ctrl_c_right_after_the_first_leaves,
    ctrl_c_drops_the_line, ctrl_c_at_an_empty_prompt_asks_first, clear_system_and_help, save_writes_json_and_markdown,
    line_editing_and_history, a_full_context_keeps_the_conversation,
]  # fmt: skip
