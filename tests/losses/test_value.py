"""Value and derivatives of every registered loss."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave.losses import LOSSES, Huber, Loss

STEP = 1e-5


def test_values_are_non_negative_and_elementwise(loss, y, rng):
    f = rng.normal(scale=3.0, size=y.shape)
    values = loss.value(y, f)
    assert values.shape == y.shape
    assert (values >= 0).all()
    np.testing.assert_allclose(loss.value(y[:, None], f[:, None])[:, 0], values, rtol=1e-12)


def test_convex_between_any_two_points(loss, y, rng):
    f, g = rng.normal(scale=3.0, size=(2, len(y)))
    chord = 0.5 * (loss.value(y, f) + loss.value(y, g))
    assert (loss.value(y, 0.5 * (f + g)) <= chord + 1e-12).all()


def test_gradient_is_a_subgradient_everywhere(loss, y, rng):
    f, g = rng.normal(scale=3.0, size=(2, len(y)))
    points = [f, *loss.kinks(y)] if hasattr(loss, "kinks") else [f]
    for point in points:
        tangent = loss.value(y, point) + loss.gradient(y, point) * (g - point)
        assert (loss.value(y, g) >= tangent - 1e-12).all()


def test_gradient_is_the_difference_quotient(loss, y, away_from_kinks):
    f = away_from_kinks
    quotient = (loss.value(y, f + STEP) - loss.value(y, f - STEP)) / (2 * STEP)
    np.testing.assert_allclose(loss.gradient(y, f), quotient, atol=1e-5)


def test_hessian_is_the_difference_quotient_of_the_gradient(loss, y, rng):
    if not hasattr(loss, "hessian"):
        pytest.skip(f"{loss} has no hessian")
    f = rng.normal(scale=2.0, size=y.shape)
    around = np.array([loss.hessian(y, f + shift) for shift in (-2 * STEP, 0.0, 2 * STEP)])
    smooth = np.ptp(around, axis=0) < 1e-3  # no jump of the hessian nearby
    quotient = (loss.gradient(y, f + STEP) - loss.gradient(y, f - STEP)) / (2 * STEP)
    assert smooth.mean() > 0.99
    np.testing.assert_allclose(loss.hessian(y, f)[smooth], quotient[smooth], atol=1e-5)
    assert (loss.hessian(y, f) >= 0).all()


def test_the_gradient_jumps_at_the_kinks_and_nowhere_else(loss):
    targets = np.array([1.0, -1.0] if loss.task == "classification" else [1.0, 0.3])
    f = np.linspace(-4.0, 4.0, 8001)
    kinks = loss.kinks(targets) if hasattr(loss, "kinks") else []
    for i, target in enumerate(targets):
        y = np.full_like(f, target)
        jumps = np.abs(loss.gradient(y, f + STEP) - loss.gradient(y, f - STEP)) > 0.1
        near = np.zeros_like(jumps)
        for kink in kinks:
            point = kink[i : i + 1]
            below, above = (loss.gradient(targets[i : i + 1], point + shift) for shift in (-STEP, STEP))
            assert above - below > 0.1
            near |= np.abs(f - point) <= 2 * STEP
        assert not (jumps & ~near).any()


@pytest.mark.parametrize("size", [1e3, 1e8])
def test_large_predictions_stay_finite(loss, y, size):
    for f in (np.full_like(y, size), np.full_like(y, -size)):
        assert np.isfinite(loss.value(y, f)).all()
        assert np.isfinite(loss.gradient(y, f)).all()
        if hasattr(loss, "hessian"):
            assert np.isfinite(loss.hessian(y, f)).all()


def test_quadratic_means_half_the_squared_residual(loss, y, rng):
    f = rng.normal(scale=2.0, size=y.shape)
    equal = np.allclose(loss.value(y, f), 0.5 * (y - f) ** 2)
    assert equal == bool(getattr(loss, "quadratic", False))


def test_probability_is_the_likelihood_of_the_loss(loss, rng):
    if not hasattr(loss, "probability"):
        pytest.skip(f"{loss} is no likelihood")
    f = rng.uniform(-30.0, 30.0, size=200)
    p, one = loss.probability(f), np.ones_like(f)
    assert ((p > 0) & (p < 1)).all()
    assert (np.diff(p[np.argsort(f)]) >= 0).all()
    np.testing.assert_allclose(loss.value(one, f), -np.log(p), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(loss.value(-one, f), -np.log(loss.probability(-f)), rtol=1e-9, atol=1e-12)
    far = loss.probability(np.array([-1e4, 1e4]))
    np.testing.assert_allclose(far, [0.0, 1.0], atol=1e-12)


def test_clone_params_and_repr(loss):
    copy = clone(loss)
    assert copy is not loss
    assert copy.get_params() == loss.get_params()
    assert repr(copy) == repr(loss)
    assert repr(loss).startswith(type(loss).__name__ + "(")


def test_changed_parameters_show():
    assert repr(Huber(delta=0.25)) == "Huber(delta=0.25)"
    assert clone(Huber()).set_params(delta=2.0).delta == 2.0


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_registry_gives_the_default_part(name):
    part = LOSSES.resolve(name, Loss)
    assert type(part) is LOSSES[name]
    assert part.name == name
    assert part.task in {"classification", "regression", "one_class"}
    assert LOSSES.resolve(part, Loss) is part


def test_registry_names_the_choices():
    with pytest.raises(ValueError, match="loss='hing' is not a loss: pass one of 'eps_insensitive', 'hinge'"):
        LOSSES.resolve("hing", Loss)
