"""Engines that got one thing wrong. A golden that one of them passes proves nothing about that thing.

MATHEMATICS are compared in mode f32 by their logits, ROUNDINGS in mode checkpoint by the streams after each layer.
Each is a function (config, weights) -> (class, config, weights), or None where the model lacks what it gets wrong.
"""

from __future__ import annotations

import numpy as np

import formats
import reference


def _model(**methods):
    """A wrong engine by its methods."""
    wrong = type("Wrong", (reference.Model,), methods)
    return lambda config, weights: (wrong, config, weights)


def _config(change):
    return lambda config, weights: (reference.Model, {**config, **change(config)}, weights)


def _weights(fits, change):
    """change(value) for every tensor whose name fits."""

    def apply(config, weights):
        wrong = {name: change(value) if fits(name) else value for name, value in weights.items()}
        return reference.Model, config, wrong

    return apply


def _if(applies, mutant):
    return lambda config, weights: mutant(config, weights) if applies(config) else None


def _has(ratios):
    return lambda config: any(ratios(ratio) for ratio in config["compress_ratios"])


COMPRESSED, FINE, COARSE = _has(lambda r: r > 0), _has(lambda r: r == 4), _has(lambda r: r not in (0, 4))


def _chooses(config):
    return FINE(config) and config["index_topk"] < 8


def _without_inverse(self, x, positions, ratio, inverse=False):
    return x if inverse else reference.Model.rotate(self, x, positions, ratio)


def _halves(self, x, positions, ratio, inverse=False):
    """Rotates the pairs (i, i + R / 2)."""
    size = self.config.qk_rope_head_dim
    order = np.arange(size).reshape(2, -1).T.reshape(-1)
    x = np.concatenate([x[..., :-size], x[..., -size:][..., order]], axis=-1)
    y = reference.Model.rotate(self, x, positions, ratio, inverse)
    return np.concatenate([y[..., :-size], y[..., -size:][..., np.argsort(order)]], axis=-1)


def _transposed(self, out, h, post, comb):
    return reference.Model.hc_post(self, out, h, post, comb.swapaxes(1, 2))


def _half_post(self, h, site):
    x, post, comb = reference.Model.hc_pre(self, h, site)
    return x, post / 2, comb


def _bias_weighs(self, block, x, token):
    ids, _ = reference.Model.route(self, block, x, token)
    prefix = block + ".ffn.gate."
    scores = np.sqrt(reference.softplus(x @ self.weights[prefix + "weight"].T))
    scores = scores + self.weights.get(prefix + "bias", 0.0)
    return ids, self.config.routed_scaling_factor * scores[ids] / scores[ids].sum()


def _shared_unclamped(self, prefix, x, weight=1.0):
    if "shared" not in prefix:
        return reference.Model.expert(self, prefix, x, weight)
    gate, up = self.fp8_linear(x, prefix + "w1.weight"), self.fp8_linear(x, prefix + "w3.weight")
    return self.fp8_linear(gate * reference.sigmoid(gate) * up, prefix + "w2.weight")


def _gate_clamped_below(self, prefix, x, weight=1.0):
    limit = self.config.swiglu_limit
    gate = np.clip(self.fp8_linear(x, prefix + "w1.weight"), -limit, limit)
    up = np.clip(self.fp8_linear(x, prefix + "w3.weight"), -limit, limit)
    return self.fp8_linear(weight * gate * reference.sigmoid(gate) * up, prefix + "w2.weight")


def _no_relu(self, q, weight, keys):
    return (q @ keys.T * weight[:, None]).sum(0)


def _main_compressor(name):
    return ".attn.compressor." in name and name.endswith((".wkv.weight", ".wgate.weight", ".ape"))


