"""The conjugate of every registered loss, from its definition V*(y, v) = sup_f v f - V(y, f)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.losses import LOSSES

GRID = np.linspace(-40.0, 40.0, 40_001)


def test_conjugate_is_the_largest_v_f_minus_value(loss, y, inside):
    v = -inside[:60]
    targets = y[:60, None]
    gains = v[:, None] * GRID - loss.value(np.broadcast_to(targets, (60, len(GRID))), GRID)
    supremum = gains.max(axis=1)
    conjugate = loss.conjugate(y[:60], v)
    assert (conjugate >= supremum - 1e-12).all()
    np.testing.assert_allclose(conjugate, supremum, atol=5e-3)


def test_fenchel_young_inequality(loss, y, inside, rng):
    f = rng.normal(scale=3.0, size=y.shape)
    assert (loss.value(y, f) + loss.conjugate(y, -inside) >= -inside * f - 1e-12).all()


def test_fenchel_young_equality_at_the_gradient(loss, y, rng):
    f = rng.normal(scale=3.0, size=y.shape)
    v = loss.gradient(y, f)
    np.testing.assert_allclose(loss.value(y, f) + loss.conjugate(y, v), v * f, atol=1e-10)


@pytest.mark.parametrize("name", sorted(LOSSES))
@given(
    f=st.floats(-50.0, 50.0), target=st.floats(-5.0, 5.0), share=st.floats(0.0, 1.0), cut=st.floats(0.1, 50.0)
)
def test_fenchel_young_everywhere(name, f, target, share, cut):
    loss = LOSSES[name]()
    y = np.array([target if loss.task == "regression" else np.copysign(1.0, target)])
    lower, upper = (np.clip(bound, -cut, cut) for bound in loss.dual_box(y))
    v, point = -(lower + share * (upper - lower)), np.array([f])
    slack = loss.value(y, point) + loss.conjugate(y, v) - v * point
    assert slack >= -1e-9 * (1.0 + abs(f) + cut**2)


def test_domain_is_the_dual_box(loss, y):
    for bound, outwards in zip(loss.dual_box(y), (-1.0, 1.0), strict=True):
        finite = np.isfinite(bound)
        edge, targets = bound[finite], y[finite]
        assert np.isfinite(loss.conjugate(targets, -edge)).all()
        for distance in (1e-6, 1.0, 1e3):
            assert np.isposinf(loss.conjugate(targets, -(edge + outwards * distance))).all()
        assert (np.sign(bound[~finite]) == outwards).all()
        far = np.full((~finite).sum(), outwards * 1e4)
        assert np.isfinite(loss.conjugate(y[~finite], -far)).all()


def test_outside_the_domain_the_supremum_is_unbounded(loss, y):
    for bound, outwards in zip(loss.dual_box(y), (-1.0, 1.0), strict=True):
        finite = np.isfinite(bound)
        v = -(bound[finite] + 0.5 * outwards)
        reached = [v * f - loss.value(y[finite], np.full_like(v, f)) for f in (-1e6, 1e6)]
        assert (np.maximum(*reached) > 1e5).all()


def test_zero_is_in_the_dual_box(loss, y):
    lower, upper = loss.dual_box(y)
    assert lower.shape == upper.shape == y.shape
    assert (lower <= 0).all()
    assert (upper >= 0).all()


def test_dual_curvature_is_the_second_difference(loss, y, inside):
    step = 1e-4
    a = np.where(np.abs(inside) < 0.02, 0.5 * np.sign(inside) * 0.1, inside)  # clear of a kink at zero
    a = np.where((a > loss.dual_box(y)[0] + 0.01) & (a < loss.dual_box(y)[1] - 0.01), a, inside)
    three = [loss.conjugate(y, -(a + shift)) for shift in (-step, 0.0, step)]
    second = (three[0] - 2.0 * three[1] + three[2]) / step**2
    np.testing.assert_allclose(loss.dual_curvature(y, a), second, rtol=1e-3, atol=1e-5)


def test_dual_curvature_is_infinite_at_the_bounds(loss, y):
    for bound in loss.dual_box(y):
        finite = np.isfinite(bound)
        assert np.isposinf(loss.dual_curvature(y[finite], bound[finite])).all()


def test_dual_curvature_next_to_the_bounds_is_positive(loss, y):
    for bound, inwards in zip(loss.dual_box(y), (1.0, -1.0), strict=True):
        finite = np.isfinite(bound)
        for distance in (1e-310, 1e-100, 1e-12):
            curvature = loss.dual_curvature(y[finite], bound[finite] + inwards * distance)
            assert (curvature >= 0).all()


def test_dual_curvature_inverts_the_hessian(loss, y, rng):
    """V*'' at v = V'(f) is 1 / V''(f) where that is not zero."""
    if not hasattr(loss, "hessian"):
        pytest.skip(f"{loss} has no hessian")
    f = rng.normal(scale=2.0, size=y.shape)
    hessian = loss.hessian(y, f)
    curved = hessian > 1e-6
    curvature = loss.dual_curvature(y, -loss.gradient(y, f))
    np.testing.assert_allclose(curvature[curved], 1.0 / hessian[curved], rtol=1e-6)


def test_linear_dual_is_minus_the_conjugate_on_the_box(loss, y, inside):
    if not hasattr(loss, "linear_dual"):
        pytest.skip(f"{loss} has a curved conjugate")
    linear, kink = loss.linear_dual(y)
    for a in (inside, *loss.dual_box(y), np.zeros_like(y)):
        np.testing.assert_allclose(-loss.conjugate(y, -a), linear * a - kink * np.abs(a), atol=1e-12)
    at_kink = loss.dual_curvature(y, np.zeros_like(y))
    assert kink == 0 or np.isposinf(at_kink).all()


def test_rounding_does_not_leave_the_domain(loss, y):
    lower, upper = loss.dual_box(y)
    for bound, outwards in ((lower, -1.0), (upper, 1.0)):
        edge = np.where(np.isfinite(bound), bound, outwards)
        assert np.isfinite(loss.conjugate(y, -(edge + outwards * 1e-13))).all()
