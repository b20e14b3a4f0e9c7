"""Checkpoints of DeepSeek V4 in the published types, FP8 and packed FP4 with scales: tests/golden/deepseek_v4/full_blocks."""

from __future__ import annotations

import json
import pathlib
import struct

from checkpoints import GOLDEN, pre_tokenizer
from harness import Stet, check, equal

PUBLISHED = GOLDEN / "deepseek_v4" / "full_blocks"
CONFIG = json.loads((PUBLISHED / "config.json").read_text())
F32 = ("--float", "--kv", "f32")
WKV, SCALE = "layers.0.attn.wkv.weight", "layers.0.attn.wkv.scale"
Tensors = dict[str, tuple[str, list[int], bytes]]  # by name: dtype, shape, data


def read_tensors() -> Tensors:
    data = (PUBLISHED / "model.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = {name: t for name, t in json.loads(data[8:start]).items() if name != "__metadata__"}
    places = {name: (t["dtype"], t["shape"], *t["data_offsets"]) for name, t in header.items()}
    return {name: (dtype, shape, data[start + begin : start + end]) for name, (dtype, shape, begin, end) in places.items()}


def write_tensors(path: pathlib.Path, tensors: Tensors) -> None:
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def folder(stet: Stet, name: str, files: dict[str, Tensors], **changes: object) -> pathlib.Path:
    made = stet.folder / f"published-{name}"
    made.mkdir()
    (made / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    for file, tensors in files.items():
        write_tensors(made / file, tensors)
    if len(files) > 1:
        index = {"metadata": {}, "weight_map": {tensor: file for file, tensors in files.items() for tensor in tensors}}
        (made / "model.safetensors.index.json").write_text(json.dumps(index))
    return made


def letters(count: int) -> dict:
    """A tokenizer of so many tokens: the beginning, the end, and letters."""
    added = [{"id": i, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
             for i, text in enumerate(("<s>", "</s>"))]  # fmt: skip
    vocab = {letter: i + 2 for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz.,!?"[: count - 2])}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "ignore_merges": False}
    return {"normalizer": None, "pre_tokenizer": pre_tokenizer("gpt-2"), "added_tokens": added, "model": model}


def logits(stet: Stet, model: pathlib.Path) -> bytes:
    tokens = ",".join(map(str, json.loads((PUBLISHED / "golden.json").read_text())["tokens"]))
    stet.ok("logits", "-m", model, "--tokens", tokens, "--out", "l.npy", *F32)
    return (stet.folder / "l.npy").read_bytes()


def published_checkpoints_are_read(stet: Stet) -> None:
    """As published, with codes and scales in two shards, and as transformers 5.24 saves it."""
    tensors, want = read_tensors(), logits(stet, PUBLISHED)
    scales = {name: t for name, t in tensors.items() if name.endswith(".scale")}
    others = {name: t for name, t in tensors.items() if name not in scales}
    check(logits(stet, folder(stet, "shards", {"a.safetensors": scales, "b.safetensors": others})) == want, "in two shards")
    renamed = {f"hc_head_{part}": f"hc_head.hc_{part}" for part in ("fn", "base", "scale")} | {"embed.weight": "embed_tokens.weight"}
    saved = {name if name == "head.weight" else f"model.{renamed.get(name, name)}": t for name, t in tensors.items()}
    quantization = {key: value for key, value in CONFIG["quantization_config"].items() if key != "fmt"}
    quantization |= {"dequantize": False, "expert_dtype": "fp4", "modules_to_convert": None, "modules_to_not_convert": None}
    resaved = folder(stet, "saved", {"model.safetensors": saved}, quantization_config=quantization)
    check(logits(stet, resaved) == want, "as transformers saves it")
    changed = {**tensors, SCALE: ("F8_E8M0", [1, 1], bytes([tensors[SCALE][2][0] ^ 1]))}
    check(logits(stet, folder(stet, "changed", {"model.safetensors": changed})) != want, "another scale, the same logits")


def formats_and_bytes_are_shown(stet: Stet) -> None:
    seen = json.loads(stet.ok("inspect", PUBLISHED, "--json").out)
    formats = {f["format"]: f for f in seen["formats"]}
    check(all(f["supported"] for f in seen["formats"]), formats)
    size = dict.fromkeys(("F8_E4M3", "F8_E8M0", "I8", "BF16", "F32"), 0)
    for dtype, _, data in read_tensors().values():
        size[dtype] += len(data)
    fp8, fp4 = size["F8_E4M3"] // 128 * 129, size["I8"] // 16 * 17
    equal((formats["F8_E4M3"]["parameters"], formats["F8_E4M3"]["bytes"]), (size["F8_E4M3"], fp8))
    equal((formats["MXFP4"]["parameters"], formats["MXFP4"]["bytes"]), (2 * size["I8"], fp4))
    equal(seen["weight_bytes"], fp8 + fp4 + size["BF16"] + size["F32"])
    unread = fp4 // 3 + (CONFIG["vocab_size"] - 1) * CONFIG["hidden_size"] * 2  # one expert of three, rows of the embedding
    equal(seen["weight_bytes"] - seen["bytes_per_token"], unread)
    text = stet.ok("inspect", PUBLISHED).out.decode()
    check("8.06 bits each" in text and "4.25 bits each" in text and "NOT SUPPORTED" not in text, text)


def published_checkpoints_answer(stet: Stet) -> None:
    speaking = folder(stet, "speaking", {"model.safetensors": read_tensors()})
    (speaking / "tokenizer.json").write_text(json.dumps(letters(CONFIG["vocab_size"])))
    run = ("run", "-m", speaking, "--raw", "-p", "hello", "-n", 12, "--ignore-eos", *F32)
    answer = stet.json(*run)
    equal((answer["prompt_tokens"], answer["output_tokens"], answer["activations"]), (5, 12, "f32"))
    for other in (("--draft", "ngram"), ("--pack", "none"), ("--pack", "mapped"), ("--threads", 1)):
        equal(stet.json(*run, *other)["digest"], answer["digest"], other)


def what_does_not_match_is_refused(stet: Stet) -> None:
    tensors = read_tensors()
    without = {name: t for name, t in tensors.items() if name != SCALE}
    quantization = CONFIG["quantization_config"]
    for name, some, changes, code, says in (
        ("no-scale", without, {}, 3, (WKV, SCALE, "not there")),
        ("alone", {name: t for name, t in tensors.items() if name != WKV}, {}, 3, (WKV, SCALE, "not there")),
        ("shape", {**tensors, SCALE: ("F8_E8M0", [1, 2], b"ab")}, {}, 3, (SCALE, "[1, 2]", "needs [1, 1]")),
        ("dtype", {**tensors, SCALE: ("F32", [1, 1], b"abcd")}, {}, 4, (SCALE, "F32", "F8_E8M0")),
        ("inverse", {**without, "layers.0.attn.wkv.weight_scale_inv": ("F32", [1, 1], b"abcd")}, {}, 4, ("weight_scale_inv",)),
        ("nan", {**tensors, SCALE: ("F8_E8M0", [1, 1], b"\xff")}, {}, 3, (SCALE, "no number")),
        ("silent", tensors, {"quantization_config": None}, 3, ("quantization_config",)),
        ("experts", tensors, {"expert_dtype": "fp8"}, 3, ("experts", "fp8")),
        ("blocks", tensors, {"quantization_config": {**quantization, "weight_block_size": [1, 128]}}, 4, ("weight_block_size",)),
        ("awq", tensors, {"quantization_config": {"quant_method": "awq"}}, 4, ("quantised (awq)",)),
    ):  # fmt: skip
        damaged = folder(stet, name, {"model.safetensors": some}, **changes)
        stet.refuses(code, "logits", "-m", damaged, "--tokens", "1,2", "--out", "l.npy", *F32, says=says)


TESTS = [
    published_checkpoints_are_read, formats_and_bytes_are_shown, published_checkpoints_answer, what_does_not_match_is_refused,
]  # fmt: skip
