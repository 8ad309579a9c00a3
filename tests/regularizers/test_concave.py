"""Concave terms: functions of squared norms that add and scale."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.regularizers import (
    REGULARIZERS,
    SMKL,
    GroupLassoTerm,
    LogTerm,
    LpNorm,
    MFocussTerm,
    MKLTerm,
    TermSum,
)

ETA = np.array([0.5, 1.0, 2.0, 0.1, 3.0])


@pytest.fixture
def squares(rng: np.random.Generator) -> np.ndarray:
    return rng.gamma(1.0, size=(20, 5)) + 0.01


@pytest.mark.parametrize("term", [cls() for cls in REGULARIZERS.values() if not cls.convex], ids=repr)
def test_values_and_slopes_are_those_of_squared_norms(term, squares):
    for x in squares:
        np.testing.assert_allclose(term.weights(np.sqrt(x)), 1.0 / term.slopes(x))
        assert term.penalty(np.sqrt(x)) == pytest.approx(term.value(x))
    with pytest.raises(NotImplementedError, match="no conjugate"):
        term.conjugate(np.ones(5))
    with pytest.raises(NotImplementedError, match="price"):
        term.price(np.ones(5))


def test_sums_and_multiples(squares):
    log, lasso = LogTerm(), GroupLassoTerm()
    total = log + 3.0 * lasso + log
    assert isinstance(total, TermSum)
    assert len(total.terms) == 3
    for x in squares:
        assert total.value(x) == pytest.approx(2 * log.value(x) + 3 * lasso.value(x))
        assert (2.0 * total).value(x) == pytest.approx(2 * total.value(x))
        assert (4.0 * MKLTerm()).value(x) == pytest.approx(4 * MKLTerm().value(x))
        assert SMKL().value(x) == pytest.approx((log + lasso).value(x))


def test_special_cases(squares):
    for x in squares:
        n = np.sqrt(x)
        np.testing.assert_allclose(MKLTerm().weights(n), LpNorm(p=1).weights(n))
        assert MFocussTerm(p=1.0).value(x) == pytest.approx(GroupLassoTerm().value(x))


def test_select_keeps_the_strengths_of_some_kernels():
    part = (LogTerm(eta=ETA) + GroupLassoTerm()).select(np.array([1, 3]), 5)
    np.testing.assert_array_equal(part.terms[0].eta, ETA[[1, 3]])
    assert part.terms[1].eta == 1.0
    with pytest.raises(ValueError, match="eta has 5 entries for 3 kernels"):
        LogTerm(eta=ETA).select(np.array([0]), 3)


def test_power_out_of_range():
    for p in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="MFocussTerm: p="):
            MFocussTerm(p=p).value(np.ones(2))
