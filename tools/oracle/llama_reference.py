"""A second opinion on the `llama` family: float64 numpy, straight from a GGUF file, with a model of rounding errors.

It shares nothing with Hugging Face transformers: it reads the file as an engine would (adjacent-pair rotation, tensors
dequantised by gguf-py), so agreement of both in float64 shows that the file means what the transformers model is.

Rounding errors. `Noise` makes forward() add, after each operation, an error of the size that the float32 arithmetic of
an engine makes there. The sizes are derived from the unit roundoff u = 2^-24 and the operands, never fitted:
  one rounding            uniform in +-u|y|, so its standard deviation is u|y|/sqrt(3)
  n roundings of a value  sqrt(n/3) u |y|
  dot product of length K a fused chain rounds each partial sum s_j. Over all orders of summation the mean of s_j^2 is
                          (j/K) Q + j(j-1)/(K(K-1)) (y^2 - Q) with Q = sum (w_k x_k)^2, so the mean of sum_j s_j^2 is
                          (K+1)(Q/6 + y^2/3), and the error's standard deviation is u sqrt((K+1)(Q/6 + y^2/3)/3).
                          Segments and trees shorten the chains: they stay below it.
  sum of K squares        all partial sums are below the total T: u T sqrt(K)/3
The response of each logit to all of them together is found by running forward() with independent draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import gguf
import numpy as np
from gguf.quants import dequantize

U = 2.0**-24  # unit roundoff of float32
F16_U = 2.0**-11  # unit roundoff of float16


@dataclass
class Llama:
    """A `llama` file: hyperparameters, rotation frequencies (float64) and weights (float64, [out, in])."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    frequencies: np.ndarray  # (head_dim / 2), radians per position
    rope_scale: float  # factor on cos and sin
    weights: dict[str, np.ndarray]


def _field(reader: gguf.GGUFReader, key: str, default=None):
    field = reader.get_field(key)
    if field is None:
        if default is None:
            raise KeyError(f"the file lacks {key}")
        return default
    return field.contents()


