"""The number formats of a published DeepSeek V4 checkpoint and the roundings of its reference, in float64 numpy.

Every function takes and returns float64 arrays that hold values of the named format; the encoders return codes.
  bf16   8 significant bits, float32's exponents
  e4m3   4 significant bits, exponents -6..8, largest 448, no infinity
  e2m1   2 significant bits: 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives
  e8m0   a power of two, stored as its exponent + 127
Rounding is to nearest, ties to even. Groups that a row does not fill are shorter (a published row fills them all).
"""

from __future__ import annotations

import numpy as np

E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def _round(x: np.ndarray, bits: int, lowest: int) -> np.ndarray:
    """x to `bits` significant bits; below 2^lowest the spacing stays as it is there."""
    exponent = np.maximum(np.frexp(x)[1] - 1, lowest)
    step = np.ldexp(1.0, exponent - (bits - 1))
    return np.rint(x / step) * step


def bf16(x: np.ndarray) -> np.ndarray:
    return _round(x, 8, -126)


def f32(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).astype(np.float32).astype(np.float64)


def e4m3(x: np.ndarray) -> np.ndarray:
    return _round(np.clip(x, -448.0, 448.0), 4, -6)


def e2m1(x: np.ndarray) -> np.ndarray:
    return _round(np.clip(x, -6.0, 6.0), 2, 0)


def power_above(x: np.ndarray) -> np.ndarray:
    """The least power of two that is not below x > 0."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(1.0, exponent - (mantissa == 0.5))


def _by_group(x: np.ndarray, size: int, quantise) -> np.ndarray:
    """quantise(group, its largest magnitude) over groups of `size` along the last axis."""
    parts = [x[..., i : i + size] for i in range(0, x.shape[-1], size)]
    return np.concatenate([quantise(p, np.abs(p).max(-1, keepdims=True)) for p in parts], axis=-1)


def act_quant(x: np.ndarray, size: int) -> np.ndarray:
    """e4m3 with a power-of-two scale for each group: what an FP8 or FP4 linear multiplies."""

    def quantise(part, largest):
        scale = power_above(np.maximum(largest, 1e-4) / 448.0)
        return e4m3(part / scale) * scale

    return _by_group(x, size, quantise)


def fp4_sim(x: np.ndarray, size: int = 32) -> np.ndarray:
    """e2m1 with a power-of-two scale for each group; the result is exact in bf16."""

    def quantise(part, largest):
        scale = power_above(np.maximum(largest, 6.0 * 2.0**-126) / 6.0)
        return e2m1(part / scale) * scale

    return _by_group(x, size, quantise)


def hadamard(x: np.ndarray) -> np.ndarray:
    """Sylvester's matrix times the last axis, times its length ** -0.5; the length is a power of two."""
    shape, length = x.shape, x.shape[-1]
    if length & (length - 1):
        raise ValueError(f"a Hadamard transform of length {length}")
    half = 1
    while half < length:
        x = x.reshape(*shape[:-1], -1, 2, half)
        x = np.stack([x[..., 0, :] + x[..., 1, :], x[..., 0, :] - x[..., 1, :]], axis=-2)
        half *= 2
    return x.reshape(shape) * length**-0.5


def _blocks(w: np.ndarray, rows: int, columns: int):
    for i in range(0, w.shape[0], rows):
        for j in range(0, w.shape[1], columns):
            yield i // rows, j // columns, (slice(i, i + rows), slice(j, j + columns))


def _scales(w: np.ndarray, rows: int, columns: int, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """w (n, k) in blocks of rows x columns: e8m0 bytes, one a block, and the scale of each element."""
    codes = np.zeros((-(-w.shape[0] // rows), -(-w.shape[1] // columns)), np.uint8)
    scale = np.ones_like(w)
    for i, j, block in _blocks(w, rows, columns):
        scale[block] = power_above(max(np.abs(w[block]).max(), 1e-30) / largest)
        codes[i, j] = int(np.log2(scale[block].flat[0])) + 127
    return codes, scale


def encode_e4m3(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w (n, k): e4m3 bytes (n, k) and e8m0 bytes, one a block of 128 x 128."""
    scales, scale = _scales(w, 128, 128, 448.0)
    x = e4m3(w / scale)
    size = np.abs(x)
    exponent = np.maximum(np.frexp(size)[1] - 1, -6)
    step = np.rint(size / np.ldexp(1.0, exponent - 3)).astype(int)  # 8..15, below 8 for subnormals
    code = np.where(step >= 8, (exponent + 7) * 8 + step - 8, step)
    return (code | np.where(np.signbit(x), 128, 0)).astype(np.uint8), scales


def decode_e4m3(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    exponent, mantissa = (codes.astype(int) >> 3) & 15, codes.astype(int) & 7
    size = np.where(exponent > 0, np.ldexp(8.0 + mantissa, exponent - 10), np.ldexp(mantissa * 1.0, -9))
    x = np.where(codes & 128, -size, size)
    for i, j, block in _blocks(x, 128, 128):
        x[block] *= 2.0 ** (int(scales[i, j]) - 127)
    return x


def encode_e2m1(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w (n, k): bytes (n, k / 2), the even column in the low nibble, and e8m0 bytes, one for 32 columns of a row."""
    scales, scale = _scales(w, 1, 32, 6.0)
    x = e2m1(w / scale)
    nibble = np.searchsorted(E2M1, np.abs(x)) | np.where(np.signbit(x), 8, 0)
    return (nibble[:, 0::2] | nibble[:, 1::2] << 4).astype(np.uint8), scales


def decode_e2m1(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    nibble = np.stack([codes & 15, codes >> 4], axis=-1).reshape(codes.shape[0], -1)
    x = np.where(nibble & 8, -E2M1[nibble & 7], E2M1[nibble & 7])
    return x * np.repeat(2.0 ** (scales.astype(int) - 127), 32, axis=1)[:, : x.shape[1]]
