"""LpNorm: the closed forms of the table, scales, symmetry, and the ends of the range of p."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.regularizers import BlockNorm, LpNorm, Regularizer, Uniform

ORDERS = st.one_of(st.sampled_from([1.0, 32 / 31, np.inf]), st.floats(1.0, 100.0))
DECADES = st.lists(st.floats(-290.0, 290.0), min_size=1, max_size=6)
METHODS = ["price", "penalty", "weights", "conjugate"]


def test_closed_forms(lp, norms):
    p = lp.p
    q = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    for n in norms:
        assert lp.penalty(n) == pytest.approx(0.5 * np.linalg.norm(n, q) ** 2)
        dual = 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)
        assert lp.conjugate(n) == pytest.approx(0.5 * np.linalg.norm(n**2, dual))
        assert np.linalg.norm(lp.weights(n), p) == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["constraint", "penalty"])
def test_slopes_of_the_weights_are_their_differences(form, rng):
    n, costs = np.exp(rng.normal(size=4)), rng.uniform(0.5, 2.0, size=4)
    for rule in (LpNorm(4 / 3, form, costs), LpNorm(5.0, form), LpNorm(np.inf), BlockNorm(1.6, form)):
        np.testing.assert_allclose(rule.log_slopes(n), Regularizer.log_slopes(rule, n), atol=1e-4)


def test_homogeneity(lp, norms):
    for scale in (1e-6, 3.0, 1e6):
        for n in norms[:5]:
            assert lp.penalty(scale * n) == pytest.approx(scale**2 * lp.penalty(n), rel=1e-12)
            assert lp.conjugate(scale * n) == pytest.approx(scale**2 * lp.conjugate(n), rel=1e-12)
            np.testing.assert_allclose(lp.weights(scale * n), lp.weights(n), rtol=1e-9)


def test_permuting_kernels_permutes_weights(lp, norms, rng):
    for n in norms[:5]:
        order = rng.permutation(len(n))
        np.testing.assert_allclose(lp.weights(n[order]), lp.weights(n)[order], rtol=1e-12)
        assert lp.penalty(n[order]) == pytest.approx(lp.penalty(n), rel=1e-12)
        assert lp.conjugate(n[order]) == pytest.approx(lp.conjugate(n), rel=1e-12)


def test_a_kernel_without_norm_gets_no_weight_unless_uniform(lp):
    d = lp.weights(np.array([1.0, 0.0, 2.0]))
    assert d[1] == (1.0 if np.isinf(lp.p) else 0.0)


def test_infinite_p_is_uniform(norms):
    lp, uniform = LpNorm(p=np.inf), Uniform()
    for n in norms:
        np.testing.assert_array_equal(lp.weights(n), uniform.weights(n))
        assert lp.penalty(n) == pytest.approx(uniform.penalty(n), rel=1e-12)
        assert lp.conjugate(n) == pytest.approx(uniform.conjugate(n), rel=1e-12)
        for d in (0.5 * n / n.max(), n / n.max(), 2.0 * n / n.max()):
            assert lp.price(d) == uniform.price(d)


def test_large_p_approaches_uniform(norms):
    for n in norms[:5]:
        np.testing.assert_allclose(LpNorm(p=1e6).weights(n), 1.0, atol=1e-4)


def test_only_p_one_is_sparse(lp):
    assert lp.sparse == (lp.p == 1)


def test_whole_numbers_are_fine(norms):
    for p in (1, 2):
        np.testing.assert_array_equal(LpNorm(p=p).weights(norms[0]), LpNorm(p=float(p)).weights(norms[0]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("p", [0.5, 0, -1.0, np.nan])
def test_p_below_one_is_refused(method, p):
    with pytest.raises(ValueError, match=r"LpNorm: p=.*"):
        getattr(LpNorm(p=p), method)(np.ones(3))


@given(p=ORDERS, decades=DECADES)
def test_weights_are_feasible_at_any_scale(p, decades):
    lp = LpNorm(p=p)
    d = lp.weights(10.0 ** np.array(decades))
    assert np.isfinite(d).all()
    assert ((d >= 0) & (d <= 1 + 1e-9)).all()
    assert lp.price(d) == 0


@given(p=ORDERS, decades=DECADES, shift=st.floats(-140.0, 140.0))
def test_values_do_not_overflow_before_their_result_does(p, decades, shift):
    lp = LpNorm(p=p)
    n = 10.0 ** (np.array(decades) / 40.0)
    factor = 10.0**shift
    assert lp.penalty(factor * n) == pytest.approx(factor**2 * lp.penalty(n), rel=1e-9)
    assert lp.conjugate(factor * n) == pytest.approx(factor**2 * lp.conjugate(n), rel=1e-9)


@given(p=ORDERS, decades=DECADES, others=DECADES)
def test_fenchel_young_over_many_decades(p, decades, others):
    lp, size = LpNorm(p=p), min(len(decades), len(others))
    n, r = (10.0 ** (np.array(x[:size]) / 6.0) for x in (decades, others))
    assert (lp.penalty(n) + lp.conjugate(r)) * (1 + 1e-9) >= n @ r
    d = lp.weights(n)
    pair = n / np.where(d > 0, d, 1.0)
    if (d > 0).all():
        assert lp.penalty(n) + lp.conjugate(pair) == pytest.approx(n @ pair, rel=1e-6)
