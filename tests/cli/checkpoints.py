"""Checkpoints as Hugging Face stores them: a folder with config.json, tokenizer.json and safetensors."""

from __future__ import annotations

import json
import pathlib
import random
import shutil
import struct

from harness import Stet, check, equal

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
PRE_TOKENIZERS = ("gpt-2", "smollm", "llama-bpe", "qwen2", "deepseek-v3")
LLAMA = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHATML = "{% for m in messages %}{{ '<|start|>' + m.role + '\n' + m.content + '<|end|>\n' }}{% endfor %}{{ '<|start|>assistant\n' }}"
HIDDEN, HEADS, FFN, LAYERS = 32, 4, 48, 2


def pre_tokenizer(name: str) -> dict:
    def split(regex: str) -> dict:
        return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}

    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    gpt2 = {**bytes_only, "use_regex": True}
    steps = {
        "gpt-2": [gpt2],
        "smollm": [{"type": "Digits", "individual_digits": True}, gpt2],
        "llama-bpe": [split(LLAMA % "{1,3}"), bytes_only],
        "qwen2": [split(LLAMA % ""), bytes_only],
        "deepseek-v3": [split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), bytes_only],
    }[name]
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}


def tokenizer(golden: dict) -> dict:
    added = [
        {"id": i, "content": text, "special": kind == 3, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        for i, (text, kind) in enumerate(zip(golden["tokens"], golden["types"])) if kind != 1
    ]  # fmt: skip
    vocab = {text: i for i, (text, kind) in enumerate(zip(golden["tokens"], golden["types"])) if kind == 1}
    model = {"type": "BPE", "vocab": vocab, "merges": golden["merges"], "ignore_merges": golden["pre"] == "llama-bpe"}
    return {"normalizer": None, "pre_tokenizer": pre_tokenizer(golden["pre"]), "added_tokens": added, "model": model}


def safetensors(tensors: dict[str, tuple[list[int], bytes]]) -> bytes:
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def weights(vocab: int) -> dict[str, tuple[list[int], bytes]]:
    draw = random.Random(5)

    def values(*shape: int, scale: float) -> tuple[list[int], bytes]:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        return list(shape), struct.pack(f"<{count}f", *(scale * draw.gauss(0, 1) + (len(shape) == 1) for _ in range(count)))

    out = {"model.embed_tokens.weight": values(vocab, HIDDEN, scale=0.5), "model.norm.weight": values(HIDDEN, scale=0.2)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            out[f"{layer}{norm}.weight"] = values(HIDDEN, scale=0.2)
        for name, rows, columns in (
            ("self_attn.q_proj", HIDDEN, HIDDEN), ("self_attn.k_proj", HIDDEN // 2, HIDDEN), ("self_attn.v_proj", HIDDEN // 2, HIDDEN),
            ("self_attn.o_proj", HIDDEN, HIDDEN), ("mlp.gate_proj", FFN, HIDDEN), ("mlp.up_proj", FFN, HIDDEN), ("mlp.down_proj", HIDDEN, FFN),
        ):  # fmt: skip
            out[f"{layer}{name}.weight"] = values(rows, columns, scale=0.25)
    return out


def checkpoint(stet: Stet, name: str, golden: dict) -> pathlib.Path:
    folder = stet.folder / name
    folder.mkdir()
    end = golden["tokens"].index("<|end|>")
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": len(golden["tokens"]) + 4, "hidden_size": HIDDEN,
        "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS // 2,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
        "bos_token_id": end, "eos_token_id": end, "torch_dtype": "float32",
    }  # fmt: skip
    files = {
        "config.json": config, "generation_config.json": {"eos_token_id": [end]}, "tokenizer.json": tokenizer(golden),
        "tokenizer_config.json": {"chat_template": CHATML, "eos_token": "<|end|>"},
    }  # fmt: skip
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(weights(config["vocab_size"])))
    return folder


def golden_text(pre: str) -> dict:
    return json.loads((GOLDEN / "text" / f"bpe_{pre}.json").read_text(encoding="utf-8"))


def logits_are_those_of_the_gguf_file(stet: Stet) -> None:
    names = sorted(p.name for p in (GOLDEN / "hf").iterdir() if p.is_dir())
    check(len(names) >= 6, names)
    for name in names:
        tokens = ",".join(map(str, json.loads((GOLDEN / "llama" / f"{name}.tokens.json").read_text())["tokens"]))
        for flags in (("--float", "--kv", "f32"), ("--float",), ()):
            out = []
            for model in (GOLDEN / "llama" / f"{name}.gguf", GOLDEN / "hf" / name):
                stet.ok("logits", "-m", model, "--tokens", tokens, "--out", "l.npy", *flags)
                out.append((stet.folder / "l.npy").read_bytes())
            check(out[0] == out[1], f"{name} {flags}: other bits than {name}.gguf")


def tokens_are_those_of_the_library(stet: Stet) -> None:
    for pre in PRE_TOKENIZERS:
        golden = golden_text(pre)
        folder = checkpoint(stet, f"text-{pre}", golden)
        for text, ids in golden["cases"][:: 40 if pre != "smollm" else 10]:
            got = stet.ok("tokenize", "-m", folder, "--special", text=text.encode())
            equal(json.loads(got.out), ids, f"{pre}: {text!r}")


def a_checkpoint_runs(stet: Stet) -> None:
    folder = checkpoint(stet, "runs", golden_text("smollm"))
    flags = ("run", "-m", folder, "-p", "the cat and the cat and", "-n", 24)
    plain = stet.json(*flags)
    equal(plain["output_tokens"] if "output_tokens" in plain else len(plain["token_ids"]), len(plain["token_ids"]))
    for draft in (("--draft", "ngram"), ("--draft", f"model:{folder}"), ("--pack", "none"), ("--threads", 1)):
        equal(stet.json(*flags, *draft)["digest"], plain["digest"], draft)
    sampled = stet.json(*flags, "--temperature", 0.9, "--seed", 3)
    equal(stet.json(*flags, "--temperature", 0.9, "--seed", 3, "--draft", "ngram")["digest"], sampled["digest"])
    again = stet("run", "-m", folder, "-p", "the cat", "-n", 2)
    check("packing" not in again.err, f"the pack is found again: {again}")
    seen = json.loads(stet.ok("inspect", folder, "--json").out)
    equal([pathlib.Path(f["name"]).name for f in seen["files"]],
          ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])  # fmt: skip
    equal(seen["metadata"]["general.name"], "runs")
    text = stet.ok("inspect", folder).out.decode()
    check("model.safetensors: " in text and "GGUF" not in text, text[:500])


