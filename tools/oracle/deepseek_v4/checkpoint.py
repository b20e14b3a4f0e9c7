"""Reads and writes DeepSeek V4 checkpoints with the published names: config.json and model.safetensors.

Weights are a dictionary from published name (layers.0.attn.wq_a.weight, ...) to a float64 array, or int64 for tid2eid.
A folder keeps them in one of two ways:
  float32    every tensor F32: what a tiny model is compared in, without any format's rounding
  published  the published types: FP8 with blocks of 128 x 128, packed FP4 with groups of 32, BF16, F32 (see kind())
"""

from __future__ import annotations

import json
import os

import numpy as np

import formats

FP8 = (".wq_a.weight", ".wq_b.weight", ".wkv.weight", ".wo_a.weight", ".wo_b.weight", "_proj.weight")


def kind(name: str) -> str:
    """The published type of a tensor: FP8, FP4, BF16, F32 or I64."""
    if name.endswith("tid2eid"):
        return "I64"
    if ".ffn.experts." in name:
        return "FP4"
    if name.endswith((".ape", ".attn_sink", ".gate.bias", "_fn", "_base", "_scale")):
        return "F32"
    if ".compressor." in name or ".weights_proj." in name:
        return "BF16"
    if ".ffn.shared_experts." in name or name.endswith(FP8):
        return "FP8"
    return "BF16"


def representable(name: str, value: np.ndarray) -> np.ndarray:
    """value (float64) rounded to what the tensor's published type can hold."""
    what = kind(name)
    if what == "FP8":
        return formats.decode_e4m3(*formats.encode_e4m3(value))
    if what == "FP4":
        return formats.decode_e2m1(*formats.encode_e2m1(value))
    if what == "BF16":
        return formats.bf16(value)
    return value if what == "I64" else formats.f32(value)


def _bf16_bits(value: np.ndarray) -> np.ndarray:
    bits = value.astype(np.float32).view(np.uint32)
    if (bits & 0xFFFF).any():
        raise ValueError("a value is not a bf16")
    return (bits >> 16).astype(np.uint16)


def _stored(name: str, value: np.ndarray, published: bool) -> dict[str, tuple[str, np.ndarray]]:
    what = kind(name)
    if what == "I64":
        return {name: ("I64", value.astype(np.int64))}
    if not published or what == "F32":
        return {name: ("F32", value.astype(np.float32))}
    if what == "BF16":
        return {name: ("BF16", _bf16_bits(value))}
    codes, scales = (formats.encode_e4m3 if what == "FP8" else formats.encode_e2m1)(value)
    scale = name.removesuffix("weight") + "scale"
    return {name: ("F8_E4M3" if what == "FP8" else "I8", codes), scale: ("F8_E8M0", scales)}


def save(folder: str, config: dict, weights: dict[str, np.ndarray], published: bool) -> None:
    """Writes config.json and model.safetensors; the weights must be representable()."""
    os.makedirs(folder, exist_ok=True)
    header, parts, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, value in weights.items():
        for stored_name, (dtype, data) in _stored(name, value, published).items():
            part = np.ascontiguousarray(data).tobytes()
            header[stored_name] = {
                "dtype": dtype, "shape": list(data.shape), "data_offsets": [offset, offset + len(part)],
            }  # fmt: skip
            parts.append(part)
            offset += len(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(parts))
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
        file.write("\n")


def _values(dtype: str, data: np.ndarray) -> np.ndarray:
    if dtype == "BF16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "F32":
        return data.view(np.float32).astype(np.float64)
    if dtype == "I64":
        return data.view(np.int64)
    if dtype in ("I8", "F8_E4M3", "F8_E8M0"):
        return data
    raise ValueError(f"the type {dtype}")


def load(folder: str) -> tuple[dict, dict[str, np.ndarray]]:
    """config.json and the weights of a folder, dequantised (which is exact in float64)."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = np.frombuffer(file.read(), np.uint8)
    header.pop("__metadata__", None)
    raw = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw[name] = _values(entry["dtype"], body[begin:end].copy()).reshape(entry["shape"])
    weights = {}
    for name, value in raw.items():
        dtype, scale = header[name]["dtype"], raw.get(name.removesuffix("weight") + "scale")
        if dtype == "F8_E4M3":
            value = formats.decode_e4m3(value, scale)
        elif dtype == "I8":
            value = formats.decode_e2m1(value, scale)
        if dtype != "F8_E8M0":
            weights[name] = value
    return config, weights
