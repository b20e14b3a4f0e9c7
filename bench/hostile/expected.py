"""Requests with the answers that the plain decoder gives to them, each in a fresh process.

What is compared with the server is so computed without it: no server, no draft, no row of an earlier request.
"""

from __future__ import annotations

import json
import pathlib
import random

import served

TEXTS = [
    "The quick brown fox", "hello", "a", "x = [i * i for i in range(10)]\nprint(x)", "  two  spaces\tand a tab\n\n",
    "Grüße aus Köln, à bientôt", "日本語のテキスト", "emoji 🦊🌍 and more", "{\"json\": [1, 2.5, null, \"\\u00e9\"]}",
    "0123456789" * 12, "To be, or not to be, that is the question: " * 3, "<|im_start|>user\nnot a turn<|im_end|>",
    "repeat repeat repeat repeat repeat repeat", "SELECT name FROM t WHERE id = 7;",
]  # fmt: skip

# name of the API -> flag of `stet run`
FLAGS = {
    "max_tokens": "-n", "temperature": "-t", "top_k": "--top-k", "top_p": "--top-p", "min_p": "--min-p", "seed": "--seed",
    "repetition_penalty": "--repetition-penalty", "presence_penalty": "--presence-penalty",
    "frequency_penalty": "--frequency-penalty",
}  # fmt: skip

SHAPES = [
    {"max_tokens": 4}, {"max_tokens": 12}, {"max_tokens": 1}, {"max_tokens": 24, "temperature": 0.8, "seed": 1},
    {"max_tokens": 24, "temperature": 0.8, "seed": 2}, {"max_tokens": 20, "temperature": 1.4, "seed": 3, "top_k": 40},
    {"max_tokens": 20, "temperature": 1.0, "seed": 4, "top_p": 0.9},
    {"max_tokens": 20, "temperature": 1.25, "seed": 18446744073709551615, "min_p": 0.05},
    {"max_tokens": 16, "logit_bias": {"65": 2.5, "66": 3.0}}, {"max_tokens": 16, "logit_bias": {"120": -100}},
    {"max_tokens": 16, "temperature": 0.7, "seed": 5, "logit_bias": {"97": 4, "98": 4.5, "99": -2}},
    {"max_tokens": 24, "repetition_penalty": 1.3}, {"max_tokens": 24, "presence_penalty": 0.5, "frequency_penalty": 0.25},
    {"max_tokens": 40, "stop": 3}, {"max_tokens": 40, "stop": 9, "temperature": 0.9, "seed": 6},
    {"max_tokens": 48, "ignore_eos": True}, {"ignore_eos": True},
    {"max_tokens": 100000, "ignore_eos": True, "seed": 7, "temperature": 1.1}, {"max_tokens": 64},
]  # fmt: skip


class Expected:
    """One request, and what is right."""

    def __init__(self, fields: dict, run: dict, prompt_ids: list[int] | None):
        self.fields = fields  # as the API has them, without stream and what is returned
        self.is_chat = "messages" in fields
        self.path = "/v1/chat/completions" if self.is_chat else "/v1/completions"
        self.ids: list[int] = run["token_ids"]
        self.text: str = run["text"]
        self.digest: str = run["digest"]
        self.finish: str = run["finish"]
        self.prompt_tokens: int = run["prompt_tokens"]
        self.prompt_ids = prompt_ids

    @property
    def is_long(self) -> bool:
        return len(self.ids) > 64

    def body(self, more: dict | None = None) -> bytes:
        return json.dumps({**self.fields, **(more or {})}).encode()


def escaped(text: str) -> str:
    """As --stop reads it."""
    return "".join(chr(b) if chr(b).isalnum() and b < 128 else f"\\x{b:02x}" for b in text.encode())


class Oracle:
    def __init__(self, program: pathlib.Path, model: str, flags: list[str], environment: dict[str, str]):
        self.program, self.model, self.flags, self.environment = program, model, flags, environment

    def run(self, fields: dict, system: str = "") -> dict:
        if "messages" in fields:
            arguments = ["-p", fields["messages"][-1]["content"]]
            arguments += ["-s", fields["messages"][0]["content"]] if len(fields["messages"]) > 1 else []
        else:
            arguments = ["--raw", "-p", fields["prompt"]]
        for name, flag in FLAGS.items():
            arguments += [flag, str(fields[name])] if name in fields else []
        for token, bias in fields.get("logit_bias", {}).items():
            arguments += ["--logit-bias", f"{token}={bias}"]
        arguments += ["--stop", escaped(fields["stop"])] if "stop" in fields else []
        arguments += ["--ignore-eos"] if fields.get("ignore_eos") else []
        command = ["run", "-m", self.model, *self.flags, "--draft", "none", "--json", "-q", *arguments]
        return served.run_json(self.program, command, self.environment)

    def tokenize(self, text: str) -> list[int]:
        return served.run_json(self.program, ["tokenize", "-m", self.model], self.environment, text.encode())

    def has_template(self) -> bool:
        try:
            self.run({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1})
            return True
        except SystemExit:
            return False

    def expected(self, fields: dict) -> Expected:
        """A stop that is a number becomes the text that begins so many characters into the answer without it."""
        fields = dict(fields)
        if isinstance(fields.get("stop"), int):
            at = fields.pop("stop")
            text = self.run(fields)["text"]
            here = [text[i : i + 2] for i in range(at, len(text) - 1) if "\ufffd" not in text[i : i + 2]]
            fields["stop"] = here[0] if here else "\n\n\n"
        prompt_ids = None if "messages" in fields else self.tokenize(fields["prompt"])
        return Expected(fields, self.run(fields), prompt_ids)


def make_all(oracle: Oracle, count: int, seed: int) -> list[Expected]:
    """So many requests, no two with the same prompt and settings; half of them chats where the model has a template."""
    rng = random.Random(f"expected:{seed}")
    chats = oracle.has_template()
    out = []
    for i in range(count):
        shape = SHAPES[i % len(SHAPES)]
        text = TEXTS[(5 * i + i // len(TEXTS)) % len(TEXTS)] + ("" if i < 6 else f" {rng.randrange(1000)}")
        if chats and i % 2 == 1:
            messages = [{"role": "system", "content": "Be brief."}] if i % 4 == 3 else []
            fields = {"messages": [*messages, {"role": "user", "content": text}], **shape}
        else:
            fields = {"prompt": text, **shape}
        out.append(oracle.expected(fields))
    return out
