#!/usr/bin/env python3
"""Checks the oracle against itself and against torch and transformers, and the stored goldens against both.

  python tools/oracle/deepseek_v4/check.py [tests/golden/deepseek_v4]

Prints a line a check; exits with 1 if one fails. Needs torch, transformers and numpy; a minute.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
from transformers import DeepseekV4ForCausalLM

import checkpoint
import drafts
import formats
import hf
import make_drafts
import reference

MODELS, FAILED = ("mixed", "fine", "coarse", "full_blocks"), []


def report(what: str, passed: bool, detail: object = "") -> None:
    print("ok    " if passed else "FAILED", what, detail, flush=True)
    if not passed:
        FAILED.append(what)


def close(what: str, a: np.ndarray, b: np.ndarray, bound: float) -> None:
    error = float(np.abs(a - b).max())
    report(what, error <= bound, f"{error:.2g}")


def check_formats() -> None:
    """torch has bf16 and e4m3 of its own; the reference takes its scales' exponents from float32 bits."""
    random = np.random.default_rng(0)
    x = random.standard_normal(100000) * np.exp(random.uniform(-12, 12, 100000))
    single = torch.from_numpy(x).float()
    x = single.double().numpy()
    report("bf16 as torch rounds", np.array_equal(formats.bf16(x), single.bfloat16().double().numpy()))
    inside = single.clamp(-448, 448).to(torch.float8_e4m3fn).double().numpy()
    report("e4m3 as torch rounds", np.array_equal(formats.e4m3(x), inside))
    codes = np.arange(256, dtype=np.uint8).reshape(2, 128)
    theirs = torch.from_numpy(codes).view(torch.float8_e4m3fn).double().numpy()
    ours = formats.decode_e4m3(codes, np.full((1, 1), 127, np.uint8))
    report("every e4m3 code but the two NaN", np.array_equal(ours[~np.isnan(theirs)], theirs[~np.isnan(theirs)]))
    ties = formats.e2m1(np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]))
    report("e2m1 breaks ties to even", np.array_equal(ties, [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0]))
    sizes = (np.arange(0x38D2, 0x4E80, dtype=np.uint32) << 16).view(np.float32)  # every bf16 of 1e-4 to 1e9
    for largest in (448, 6):
        bits = (sizes * np.float32(1 / largest)).view(np.uint32)
        theirs = np.ldexp(1.0, (bits >> 23).astype(int) - 127 + ((bits & 0x7FFFFF) != 0))
        report(f"scales of {largest}", np.array_equal(formats.power_above(sizes.astype(np.float64) / largest), theirs))
    w = random.standard_normal((200, 96))
    for encode, decode in ((formats.encode_e4m3, formats.decode_e4m3), (formats.encode_e2m1, formats.decode_e2m1)):
        once = decode(*encode(w))
        report(f"{encode.__name__} of what it decodes to", np.array_equal(decode(*encode(once)), once))


