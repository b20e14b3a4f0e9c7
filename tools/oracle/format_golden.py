#!/usr/bin/env python3
"""Writes src/formats/format_golden.inc: blocks, what they decode to, and what the reference quantisers encode.

Needs numpy and gguf (gguf-py). Decoding is written here from the published layouts in float32 and compared with gguf-py before
it is written; encoding is gguf-py's. Both of F8_E4M3 and MXFP4 are those of deepseek_v4/formats.py. Run from the repository root:  python3 tools/oracle/format_golden.py
"""
import pathlib
import sys

import numpy as np
import gguf
from gguf.quants import dequantize, quantize

sys.path.append(str(pathlib.Path(__file__).parent))
from deepseek_v4 import formats  # noqa: E402

F = np.float32


def nibbles(qs):
    return np.concatenate([qs & 15, qs >> 4])


def f16(b):
    return b.view(np.float16)[0].astype(F)


def decode(name, b):
    if name == "F32":
        return b.view(F)
    if name == "F16":
        return b.view(np.float16).astype(F)
    if name == "BF16":
        return (b.view(np.uint16).astype(np.uint32) << 16).view(F)
    if name == "Q4_0":
        return (nibbles(b[2:]).astype(F) - F(8)) * f16(b[:2])
    if name == "Q4_1":
        return nibbles(b[4:]).astype(F) * f16(b[:2]) + f16(b[2:4])
    if name == "Q8_0":
        return b[2:].view(np.int8).astype(F) * f16(b[:2])
    assert name == "Q6_K"
    out = np.zeros(256, F)
    d, sc = f16(b[208:]), b[192:208].view(np.int8)
    for half in range(2):
        ql, qh = b[64 * half:64 * half + 64], b[128 + 32 * half:160 + 32 * half]
        for l in range(32):
            q = [ql[l] & 15 | (qh[l] & 3) << 4, ql[l + 32] & 15 | (qh[l] >> 2 & 3) << 4,
                 ql[l] >> 4 | (qh[l] >> 4 & 3) << 4, ql[l + 32] >> 4 | (qh[l] >> 6) << 4]
            for k in range(4):
                i = 128 * half + 32 * k + l
                out[i] = (d * F(sc[i // 16])) * F(int(q[k]) - 32)
    return out


def mxfp4_of_published(codes, scales):
    """Published bytes have columns 2i and 2i + 1 of a group of 32, GGUF's i and i + 16."""
    columns = np.stack([codes & 15, codes >> 4], -1).reshape(-1, 32)
    return np.concatenate([scales.reshape(-1, 1), columns[:, :16] | columns[:, 16:] << 4], 1)


def powers():
    """Golden lines of the formats with scales that are powers of two: blocks of one row."""
    rng = np.random.default_rng(20261130)
    lines = []
    for scale in (119, 0):
        codes = rng.integers(0, 256, (1, 128), dtype=np.uint8)
        codes[codes & 127 == 127] ^= 1
        raw = np.concatenate([[np.uint8(scale)], codes[0]])
        want = formats.decode_e4m3(codes, np.array([[scale]])).astype(F)
        lines.append(f'GOLDEN_DECODE("F8_E4M3", "{raw.tobytes().hex()}", "{want.tobytes().hex()}")')
    x = (rng.standard_normal((1, 128)) * rng.choice([0.05, 1e-4], (1, 128))).astype(F)
    codes, scales = formats.encode_e4m3(x.astype(np.float64))
    raw = np.concatenate([scales[0], codes[0]])
    lines.append(f'GOLDEN_ENCODE("F8_E4M3", "{x.tobytes().hex()}", "{raw.tobytes().hex()}")')
    codes, scales = rng.integers(0, 256, (1, 32), dtype=np.uint8), np.array([[120, 1]], np.uint8)
    raw, want = mxfp4_of_published(codes, scales), formats.decode_e2m1(codes, scales).astype(F)
    theirs = dequantize(raw, gguf.GGMLQuantizationType.MXFP4)
    assert np.array_equal(want.ravel(), theirs.ravel())
    lines.append(f'GOLDEN_DECODE("MXFP4", "{raw.tobytes().hex()}", "{want.tobytes().hex()}")')
    x = (rng.standard_normal((1, 64)) * 0.05).astype(F)
    raw = mxfp4_of_published(*formats.encode_e2m1(x.astype(np.float64)))
    lines.append(f'GOLDEN_ENCODE("MXFP4", "{x.tobytes().hex()}", "{raw.tobytes().hex()}")')
    return lines


def main():
    rng = np.random.default_rng(20240607)
    lines = ["// Written by tools/oracle/format_golden.py. GOLDEN_DECODE(format, block bytes, bits of the decoded values),",
             "// GOLDEN_ENCODE(format, bits of the values, block bytes); one of each a format where a reference encoder exists.",
             "// clang-format off"]
    for name, elements, size in [("F32", 1, 4), ("F16", 1, 2), ("BF16", 1, 2), ("Q4_0", 32, 18), ("Q4_1", 32, 20),
                                 ("Q8_0", 32, 34), ("Q6_K", 256, 210)]:
        blocks = 8 if elements == 1 else 1 if elements == 256 else 2
        raw = rng.integers(0, 256, blocks * size, dtype=np.uint8)
        if elements > 1:
            for i in range(blocks):  # sound scales, the last one negative and subnormal in f16
                scale = np.array([0.0123 if i + 1 < blocks or blocks == 1 else -3e-6], np.float16).view(np.uint8)
                at = i * size + (208 if elements == 256 else 0)
                raw[at:at + 2] = scale
                if name == "Q4_1":
                    raw[at + 2:at + 4] = np.array([-0.37], np.float16).view(np.uint8)
        elif name == "F32":
            raw = rng.standard_normal(blocks).astype(F).view(np.uint8)
        else:
            raw = (raw.view(np.uint16) & 0xbfff).view(np.uint8)  # no infinities
        want = np.concatenate([decode(name, raw[i:i + size]) for i in range(0, len(raw), size)])
        theirs = dequantize(raw, gguf.GGMLQuantizationType[name])
        # gguf-py multiplies in another order for some formats: equal up to the last bit
        assert np.allclose(want, theirs.ravel(), rtol=3e-7, atol=1e-9), name
        lines.append(f'GOLDEN_DECODE("{name}", "{raw.tobytes().hex()}", "{want.tobytes().hex()}")')
        if name != "Q6_K":
            x = (rng.standard_normal(blocks * elements) * 0.05).astype(F)
            if blocks == 2:
                x[elements:] *= F(40)
            got = quantize(x, gguf.GGMLQuantizationType[name])
            lines.append(f'GOLDEN_ENCODE("{name}", "{x.tobytes().hex()}", "{np.asarray(got).tobytes().hex()}")')
    lines += powers()
    with open("src/formats/format_golden.inc", "w") as f:
        f.write("\n".join(lines) + "\n")


main()
