"""DeepSeek V4's forward pass in float64 numpy, by absolute position: what an engine must compute, with no engine in it.

Written from the published reference (inference/model.py and kernel.py of the V4-Flash repository), not from
transformers; hf.py compares the two. Two modes:
  f32         the mathematics of the model, nothing is rounded. Equals transformers in float64.
  checkpoint  rounded to bf16, e4m3 and e2m1 wherever the published reference rounds. What it keeps in float32 is exact
              here, except RoPE's angles: they are float32 in the reference, and far positions feel it.

A State keeps every row since position 0: nothing is a ring, nothing is overwritten. A row t reads rows <= t only, so
forward() of a whole prompt, of pieces and of single tokens are the same computation.

Shapes: n rows in this call, t absolute position, H heads, d head size, R rotated dimensions (the last of a head),
m = hc_mult streams. Weights are [out, in] with the published names (checkpoint.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

import formats

KEY_BLOCK = 64  # keys that the reference's attention kernel takes at once


@dataclass(frozen=True)
class Config:
    """The fields of the published config.json that change the forward pass, under their published names."""

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    head_dim: int
    qk_rope_head_dim: int
    o_groups: int
    sliding_window: int
    rms_norm_eps: float
    num_experts_per_tok: int
    n_routed_experts: int
    routed_scaling_factor: float
    swiglu_limit: float
    rope_theta: float
    compress_rope_theta: float
    rope_scaling: dict | None
    compress_ratios: tuple[int, ...]  # 0: window only; 4: overlapping entries and an indexer; else: plain entries
    index_n_heads: int
    index_head_dim: int
    index_topk: int
    hc_mult: int
    hc_sinkhorn_iters: int
    hc_eps: float

    @classmethod
    def of(cls, config: dict) -> "Config":
        return cls(**{name: config[name] for name in cls.__dataclass_fields__})


class Exact:
    """Mode f32: no rounding anywhere.

    The first four say where float32 arithmetic rounds; rounding_errors.py draws its errors there.
    """

    def dot(self, x, w):
        """x (..., k) times w (n, k)."""
        return x @ w.T

    def einsum(self, subscripts, a, b):
        return np.einsum(subscripts, a, b)

    def exp(self, x):
        return np.exp(x)

    def rounded(self, x, count):
        """x, after `count` roundings of its size."""
        return x

    def bf16(self, x):
        return x

    def f32(self, x):
        return x

    def a8(self, x):
        """The input of an FP8 or FP4 linear."""
        return x

    def kv(self, x):
        """The dimensions of a cached row that are not rotated."""
        return x

    def index(self, x):
        """A query or key of the indexer; transformers leaves out the Hadamard transform, which changes no product."""
        return x


class Published(Exact):
    """Mode checkpoint: the roundings of the published reference."""

    def bf16(self, x):
        return formats.bf16(x)

    def f32(self, x):
        return formats.f32(x)

    def a8(self, x):
        return formats.act_quant(x, 128)

    def kv(self, x):
        return formats.act_quant(x, 64)

    def index(self, x):
        return formats.fp4_sim(formats.bf16(formats.hadamard(x)))


@dataclass
class Pool:
    """A compressor's rows and entries: c and z (n, width), entries (e, d)."""

    c: np.ndarray | None = None
    z: np.ndarray | None = None
    entries: list[np.ndarray] = field(default_factory=list)


@dataclass
class LayerState:
    kv: np.ndarray | None = None  # (n, d): every row, not only the window
    main: Pool = field(default_factory=Pool)
    index: Pool = field(default_factory=Pool)


@dataclass
class State:
    layers: list[LayerState]
    rows: int = 0


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def append(rows: np.ndarray | None, new: np.ndarray) -> np.ndarray:
    return new if rows is None else np.concatenate([rows, new])


