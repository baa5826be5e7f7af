"""Grading: how sure a count of right answers is, and whether one system is shown to be better than another."""
from __future__ import annotations

import operator

from scipy.stats import binomtest


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share of `successes` in `n`; ValueError unless 0 <= successes <= n and n >= 1."""
    successes, n = operator.index(successes), operator.index(n)
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials cannot be")
    low, high = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    return float(low), float(high)


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact two-sided p of McNemar's test, from how many questions only A and only B got right.

    Questions that both or neither got right say nothing; without any other p is 1. ValueError for a count below 0.
    """
    only_a, only_b = operator.index(only_a), operator.index(only_b)
    if min(only_a, only_b) < 0:
        raise ValueError(f"{only_a} and {only_b} are no counts")
    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