def check_golden(folder: str, name: str) -> None:
    config, weights = checkpoint.load(os.path.join(folder, name))
    with open(os.path.join(folder, name, "golden.json"), encoding="utf-8") as file:
        golden = json.load(file)
    with open(os.path.join(folder, name, "model.safetensors"), "rb") as file:
        report(f"{name}: SHA-256", hashlib.sha256(file.read()).hexdigest() == golden["model_sha256"])
    tokens, positions = golden["tokens"], golden["positions"]
    stored = lambda what: np.load(os.path.join(folder, name, what + ".npy"))
    double = hf.logits(config, weights, tokens, torch.float64)
    close(f"{name}: transformers in float64", double[positions], stored("logits"), 1e-11)
    single = hf.logits(config, weights, tokens, torch.float32)[positions]
    close(f"{name}: transformers in float32", single, stored("logits"), golden["tolerance"]["f32"])
    close(f"{name}: reference, f32", reference.Model(config, weights, "f32").forward(tokens), double, 1e-9)
    model = reference.Model(config, weights, "checkpoint")
    streams = model.streams(tokens, model.state())
    close(f"{name}: reference, checkpoint", model.logits(streams[-1])[positions], stored("checkpoint_logits"), 1e-11)
    bits = (streams[1:].astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    report(f"{name}: streams", np.array_equal(bits, stored("checkpoint_streams")))
    state = model.state()
    steps = np.concatenate([model.forward([token], state) for token in tokens])
    close(f"{name}: token by token, checkpoint", steps, model.logits(streams[-1]), 1e-11)


def check_names(folder: str, name: str) -> None:
    """transformers loads the file by its own table of published names, and answers the same bits."""
    config, weights = checkpoint.load(os.path.join(folder, name))
    tokens = list(range(3, 33))
    with tempfile.TemporaryDirectory() as place:
        hf.config_of(config).save_pretrained(place)
        shutil.copy(os.path.join(folder, name, "model.safetensors"), place)
        model, info = DeepseekV4ForCausalLM.from_pretrained(place, output_loading_info=True, dtype=torch.float32)
    model.config._experts_implementation = "eager"
    complete = not info["missing_keys"] and not info["unexpected_keys"]
    with torch.no_grad():
        theirs = model.eval()(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    ours = hf.logits(config, weights, tokens, torch.float32)
    report(f"{name}: transformers reads the published names", complete and np.array_equal(ours, theirs))


def check_mtp(folder: str) -> None:
    config, weights = checkpoint.load(os.path.join(folder, "mtp"))
    with open(os.path.join(folder, "mtp", "golden.json"), encoding="utf-8") as file:
        tokens = json.load(file)["tokens"]
    for mode, stored in (("f32", "draft"), ("checkpoint", "checkpoint_draft")):
        model = reference.Model(config, weights, mode)
        whole = make_drafts.run_mtp(model, tokens)
        close(f"mtp: golden, {mode}", whole, np.load(os.path.join(folder, "mtp", stored + ".npy")), 1e-11)
        streams, mtp = model.streams(tokens, model.state())[-1], drafts.Mtp(model)
        steps = [mtp.forward(streams[i : i + 1], [tokens[i + 1]]) for i in range(len(tokens) - 1)]
        close(f"mtp: row by row, {mode}", np.concatenate(steps), whole, 1e-11)


def check_dspark(folder: str) -> None:
    config, weights = checkpoint.load(os.path.join(folder, "dspark"))
    with open(os.path.join(folder, "dspark", "golden.json"), encoding="utf-8") as file:
        tokens = json.load(file)["tokens"]
    for mode, stored in (("f32", "draft"), ("checkpoint", "checkpoint_draft")):
        model = reference.Model(config, weights, mode)
        rows = make_drafts.flat(make_drafts.run_dspark(model, tokens))
        close(f"dspark: golden, {mode}", rows, np.load(os.path.join(folder, "dspark", stored + ".npy")), 1e-11)
        tap = drafts.taps(model, model.streams(tokens, model.state()), config["dspark_target_layer_ids"])
        noise, drafted = config["dspark_noise_token_id"], []
        for pieces in ([20], [7, 1, 1, 11]):
            dspark = drafts.DSpark(model, make_drafts.STAGES, noise)
            for end, count in zip(np.cumsum(pieces), pieces):
                dspark.verified(tap[end - count : end])
            drafted.append(dspark.draft(5, 5))
        close(f"dspark: rows in pieces, {mode}", drafted[0].logits, drafted[1].logits, 1e-11)
        again = dspark.draft(5, 5)
        report(f"dspark: a draft leaves nothing, {mode}", np.array_equal(again.logits, drafted[1].logits))
    check_dspark_attention(config, weights)


def check_dspark_attention(config: dict, weights: dict) -> None:
    """With one place to draft, a stage is a window layer one row longer whose earlier inputs are the main rows."""
    model = reference.Model({**config, "sliding_window": config["sliding_window"] + 1}, weights, "f32")
    x = np.random.default_rng(0).standard_normal((20, config["hidden_size"]))
    usual = model.attention("mtp.1", x, np.arange(20), reference.LayerState())[-1:]
    model = reference.Model(config, weights, "f32")
    dspark = drafts.DSpark(model, make_drafts.STAGES, 0, rows=19)
    dspark.kv["mtp.1"] = model.rows("mtp.1.attn.", x[:19], np.arange(19), 0)
    close("dspark: one place is a longer window", dspark.attention("mtp.1", x[-1:]), usual, 1e-12)


def main() -> None:
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "tests", "golden", "deepseek_v4")
    torch.set_num_threads(1)
    check_formats()
    for name in MODELS:
        check_golden(folder, name)
    for name in ("mixed", "fine", "coarse"):
        check_names(folder, name)
    check_mtp(folder)
    check_dspark(folder)
    raise SystemExit(f"failed: {FAILED}" if FAILED else 0)


if __name__ == "__main__":
    main()
