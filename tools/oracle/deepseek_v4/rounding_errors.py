"""What the float32 arithmetic of an engine adds to the reference: errors drawn after every operation.

The sizes are those of tools/oracle/llama_reference.py, derived from the unit roundoff u = 2^-24 and the operands:
  one rounding            uniform in +-u|y|, a standard deviation of u|y| / sqrt(3); n of them sqrt(n / 3) u|y|
  dot product of length K u sqrt((K + 1)(Q / 6 + y^2 / 3) / 3) with Q the sum of the squared terms, in any order
  exp                     the rounding of its argument x acts as u|x|, the polynomial is good to two units
A result that is a float32 value has no error: products of bf16 values and most sums of e4m3 products are exact.
In mode checkpoint the published roundings follow these errors: a value near a tie goes to the other side, as in an
engine that sums in another order.
"""

from __future__ import annotations

import math

import numpy as np

import formats
import reference

U = 2.0**-24


class Draws:
    """Puts in front of Exact or Published."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)

    def add(self, y, deviation):
        if np.iscomplexobj(y):
            return self.add(y.real, deviation) + 1j * self.add(y.imag, deviation)
        error = deviation * self.random.standard_normal(np.shape(y))
        return np.where(y == formats.f32(y), y, y + error)

    def products(self, y, squares, length):
        return self.add(y, U * np.sqrt((length + 1) * (squares / 6 + y * y / 3) / 3))

    def dot(self, x, w):
        return self.products(x @ w.T, (x * x) @ (w * w).T, w.shape[1])

    def einsum(self, subscripts, a, b):
        inputs, output = subscripts.split("->")
        first, second = inputs.split(",")
        summed = (set(first) & set(second)) - set(output)
        length = math.prod(a.shape[first.index(letter)] for letter in summed)
        return self.products(np.einsum(subscripts, a, b), np.einsum(subscripts, a * a, b * b), length)

    def exp(self, x):
        y = np.exp(x)
        return self.add(y, y * U * np.sqrt((x * x + 4.0) / 3))

    def rounded(self, x, count):
        return self.add(x, math.sqrt(count / 3) * U * np.abs(x))


class ExactDraws(Draws, reference.Exact):
    pass


class PublishedDraws(Draws, reference.Published):
    pass


KINDS = {"f32": ExactDraws, "checkpoint": PublishedDraws}


def responses(config: dict, weights: dict, mode: str, tokens: list[int], trials: int) -> np.ndarray:
    """(trials, n, vocab): logits with errors minus logits without."""
    model = reference.Model(config, weights, mode)
    plain = model.forward(tokens)
    rows = []
    for trial in range(trials):
        model.round = KINDS[mode](1000 + trial)
        rows.append(model.forward(tokens) - plain)
    return np.array(rows)
