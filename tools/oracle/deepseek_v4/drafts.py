"""The drafts of DeepSeek V4 in float64 numpy: the plain MTP block and DSpark, both under mtp.* in the checkpoint.

Written from the published reference (MTPBlock of the first release, DSparkBlock of the later one); transformers has
neither. check.py holds them against reference.py where they overlap.
Roundings are those of reference.py's modes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reference import LayerState, Model, append, best


class Mtp:
    """One block after the target. Row i joins the target's streams of row i and the token after it, at position i.

    The reference file takes whatever it is given; that pairing is V3's and vLLM's (which also zeroes the embedding of
    row 0; this does not).
    """

    def __init__(self, model: Model):
        self.model, self.state, self.rows = model, LayerState(), 0

    def forward(self, h: np.ndarray, next_tokens: list[int]) -> np.ndarray:
        """h (n, m, hidden): the target's streams after its last layer, before hc_head; logits (n, vocab)."""
        return self.model.logits(self.streams(h, next_tokens), "mtp.0.")

    def draft(self, h: np.ndarray, token: int, count: int) -> list[int]:
        """h (m, hidden): the target's streams of the next row, token: the one behind it. Greedy drafts of the `count`
        after that; beyond the first, the block's own streams take the target's place. Their rows stay in the state."""
        tokens, h = [], h[None]
        for _ in range(count):
            h = self.streams(h, [token])
            token = int(best(self.model.logits(h, "mtp.0.")[0], 1)[0])
            tokens.append(token)
        return tokens

    def streams(self, h: np.ndarray, next_tokens: list[int]) -> np.ndarray:
        """The block's own streams, (n, m, hidden)."""
        m, rows = self.model, self.rows + np.arange(len(h))
        embedding = m.norm(m.weights["embed.weight"][np.asarray(next_tokens)], "mtp.0.enorm.weight")
        x = m.fp8_linear(embedding, "mtp.0.e_proj.weight")[:, None, :]
        x = m.round.bf16(x + m.fp8_linear(m.norm(h, "mtp.0.hnorm.weight"), "mtp.0.h_proj.weight"))
        self.rows += len(h)
        return m.causal_block("mtp.0", x, next_tokens, rows, self.state)


def taps(model: Model, streams: np.ndarray, layers: list[int]) -> np.ndarray:
    """streams (layers + 1, n, m, hidden) as Model.streams gives them: the mean of those after each layer, joined."""
    return np.concatenate([model.round.bf16(streams[layer + 1].mean(axis=1)) for layer in layers], axis=-1)


@dataclass
class Draft:
    anchor: int
    tokens: list[int]
    logits: np.ndarray  # (B, vocab), with the Markov head's part
    confidence: np.ndarray  # (B): logits of being accepted


@dataclass
class DSpark:
    """Stages mtp.0.. that read the target's taps of verified rows and draft a block after them."""

    model: Model
    stages: int
    noise: int  # token id of the places to be drafted
    kv: dict[str, np.ndarray | None] = field(default_factory=dict)  # of every verified row, by stage
    rows: int = 0

    def verified(self, tap: np.ndarray) -> None:
        """tap (n, layers * hidden) of the next n verified rows: all that a stage keeps of the target."""
        m, positions = self.model, self.rows + np.arange(len(tap))
        x = m.norm(m.fp8_linear(tap, "mtp.0.main_proj.weight"), "mtp.0.main_norm.weight")
        for stage in self.names():
            self.kv[stage] = append(self.kv.get(stage), m.rows(stage + ".attn.", x, positions, 0))
        self.rows += len(tap)

    def names(self) -> list[str]:
        return [f"mtp.{stage}" for stage in range(self.stages)]

    def attention(self, stage: str, x: np.ndarray) -> np.ndarray:
        """x (B, hidden) at the positions after the verified rows. Each row sees the last rows of the window's length
        and the whole block, in both directions; the block's rows are not kept."""
        m, prefix = self.model, stage + ".attn."
        positions, window = self.rows + np.arange(len(x)), m.config.sliding_window
        q, _ = m.queries(prefix, x, positions, 0)
        before = self.kv[stage][-window:]
        keys = np.concatenate([before, m.rows(prefix, x, positions, 0)])
        slots = np.concatenate([np.arange(len(before)), window + np.arange(len(x))])
        out = np.array([m.attend(row, keys, slots, m.weights[prefix + "attn_sink"]) for row in q])
        return m.output(prefix, m.rotate(out, positions, 0, inverse=True))

    def draft(self, anchor: int, count: int) -> Draft:
        """anchor: the target's token for the row after the verified ones; greedy drafts of the `count` after it."""
        m, last = self.model, f"mtp.{self.stages - 1}."
        tokens = np.array([anchor] + [self.noise] * (count - 1))
        h = m.embed(tokens)
        for stage in self.names():
            h = m.block(stage, h, tokens, lambda x, stage=stage: self.attention(stage, x))
        x = m.hc_head(h, last)
        base = m.f32_linear(m.norm(x, last + "norm.weight"), "head.weight")
        result = Draft(anchor, [], np.empty_like(base), np.empty(count))
        previous = anchor
        for i in range(count):
            markov = m.weights[last + "markov_head.markov_w1.weight"][previous]
            result.logits[i] = base[i] + m.f32_linear(markov, last + "markov_head.markov_w2.weight")
            joined = np.concatenate([x[i], markov])
            result.confidence[i] = m.f32_linear(joined, last + "confidence_head.proj.weight")[0]
            previous = int(best(result.logits[i], 1)[0])
            result.tokens.append(previous)
        return result