def damaged_checkpoints_are_refused(stet: Stet) -> None:
    good = checkpoint(stet, "good", golden_text("gpt-2"))

    def refused(code: int, damage: object, *says: str) -> None:
        folder = stet.folder / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good, folder)
        damage(folder)
        stet.refuses(code, "run", "-m", folder, "-p", "x", "-n", 1, says=says)

    def cut(folder: pathlib.Path) -> None:
        data = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(data[: len(data) // 2])

    def edit(file: str, **changes: object) -> object:
        def change(folder: pathlib.Path) -> None:
            content = json.loads((folder / file).read_text(encoding="utf-8"))
            (folder / file).write_text(json.dumps({**content, **changes}), encoding="utf-8")

        return change

    refused(3, cut, "model.safetensors", "truncated")
    refused(3, lambda f: (f / "model.safetensors").unlink(), "model.safetensors", "get the whole checkpoint")
    refused(3, lambda f: (f / "config.json").unlink(), "without config.json")
    refused(3, lambda f: (f / "config.json").write_text("{"), "config.json", "not JSON")
    refused(3, edit("config.json", num_hidden_layers=3), "lacks tensor")
    refused(4, edit("config.json", num_hidden_layers=1), "does not know")
    refused(3, edit("config.json", hidden_size=64), "shape")
    refused(4, edit("config.json", model_type="mamba"), "mamba")
    refused(4, edit("config.json", logit_scale=2), "logit_scale")
    refused(4, edit("config.json", quantization_config={"quant_method": "gptq"}), "quantised (gptq)")
    refused(4, edit("tokenizer.json", normalizer={"type": "NFC"}), "tokenizer.json", "normalizer")
    refused(4, edit("tokenizer.json", pre_tokenizer={"type": "Whitespace"}), "pre_tokenizer")
    refused(4, lambda f: ((f / "tokenizer.json").unlink(), (f / "tokenizer.model").write_bytes(b"x")), "tokenizer 'llama'")
    stet.refuses(2, "run", "-m", good / "model.safetensors", "-p", "x", says="name the folder")


TESTS = [logits_are_those_of_the_gguf_file, tokens_are_those_of_the_library, a_checkpoint_runs, damaged_checkpoints_are_refused]
