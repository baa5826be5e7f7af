"""Intervals and the paired test, against their formulas and against the counts that cannot be."""

from __future__ import annotations

from math import comb, sqrt

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from lib.grading import mcnemar, wilson

Z = 1.959963984540054


def given(*strategies):
    """Hypothesis's own, with the same examples each time and no limit of time for one."""
    return lambda test: settings(deadline=None, derandomize=True, database=None)(hypothesis.given(*strategies)(test))


def test_by_hand():
    # 4 of 8: centre (4 + z²/2) / (8 + z²) = 0.5, half width z * sqrt(8/4 + z²/4) / (8 + z²) = 0.2848
    assert wilson(4, 8) == pytest.approx((0.2152, 0.7848), abs=1e-4)
    assert mcnemar(6, 0) == 2 / 2**6 and mcnemar(8, 1) == 2 * (1 + 9) / 2**9


@given(st.integers(1, 300), st.data())
def test_wilson_is_its_formula(n, data):
    successes = data.draw(st.integers(0, n))
    low, high = wilson(successes, n)
    centre = (successes + Z**2 / 2) / (n + Z**2)
    half = Z * sqrt(successes * (n - successes) / n + Z**2 / 4) / (n + Z**2)
    assert (low, high) == pytest.approx((centre - half, centre + half), abs=1e-9)
    assert 0 <= low <= successes / n <= high <= 1
    assert wilson(n - successes, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_its_formula(a, b):
    tail = sum(comb(a + b, count) for count in range(min(a, b) + 1)) / 2 ** (a + b)
    assert mcnemar(a, b) == pytest.approx(min(1, 2 * tail), abs=1e-9) == mcnemar(b, a)


@pytest.mark.parametrize("successes, n", [(-1, 5), (6, 5), (0, 0), (1, 0), (0, -1)])
def test_shares_that_cannot_be(successes, n):
    with pytest.raises(ValueError, match="cannot be"):
        wilson(successes, n)


@pytest.mark.parametrize("a, b", [(-1, 0), (0, -1), (-2, -2)])
def test_counts_that_cannot_be(a, b):
    with pytest.raises(ValueError, match="no counts"):
        mcnemar(a, b)


@pytest.mark.parametrize("value", [0.5, 3.0, "3", None])
def test_counts_are_whole_numbers(value):
    for call in (lambda: wilson(value, 5), lambda: wilson(1, value), lambda: mcnemar(value, 1)):
        with pytest.raises(TypeError):
            call()


def test_plain_numbers_come_back():
    assert {type(value) for value in (*wilson(np.int64(3), 10), mcnemar(np.int64(2), 1))} == {float}
    assert wilson(0, 1)[0] == 0.0 and wilson(1, 1)[1] == 1.0
