"""What the benchmarks in this folder say about medians of few values."""

from __future__ import annotations

import math


def median_interval(values: list[float]) -> tuple[float, float, bool]:
    """Order statistics that enclose the median with at least 95 %; the range, and False, where n is too small."""
    ordered, n = sorted(values), len(values)
    rank = 0
    below = 0.0
    for k in range(n // 2):
        below += math.comb(n, k) / 2.0**n
        if 2.0 * below > 0.05:
            break
        rank = k + 1
    if rank == 0:
        return ordered[0], ordered[-1], False
    return ordered[rank - 1], ordered[n - rank], True