def best(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the largest `count` scores, descending, ties to the lowest index."""
    return np.argsort(-scores, kind="stable")[:count]


def frequencies(config: Config, ratio: int) -> np.ndarray:
    """(R / 2) radians a position. Layers with a compressor have another base, and YaRN where the config has it."""
    size = config.qk_rope_head_dim
    base = config.compress_rope_theta if ratio else config.rope_theta
    plain = base ** (-np.arange(0, size, 2, dtype=np.float64) / size)
    yarn = config.rope_scaling
    if not ratio or not yarn:
        return plain
    original = yarn["original_max_position_embeddings"]
    edge = lambda turns: size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
    low = max(math.floor(edge(yarn["beta_fast"])), 0)
    high = min(math.ceil(edge(yarn["beta_slow"])), size - 1)
    ramp = np.clip((np.arange(size // 2) - low) / max(high - low, 0.001), 0.0, 1.0)
    return plain / yarn["factor"] * ramp + plain * (1.0 - ramp)


class Model:
    """forward() gives logits; `margins` collects how clearly every choice was made (last chosen minus first not)."""

    def __init__(self, config: dict, weights: dict[str, np.ndarray], mode: str):
        self.settings = config  # all of config.json, the drafts' fields too
        self.config = Config.of(config)
        self.weights = weights
        self.round = {"f32": Exact, "checkpoint": Published}[mode]()
        self.margins: list[float] = []

    def state(self) -> State:
        return State([LayerState() for _ in range(self.config.num_hidden_layers)])

    # Linears. In the reference FP8 and FP4 weights take e4m3 inputs; their products and sums are float32.

    def fp8_linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return self.round.bf16(self.round.dot(self.round.a8(x), self.weights[name]))

    def bf16_linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return self.round.bf16(self.round.dot(x, self.weights[name]))

    def f32_linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return self.round.dot(x, self.weights[name])

    def mean_square(self, x: np.ndarray) -> np.ndarray:
        return self.round.rounded(np.mean(x * x, axis=-1, keepdims=True), x.shape[-1] / 3)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale = 1.0 / np.sqrt(self.mean_square(x) + self.config.rms_norm_eps)
        return self.round.bf16(self.round.rounded(x * scale * self.weights[name], 5))

    def unit_heads(self, q: np.ndarray) -> np.ndarray:
        """Each head by its root mean square, no weight; the reference does every step of it in bf16."""
        r = self.round.bf16
        square = r(self.round.rounded(q * q, 1))
        mean = r(self.round.rounded(np.mean(square, axis=-1, keepdims=True), q.shape[-1] / 3))
        scale = r(self.round.rounded(1.0 / np.sqrt(r(mean + self.config.rms_norm_eps)), 3))
        return r(self.round.rounded(q * scale, 1))

    def rotate(self, x: np.ndarray, positions: np.ndarray, ratio: int, inverse: bool = False) -> np.ndarray:
        """x (n, ..., d), a position a row: turns the pairs (2i, 2i + 1) of the last R dimensions."""
        size = self.config.qk_rope_head_dim
        step = self.round.f32(frequencies(self.config, ratio))
        angle = self.round.f32(positions[:, None] * step[None, :])
        angle = angle.reshape(len(positions), *[1] * (x.ndim - 2), size // 2)
        turn = np.cos(angle) + 1j * np.sin(angle) * (-1.0 if inverse else 1.0)
        pairs = self.round.rounded((x[..., -size::2] + 1j * x[..., -size + 1 :: 2]) * turn, 3)
        y = x.copy()
        y[..., -size::2] = self.round.bf16(pairs.real)
        y[..., -size + 1 :: 2] = self.round.bf16(pairs.imag)
        return y

    def cached(self, row: np.ndarray) -> np.ndarray:
        """row (n, d), rotated: its other dimensions as the cache holds them."""
        size = self.config.qk_rope_head_dim
        return np.concatenate([self.round.kv(row[..., :-size]), row[..., -size:]], axis=-1)

    # Hyper-connections: m streams h (n, m, hidden), mixed before and after each site.

    def mixes(self, h: np.ndarray, fn: str) -> np.ndarray:
        """One norm over all streams, without a weight, then the projection fn: (n, out)."""
        v = h.reshape(len(h), -1)
        scale = 1.0 / np.sqrt(self.mean_square(v) + self.config.rms_norm_eps)
        return self.round.rounded(self.f32_linear(v, fn) * scale, 4)

    def sinkhorn(self, logits: np.ndarray) -> np.ndarray:
        """logits (n, m, m): softmax of the rows, + eps, columns; then, but for the first time, rows and columns."""
        eps, r = self.config.hc_eps, self.round
        c = r.exp(logits - logits.max(-1, keepdims=True))
        c = r.rounded(c / c.sum(-1, keepdims=True) + eps, 4)
        c = r.rounded(c / (c.sum(-2, keepdims=True) + eps), 4)
        for _ in range(self.config.hc_sinkhorn_iters - 1):
            c = r.rounded(c / (c.sum(-1, keepdims=True) + eps), 4)
            c = r.rounded(c / (c.sum(-2, keepdims=True) + eps), 4)
        return c

    def gate(self, mix: np.ndarray, scale: np.ndarray, base: np.ndarray) -> np.ndarray:
        return self.round.rounded(sigmoid(self.round.rounded(mix * scale + base, 2)), 4)

    def hc_pre(self, h: np.ndarray, site: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The site's input (n, hidden), post (n, m) and comb (n, m, m)."""
        c, m = self.config, self.config.hc_mult
        base, scale = self.weights[site + "_base"], self.weights[site + "_scale"]
        mix = self.mixes(h, site + "_fn")
        pre = self.gate(mix[:, :m], scale[0], base[:m]) + c.hc_eps
        post = 2.0 * self.gate(mix[:, m : 2 * m], scale[1], base[m : 2 * m])
        comb = self.round.rounded(mix[:, 2 * m :] * scale[2] + base[2 * m :], 2)
        comb = self.sinkhorn(comb.reshape(-1, m, m))
        return self.round.bf16(self.round.einsum("nj,njd->nd", pre, h)), post, comb

    def hc_post(self, out: np.ndarray, h: np.ndarray, post: np.ndarray, comb: np.ndarray) -> np.ndarray:
        """Stream k: post_k * out + sum over j of comb[j, k] * h_j."""
        new = self.round.rounded(post[:, :, None] * out[:, None, :], 1)
        return self.round.bf16(self.round.rounded(new + self.round.einsum("njk,njd->nkd", comb, h), 1))

    def hc_head(self, h: np.ndarray, prefix: str = "") -> np.ndarray:
        w = self.weights
        mix = self.mixes(h, prefix + "hc_head_fn")
        pre = self.gate(mix, w[prefix + "hc_head_scale"], w[prefix + "hc_head_base"]) + self.config.hc_eps
        return self.round.bf16(self.round.einsum("nj,njd->nd", pre, h))

    # Attention.

    def pooled(self, pool: Pool, entry: int, ratio: int, size: int) -> np.ndarray:
        """The weighted mean of an entry's rows (size): its own window and, of overlapping entries, the one before.

        An overlapping row has two halves: the first is its part of the next entry, the second of its own.
        """
        own = slice(ratio * entry, ratio * (entry + 1))
        c, z = pool.c[own, -size:], pool.z[own, -size:]
        if pool.c.shape[1] == 2 * size and entry:
            before = slice(ratio * (entry - 1), ratio * entry)
            c = np.concatenate([pool.c[before, :size], c])
            z = np.concatenate([pool.z[before, :size], z])
        weight = self.round.exp(z - z.max(0))
        weight = self.round.rounded(weight / weight.sum(0), len(c) / 3 + 1)
        return self.round.einsum("rd,rd->d", weight, c)

    def compress(self, pool: Pool, prefix: str, x: np.ndarray, positions: np.ndarray, ratio: int) -> None:
        """Adds the rows x to the pool and makes every entry that they complete."""
        size = len(self.weights[prefix + "norm.weight"])
        pool.c = append(pool.c, self.f32_linear(x, prefix + "wkv.weight"))
        gate = self.f32_linear(x, prefix + "wgate.weight") + self.weights[prefix + "ape"][positions % ratio]
        pool.z = append(pool.z, self.round.rounded(gate, 1))
        for entry in range(len(pool.entries), len(pool.c) // ratio):
            row = self.round.bf16(self.pooled(pool, entry, ratio, size))[None, :]
            row = self.norm(row, prefix + "norm.weight")
            row = self.rotate(row, np.array([self.entry_position(entry, ratio)]), ratio)
            pool.entries.append((self.round.index(row) if ".indexer." in prefix else self.cached(row))[0])

    def index_queries(self, prefix: str, x, low_rank, positions, ratio) -> tuple[np.ndarray, np.ndarray]:
        """The indexer's queries (n, heads, d) and the weight of each (n, heads)."""
        c, r = self.config, self.round
        q = self.fp8_linear(low_rank, prefix + "wq_b.weight").reshape(len(x), c.index_n_heads, c.index_head_dim)
        q = r.index(self.rotate(q, positions, ratio))
        scale = (c.index_head_dim * c.index_n_heads) ** -0.5
        return q, r.bf16(self.bf16_linear(x, prefix + "weights_proj.weight") * scale)

    def index_scores(self, q: np.ndarray, weight: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """q (heads, d), weight (heads), keys (e, d): a score an entry. bf16 after each step, so ties are common."""
        r = self.round.bf16
        return r(r(np.maximum(r(q @ keys.T), 0.0) * weight[:, None]).sum(0))

    def choose(self, scores: np.ndarray, count: int) -> np.ndarray:
        order = best(scores, len(scores))
        if count < len(order):
            self.margins.append(float(scores[order[count - 1]] - scores[order[count]]))
        return order[:count]

    def attend(self, q: np.ndarray, keys: np.ndarray, slots: np.ndarray, sink: np.ndarray) -> np.ndarray:
        """q (H, d), keys (k, d) which are the values too; returns (H, d).

        The reference takes 64 slots of its key list at a time with a running maximum, and multiplies values by weights
        rounded to bf16 but sums them unrounded. The sink is a logit without a value.
        """
        r = self.round
        scores = r.rounded(r.dot(q, keys) * self.config.head_dim**-0.5, 2)
        top = np.full(len(q), -np.inf)
        total, out = np.zeros(len(q)), np.zeros_like(q)
        for block in np.unique(slots // KEY_BLOCK):
            here = slots // KEY_BLOCK == block
            before, top = top, np.maximum(top, scores[:, here].max(-1))
            fade = np.exp(before - top)
            weight = r.exp(scores[:, here] - top[:, None])
            total = r.rounded(total * fade + weight.sum(-1), len(keys) / 3)
            out = out * fade[:, None] + r.dot(r.bf16(weight), keys[here].T)
        total = total + r.exp(sink - top)
        return r.bf16(r.rounded(out / total[:, None], 3))

    def entry_position(self, entry: int, ratio: int) -> int:
        """Where an entry is rotated to: the first row of its own window."""
        return ratio * entry

    def visible(self, t: int, ratio: int) -> int:
        """How many entries the query at t sees: an entry is visible to the row that completes it."""
        return (t + 1) // ratio

    def ratio(self, block: str) -> int:
        """A draft's blocks (mtp.0) have a window only, like the first layers."""
        kind, index = block.split(".")
        return self.config.compress_ratios[int(index)] if kind == "layers" else 0

    def queries(self, prefix: str, x: np.ndarray, positions: np.ndarray, ratio: int) -> tuple[np.ndarray, np.ndarray]:
        """Queries (n, H, d) and the low-rank vector (n, q_lora_rank) that the indexer's queries come from too."""
        c = self.config
        low_rank = self.norm(self.fp8_linear(x, prefix + "wq_a.weight"), prefix + "q_norm.weight")
        q = self.fp8_linear(low_rank, prefix + "wq_b.weight").reshape(len(x), c.num_attention_heads, c.head_dim)
        return self.rotate(self.unit_heads(q), positions, ratio), low_rank

    def rows(self, prefix: str, x: np.ndarray, positions: np.ndarray, ratio: int) -> np.ndarray:
        """The cached rows (n, d): one for all heads, key and value at once."""
        kv = self.norm(self.fp8_linear(x, prefix + "wkv.weight"), prefix + "kv_norm.weight")
        return self.cached(self.rotate(kv, positions, ratio))

    def attention(self, block: str, x: np.ndarray, positions: np.ndarray, state: LayerState) -> np.ndarray:
        c, prefix, ratio = self.config, block + ".attn.", self.ratio(block)
        q, low_rank = self.queries(prefix, x, positions, ratio)
        state.kv = append(state.kv, self.rows(prefix, x, positions, ratio))
        if ratio:
            self.compress(state.main, prefix + "compressor.", x, positions, ratio)
        if ratio == 4:
            self.compress(state.index, prefix + "indexer.compressor.", x, positions, ratio)
            index_q, weight = self.index_queries(prefix + "indexer.", x, low_rank, positions, ratio)

        out = np.empty_like(q)
        for i, t in enumerate(positions):
            keys = state.kv[max(0, t - c.sliding_window + 1) : t + 1]
            slots = np.arange(len(keys))
            if ratio and (count := self.visible(t, ratio)):
                chosen = np.arange(count)
                if ratio == 4:
                    scores = self.index_scores(index_q[i], weight[i], np.array(state.index.entries[:count]))
                    chosen = self.choose(scores, c.index_topk)
                keys = np.concatenate([keys, np.array(state.main.entries)[chosen]])
                slots = np.concatenate([slots, c.sliding_window + np.arange(len(chosen))])
            out[i] = self.attend(q[i], keys, slots, self.weights[prefix + "attn_sink"])
        return self.output(prefix, self.rotate(out, positions, ratio, inverse=True))

    def output(self, prefix: str, out: np.ndarray) -> np.ndarray:
        """out (n, H, d): each group of heads by its own rows of wo_a, then wo_b over all groups."""
        groups = self.config.o_groups
        out = out.reshape(len(out), groups, -1)
        wo_a = self.weights[prefix + "wo_a.weight"].reshape(groups, -1, out.shape[-1])
        low_rank = self.round.bf16(self.round.einsum("ngd,grd->ngr", out, wo_a)).reshape(len(out), -1)
        return self.fp8_linear(low_rank, prefix + "wo_b.weight")

    # Mixture of experts.

    def route(self, block: str, x: np.ndarray, token: int) -> tuple[np.ndarray, np.ndarray]:
        """x (hidden): the experts' ids and weights. The bias chooses, it does not weigh."""
        c, prefix = self.config, block + ".ffn.gate."
        scores = self.round.rounded(np.sqrt(softplus(self.f32_linear(x, prefix + "weight"))), 5)
        if prefix + "tid2eid" in self.weights:
            ids = self.weights[prefix + "tid2eid"][token]
        else:
            ids = self.choose(scores + self.weights[prefix + "bias"], c.num_experts_per_tok)
        return ids, self.round.rounded(c.routed_scaling_factor * scores[ids] / scores[ids].sum(), 4)

    def expert(self, prefix: str, x: np.ndarray, weight: float = 1.0) -> np.ndarray:
        """SwiGLU with clamped inputs, times the weight before w2 (transformers: after it)."""
        limit = self.config.swiglu_limit
        gate = np.minimum(self.fp8_linear(x, prefix + "w1.weight"), limit)
        up = np.clip(self.fp8_linear(x, prefix + "w3.weight"), -limit, limit)
        inner = self.round.rounded(weight * gate * sigmoid(gate) * up, 9)
        return self.fp8_linear(self.round.bf16(inner), prefix + "w2.weight")

    def experts(self, block: str, x: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """x (n, hidden). The sum is float32 in the reference, in ascending order of ids.

        An id that tid2eid gives twice counts twice, as in transformers. The published reference adds one of the two.
        """
        prefix = block + ".ffn."
        y = np.zeros_like(x)
        for i, token in enumerate(tokens):
            ids, weights = self.route(block, x[i], token)
            for slot in np.argsort(ids, kind="stable"):
                y[i] += self.expert(f"{prefix}experts.{ids[slot]}.", x[i], weights[slot])
            y[i] += self.expert(prefix + "shared_experts.", x[i])
        return self.round.bf16(self.round.rounded(y, self.config.num_experts_per_tok))

    # The whole.

    def block(self, block: str, h: np.ndarray, tokens: np.ndarray, attention) -> np.ndarray:
        """h (n, m, hidden) through one block; attention(x) is its first site."""
        x, post, comb = self.hc_pre(h, block + ".hc_attn")
        h = self.hc_post(attention(self.norm(x, block + ".attn_norm.weight")), h, post, comb)
        x, post, comb = self.hc_pre(h, block + ".hc_ffn")
        return self.hc_post(self.experts(block, self.norm(x, block + ".ffn_norm.weight"), tokens), h, post, comb)

    def causal_block(self, block: str, h: np.ndarray, tokens, positions: np.ndarray, state: LayerState) -> np.ndarray:
        attention = lambda x: self.attention(block, x, positions, state)
        return self.block(block, h, np.asarray(tokens), attention)

    def embed(self, tokens) -> np.ndarray:
        """(n, m, hidden): every stream starts as the embedding."""
        return np.repeat(self.weights["embed.weight"][np.asarray(tokens)][:, None, :], self.config.hc_mult, axis=1)

    def streams(self, tokens: list[int], state: State) -> np.ndarray:
        """The streams after every layer: (layers + 1, n, m, hidden), the first are the embeddings."""
        positions = state.rows + np.arange(len(tokens))
        all_h = [self.embed(tokens)]
        for layer in range(self.config.num_hidden_layers):
            all_h.append(self.causal_block(f"layers.{layer}", all_h[-1], tokens, positions, state.layers[layer]))
        state.rows += len(tokens)
        return np.array(all_h)

    def logits(self, h: np.ndarray, prefix: str = "") -> np.ndarray:
        """h (n, m, hidden): the streams after the last layer, or after a draft's last block: own norm, shared head."""
        return self.f32_linear(self.norm(self.hc_head(h, prefix), prefix + "norm.weight"), "head.weight")

    def forward(self, tokens: list[int], state: State | None = None) -> np.ndarray:
        """Logits (n, vocab) of tokens that follow what the state has seen."""
        return self.logits(self.streams(tokens, state or self.state())[-1])