def _swap_halves(value):
    """Of rows of wkv and wgate, of columns of ape; ape is the one with few rows."""
    return np.roll(value, value.shape[1] // 2, axis=1) if len(value) == 4 else np.roll(value, len(value) // 2, axis=0)


def _swapped_halves(config, weights):
    fine = [f"layers.{i}." for i, ratio in enumerate(config["compress_ratios"]) if ratio == 4]
    return _weights(lambda n: n.startswith(tuple(fine)) and _main_compressor(n), _swap_halves)(config, weights)


MATHEMATICS = {
    "comb transposed": _model(hc_post=_transposed),
    "post without its factor 2": _model(hc_pre=_half_post),
    "one Sinkhorn iteration fewer": _if(
        lambda c: c["hc_sinkhorn_iters"] < 5, _config(lambda c: {"hc_sinkhorn_iters": c["hc_sinkhorn_iters"] - 1})
    ),
    "window one row longer": _config(lambda c: {"sliding_window": c["sliding_window"] + 1}),
    "no sink": _weights(lambda name: name.endswith("attn_sink"), lambda value: value - 1e9),
    "queries not normed by head": _model(unit_heads=lambda self, q: q),
    "no inverse RoPE": _model(rotate=_without_inverse),
    "halves rotated, not pairs": _model(rotate=_halves),
    "no YaRN": _if(
        lambda c: COMPRESSED(c) and c["rope_scaling"], _config(lambda c: {"rope_scaling": None})
    ),
    "one base for all layers": _if(COMPRESSED, _config(lambda c: {"compress_rope_theta": c["rope_theta"]})),
    "entry visible one row late": _if(COMPRESSED, _model(visible=lambda self, t, ratio: t // ratio)),
    "entry rotated to its last row": _if(
        COMPRESSED, _model(entry_position=lambda self, entry, ratio: ratio * entry + ratio - 1)
    ),
    "ape by (t + 1) mod r": _if(
        COMPRESSED, _weights(lambda name: name.endswith(".compressor.ape"), lambda value: np.roll(value, -1, axis=0))
    ),
    "halves of a fine row swapped": _if(FINE, _swapped_halves),
    "first entries, not the best": _if(_chooses, _model(index_scores=lambda self, q, w, keys: np.zeros(len(keys)))),
    "indexer without relu": _if(_chooses, _model(index_scores=_no_relu)),
    "bias weighs": _if(lambda c: c["num_hash_layers"] < c["num_hidden_layers"], _model(route=_bias_weighs)),
    "routed experts not scaled": _config(lambda c: {"routed_scaling_factor": 1.0}),
    "shared expert unclamped": _model(expert=_shared_unclamped),
    "gate clamped below too": _model(expert=_gate_clamped_below),
}  # fmt: skip


def _rounding(**methods):
    """A wrong engine by its roundings."""
    wrong = type("WrongRounding", (reference.Published,), methods)

    def build(self, config, weights, mode):
        reference.Model.__init__(self, config, weights, mode)
        self.round = wrong()

    return _model(__init__=build)


def _weighed_after(self, prefix, x, weight=1.0):
    return self.round.bf16(weight * reference.Model.expert(self, prefix, x))


def _unit_heads_at_once(self, q):
    scale = 1.0 / np.sqrt(self.mean_square(q) + self.config.rms_norm_eps)
    return self.round.bf16(q * scale)


# The size of act_quant's groups is not among them: with scales that are powers of two it only moves values below 2^-14
# of their group's largest, and random rows have none.
ROUNDINGS = {
    "inputs of FP8 linears in bf16": _rounding(a8=lambda self, x: x),
    "cached rows in bf16": _rounding(kv=lambda self, x: x),
    "indexer in bf16": _if(_chooses, _rounding(index=lambda self, x: x)),
    "indexer without Hadamard": _if(_chooses, _rounding(index=lambda self, x: formats.fp4_sim(x))),
    "expert weight after w2": _model(expert=_weighed_after),
    "query norm rounded once": _model(unit_heads=_unit_heads_at_once),
}
