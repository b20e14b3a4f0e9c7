#!/usr/bin/env python3
"""Writes tests/golden/text/: what the `tokenizers` and `jinja2` packages make of generated strings and templates.

    python3 -m venv V && V/bin/pip install tokenizers==0.23.3 jinja2==3.1.6
    V/bin/python tools/oracle/make_text_vectors.py [--shared ../shared]
"""
import argparse
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jinja_cases  # noqa: E402
import text_oracle as oracle  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "tests", "golden", "text")
PRES = ["gpt-2", "smollm", "llama-bpe", "qwen2", "deepseek-v3"]
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write(name, value):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def lengths(pieces):
    """Piece lengths in characters, one base-62 digit each; '+' adds 61 and goes on."""
    return "".join("+" * ((n - 1) // 61) + DIGITS[(n - 1) % 61 + 1] for n in pieces)


def splits(strings):
    out = {}
    for pre in PRES:
        splitter = oracle.pre_tokenizer(pre, byte_level=False)
        out[pre] = [lengths([b - a for _, (a, b) in splitter.pre_tokenize_str(s)]) for s in strings]
    return out


def small_bpe(pre, seed):
    """Trains a BPE of 300 merges on generated text, so that whole tokenizers can be compared without a large file."""
    from tokenizers import Tokenizer, models, pre_tokenizers as pt, trainers
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = oracle.pre_tokenizer(pre)
    trainer = trainers.BpeTrainer(vocab_size=560, initial_alphabet=sorted(pt.ByteLevel.alphabet()), show_progress=False)
    t.train_from_iterator(oracle.random_strings(seed, 4000), trainer)
    data = json.loads(t.to_str())["model"]
    tokens = [x for x, _ in sorted(data["vocab"].items(), key=lambda kv: kv[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["merges"]]
    added = [("<|end|>", True), ("<|start|>", True), ("<tool>", False), ("<tool>>", False)]
    whole = len(tokens)
    tokens += [x for x, _ in added]
    types = [1] * whole + [3 if special else 4 for _, special in added]
    hf = oracle.tokenizer(tokens, merges, pre, added)
    strings = oracle.random_strings(seed + 1, 260)
    marked = ["a<|end|>b", "<|start|>user\nHi<|end|>\n", "<tool>>x<tool>", "<<tool>>>", "<|end|><|end|>", "<|end", "x <|start|> y"]
    cases = [[s, hf.encode(s, add_special_tokens=False).ids] for s in strings + marked]
    return {"pre": pre, "tokens": tokens, "types": types, "merges": merges, "cases": cases}


def hf_environment():
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", generation_tag()])
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda fmt: __import__("datetime").datetime(2026, 3, 5, 14, 7, 9).strftime(fmt)
    return env


def generation_tag():
    from jinja2 import nodes
    from jinja2.ext import Extension
    class Generation(Extension):
        tags = {"generation"}
        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)
        def _render(self, caller):
            return caller()
    return Generation


def render(template, variables):
    try:
        return {"text": hf_environment().from_string(template).render(**variables)}
    except Exception as e:  # the kind of failure differs between engines; that it fails must not
        return {"error": str(e)}


def golden_jinja():
    return {"variables": jinja_cases.VARIABLES,
            "cases": [{"template": t, **render(t, jinja_cases.VARIABLES)} for t in jinja_cases.cases()]}


CONVERSATIONS = [
    [["user", "Hello, who are you?"]],
    [["system", "Be brief."], ["user", "What is 2+2? <|im_end|>"], ["assistant", "4"], ["user", "And \"3\" + 3?\n"]],
]


def shared_templates(folder):
    out = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            source = f.read()
        for turns in CONVERSATIONS:
            variables = {"messages": [{"role": r, "content": c} for r, c in turns], "add_generation_prompt": True,
                         "bos_token": "<BOS>", "eos_token": "<EOS>"}
            result = render(source, variables)
            if "text" in result:  # the texts belong to the templates' owners: their digest is enough
                result = {"sha256": hashlib.sha256(result["text"].encode()).hexdigest()}
            out.append({"file": name, "messages": turns, **result})
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", default=os.path.join(HERE, "..", "..", "..", "shared"))
    args = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    strings = oracle.random_strings(1, 1500)
    write("splits.json", {"strings": strings, "lengths": splits(strings)})
    for i, pre in enumerate(PRES):
        write("bpe_%s.json" % pre, small_bpe(pre, 100 + 2 * i))
    write("jinja.json", golden_jinja())
    folder = os.path.join(args.shared, "data", "templates")
    if os.path.isdir(folder):
        write("templates.json", shared_templates(folder))
    else:
        print("templates.json left as it is: no", folder)


if __name__ == "__main__":
    main()