def yarn(
    get, head_dim: int, base: float, factor: float, plain: np.ndarray, original: int
) -> tuple[np.ndarray, float]:
    """YaRN as transformers defines it, from the keys that llama.cpp's converter writes: frequencies and magnitude."""
    fast = get("rope.scaling.yarn_beta_fast", 32.0)
    slow = get("rope.scaling.yarn_beta_slow", 1.0)
    edge = lambda turns: head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
    low = max(math.floor(edge(fast)), 0)
    high = min(math.ceil(edge(slow)), head_dim - 1)
    ramp = np.clip((np.arange(head_dim // 2) - low) / max(high - low, 0.001), 0.0, 1.0)
    frequencies = plain * (1.0 - ramp) + plain / factor * ramp
    scale = get("rope.scaling.yarn_attn_factor", 0.1 * math.log(factor) + 1.0)
    return frequencies, scale * get("rope.scaling.attn_factor", 1.0)


def load(path: str) -> Llama:
    reader = gguf.GGUFReader(path)
    get = lambda key, default=None: _field(reader, f"llama.{key}", default)
    heads = get("attention.head_count")
    head_dim = get("attention.key_length", get("embedding_length") // heads)
    base = get("rope.freq_base", 10000.0)
    weights = {t.name: dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}

    frequencies = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    rope_scale = 1.0
    kind = get("rope.scaling.type", "none")
    if kind == "linear":
        frequencies = frequencies / get("rope.scaling.factor")
    elif kind == "yarn":
        original = get("rope.scaling.original_context_length")
        frequencies, rope_scale = yarn(get, head_dim, base, get("rope.scaling.factor"), frequencies, original)
    elif kind != "none":
        raise ValueError(f"unknown rope.scaling.type {kind}")
    if "rope_freqs.weight" in weights:
        frequencies = frequencies / weights.pop("rope_freqs.weight")
    return Llama(
        layers=get("block_count"),
        heads=heads,
        kv_heads=get("attention.head_count_kv", heads),
        head_dim=head_dim,
        eps=get("attention.layer_norm_rms_epsilon"),
        frequencies=frequencies,
        rope_scale=rope_scale,
        weights=weights,
    )


class Noise:
    """Draws the rounding errors of a float32 engine; `kv_f16` adds the cache's rounding, `a8` int8 activations."""

    def __init__(self, seed: int, kv_f16: bool = False, a8: bool = False, float32_angles: bool = False):
        self.random = np.random.default_rng(seed)
        self.kv_f16 = kv_f16
        self.a8 = a8
        self.float32_angles = float32_angles

    def add(self, y: np.ndarray, deviation: np.ndarray | float) -> np.ndarray:
        return y + deviation * self.random.standard_normal(y.shape)

    def rounded(self, y: np.ndarray, count: int) -> np.ndarray:
        return self.add(y, math.sqrt(count / 3) * U * np.abs(y))

    def products(self, y: np.ndarray, squares: np.ndarray, length) -> np.ndarray:
        """y = dot products of `length` terms whose squares sum to `squares`."""
        return self.add(y, U * np.sqrt((length + 1) * (squares / 6 + y * y / 3) / 3))

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """int8 activations: an error uniform in +-d/2 with d = max|x| / 127 over each block of 32."""
        if not self.a8:
            return x
        pad = -x.shape[-1] % 32
        blocks = np.pad(np.abs(x), [(0, 0)] * (x.ndim - 1) + [(0, pad)]).reshape(*x.shape[:-1], -1, 32)
        step = np.repeat(blocks.max(-1) / 127, 32, axis=-1)[..., : x.shape[-1]]
        return self.add(x, step / math.sqrt(12))

    def cached(self, y: np.ndarray) -> np.ndarray:
        return self.add(y, F16_U / math.sqrt(3) * np.abs(y)) if self.kv_f16 else y


class Exact(Noise):
    """No error anywhere."""

    def __init__(self):
        super().__init__(0)

    def add(self, y, deviation):
        return y


def _matmul(noise: Noise, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = noise.inputs(x)
    return noise.products(x @ w.T, (x * x) @ (w * w).T, w.shape[1])


def _norm(noise: Noise, x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    mean = np.mean(x * x, axis=-1, keepdims=True)
    mean = noise.add(mean, U * mean * math.sqrt(x.shape[-1]) / 3)
    return noise.rounded(x / np.sqrt(mean + eps) * weight, 5)  # mean + eps, sqrt, division, two products


def _rotate(noise: Noise, model: Llama, x: np.ndarray) -> np.ndarray:
    """x (n, heads, head_dim): rotates the pairs (2i, 2i + 1); cos and sin come rounded from a table."""
    angles = np.arange(x.shape[0])[:, None] * model.frequencies[None, :]
    if noise.float32_angles:  # transformers' own: frequency (power, division, scaling: 4 roundings) times position
        angles = noise.add(angles, math.sqrt(5 / 3) * U * angles)
    cos = model.rope_scale * np.cos(angles)[:, None, :]
    sin = model.rope_scale * np.sin(angles)[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    size = np.sqrt(even**2 + odd**2) * model.rope_scale
    y = np.empty_like(x)
    y[..., 0::2] = noise.add(even * cos - odd * sin, U * size)  # 3 roundings: table, product, sum
    y[..., 1::2] = noise.add(even * sin + odd * cos, U * size)
    return y


def _attention(noise: Noise, model: Llama, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """q (n, heads, head_dim); k and v (n, kv_heads, head_dim); returns (n, heads * head_dim)."""
    n, group = q.shape[0], model.heads // model.kv_heads
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("ihd,jhd->hij", q, k)
    squares = np.einsum("ihd,jhd->hij", q * q, k * k)
    scores = noise.rounded(noise.products(scores, squares, model.head_dim) / math.sqrt(model.head_dim), 2)
    scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    shifted = scores - scores.max(-1, keepdims=True)
    # exp: the subtraction's rounding acts through its absolute size, the polynomial is good to two units.
    visible = np.where(np.isfinite(shifted), shifted, 0.0)
    weights = noise.add(np.exp(shifted), np.exp(shifted) * U * np.sqrt((visible**2 + 4.0) / 3))
    total = weights.sum(-1, keepdims=True)
    total = noise.add(total, U * total * math.sqrt(n) / 3)
    weights = weights / total
    out = np.einsum("hij,jhd->ihd", weights, v)
    squares = np.einsum("hij,jhd->ihd", weights**2, v * v)
    out = noise.rounded(noise.products(out, squares, n), 3)  # merge of chunks: weight, sum, division
    return out.reshape(n, -1)


def forward(model: Llama, tokens: list[int], noise: Noise | None = None) -> np.ndarray:
    """Logits (n, vocab) in float64, with the errors that `noise` draws (none by default)."""
    noise = noise or Exact()
    w = model.weights
    x = w["token_embd.weight"][np.asarray(tokens)]
    n = len(tokens)
    for layer in range(model.layers):
        part = lambda name: w[f"blk.{layer}.{name}.weight"]
        y = _norm(noise, x, part("attn_norm"), model.eps)
        q = _matmul(noise, y, part("attn_q")).reshape(n, model.heads, model.head_dim)
        k = _matmul(noise, y, part("attn_k")).reshape(n, model.kv_heads, model.head_dim)
        v = _matmul(noise, y, part("attn_v")).reshape(n, model.kv_heads, model.head_dim)
        q, k = _rotate(noise, model, q), noise.cached(_rotate(noise, model, k))
        y = _attention(noise, model, q, k, noise.cached(v))
        x = noise.rounded(x + _matmul(noise, y, part("attn_output")), 1)
        y = _norm(noise, x, part("ffn_norm"), model.eps)
        gate, up = _matmul(noise, y, part("ffn_gate")), _matmul(noise, y, part("ffn_up"))
        # silu: exp (the argument is exact, two units), 1 + e, division, product; then times up
        y = noise.rounded(gate / (1.0 + np.exp(-gate)) * up, 8)
        x = noise.rounded(x + _matmul(noise, y, part("ffn_down")), 1)
    x = _norm(noise, x, w["output_norm.weight"], model.eps)
    return _matmul(noise, x, w.get("output.weight", w["token_embd.weight"]))


def response(model: Llama, tokens: list[int], positions: list[int], trials: int, **kinds) -> float:
    """Largest standard deviation, over the logits at `positions`, of the response to the errors of `kinds`."""
    exact = forward(model, tokens)[positions]
    squares = np.zeros_like(exact)
    for trial in range(trials):
        squares += (forward(model, tokens, Noise(1000 + trial, **kinds))[positions] - exact) ** 2
    return float(np.sqrt(squares / trials).max())
