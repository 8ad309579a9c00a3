"""Concave terms: the tangent majorises and touches, weights are its inverse slopes, terms add and scale."""

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
TERMS = [
    *[cls() for cls in REGULARIZERS.values() if not cls.convex],
    MFocussTerm(p=0.2),
    MFocussTerm(p=1.0),
    LogTerm(eta=ETA, eps=0.1),
    MKLTerm(eta=ETA),
    LogTerm() + 2.0 * GroupLassoTerm(eta=ETA) + MFocussTerm(),
]
each_term = pytest.mark.parametrize("term", TERMS, ids=repr)


@pytest.fixture
def squares(rng: np.random.Generator) -> np.ndarray:
    return rng.gamma(1.0, size=(20, 5)) + 0.01


@each_term
def test_slopes_are_twice_the_derivative(term, squares):
    step = 1e-6
    for x in squares:
        shifts = step * np.eye(len(x))
        slope = [(term.value(x + e) - term.value(x - e)) / step for e in shifts]
        np.testing.assert_allclose(term.slopes(x), slope, rtol=1e-5)


@each_term
def test_tangent_majorises_and_touches(term, squares):
    for x0, x in zip(squares, squares[::-1], strict=True):
        tangent = term.value(x0) + 0.5 * float(term.slopes(x0) @ (x - x0))
        assert term.value(x) <= tangent + 1e-10 * (1.0 + abs(tangent))


@each_term
def test_weights_are_inverse_slopes(term, squares):
    for x in squares:
        np.testing.assert_allclose(term.weights(np.sqrt(x)), 1.0 / term.slopes(x))
        assert term.penalty(np.sqrt(x)) == pytest.approx(term.value(x))


@each_term
def test_zero_norms_raise_no_warning(term):
    weights = term.weights(np.zeros(5))
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()


@each_term
def test_no_conjugate_and_no_price(term):
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
