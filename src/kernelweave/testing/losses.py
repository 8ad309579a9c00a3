"""What every loss promises, from the definition V*(y, v) = sup_f v f - V(y, f)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone

from .._typing import FloatArray
from ..losses import JointLoss, Loss
from ._contract import Contract, draws, expect, expect_clone, labels_like, needs

contract = Contract()
joint_contract = Contract()
coupled_contract = Contract()

COUNT = 400  # random points of a property
STEP = 1e-5  # of difference quotients


def check_loss(loss: Loss, y: Any = None) -> None:
    """Check a loss: value, derivatives, conjugate and the box of its dual variables fit together.

    Fenchel-Young, V(y, f) + V*(y, v) >= v f with equality at v = V'(y, f), is what certificates rest on;
    here it is checked at random points, beside the definition of V* as a supremum, its domain, both second
    derivatives and the abilities that the loss says it has.

    For a loss that couples outputs, the same is checked with four classes. For a loss that couples samples,
    the gradient, the bounds on its curvature and on its least value, case weights and invariance to shifts
    are checked; the certificate without a conjugate rests on these.

    Parameters
    ----------
    loss : Loss
    y : ndarray of shape (n,) or (n, k), optional
        Targets from which those of a loss that couples samples are drawn; random numbers by default.

    Raises
    ------
    AssertionError
        Names the property that does not hold, and the loss.

    Examples
    --------
    >>> from kernelweave.losses import Huber, Squared
    >>> from kernelweave.testing import check_loss
    >>> check_loss(Huber(delta=0.5))
    >>> class Doubled(Squared):
    ...     def conjugate(self, y, v):
    ...         return 2.0 * super().conjugate(y, v)
    >>> check_loss(Doubled())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: Doubled() breaks the contract, conjugate is the largest v f minus value: ...
    """
    if isinstance(loss, JointLoss):
        hint = "The targets were random numbers: pass y with some that the loss is for." if y is None else ""
        joint_contract.check(loss, loss, y, hint=hint)
    else:
        (coupled_contract if loss.coupled else contract).check(loss, loss)


def _targets(loss: Loss) -> FloatArray:
    return np.asarray(labels_like(loss, draws().normal(size=COUNT)))


def _inside(loss: Loss, y: FloatArray, low: float = 0.02, cut: float = 3.0) -> FloatArray:
    """Random points of the dual box, cut off where it is infinite; `low` is the margin left at each end."""
    lower, upper = (np.clip(bound, -cut, cut) for bound in loss.dual_box(y))
    return np.asarray(lower + draws().uniform(low, 1.0 - low, size=y.shape) * (upper - lower))


def _predictions(loss: Loss, size: float = 3.0) -> tuple[FloatArray, FloatArray]:
    """Two random predictions per sample."""
    f, g = draws().normal(scale=size, size=(2, COUNT))
    return f, g


def _kinks(loss: Any, y: FloatArray) -> list[FloatArray]:
    return loss.kinks(y) if hasattr(loss, "kinks") else []


def _edges(loss: Loss, y: FloatArray) -> list[tuple[FloatArray, FloatArray, float]]:
    """Finite bounds of the dual box, their targets and the direction that leads outside."""
    pairs = zip(loss.dual_box(y), (-1.0, 1.0), strict=True)
    return [(bound[np.isfinite(bound)], y[np.isfinite(bound)], outwards) for bound, outwards in pairs]


# -- value and derivatives ----------------------------------------------------------------------


@contract.promise
def values_are_non_negative_and_elementwise(loss: Loss) -> None:
    """V(y, f) >= 0, with the shape of y and f."""
    y, (f, _) = _targets(loss), _predictions(loss)
    values = loss.value(y, f)
    expect(values.shape == y.shape, f"shape {values.shape} for targets of shape {y.shape}")
    expect(values >= 0)
    assert_allclose(loss.value(y[:, None], f[:, None])[:, 0], values, rtol=1e-12)


@contract.promise
def convex_between_any_two_points(loss: Loss) -> None:
    """V(y, (f + g) / 2) <= (V(y, f) + V(y, g)) / 2."""
    y, (f, g) = _targets(loss), _predictions(loss)
    chord = 0.5 * (loss.value(y, f) + loss.value(y, g))
    expect(loss.value(y, 0.5 * (f + g)) <= chord + 1e-12)


@contract.promise
def gradient_is_a_subgradient_everywhere(loss: Loss) -> None:
    """V(y, g) >= V(y, f) + V'(y, f) (g - f), at kinks too."""
    y, (f, g) = _targets(loss), _predictions(loss)
    for point in [f, *(np.where(np.isfinite(kink), kink, f) for kink in _kinks(loss, y))]:
        tangent = loss.value(y, point) + loss.gradient(y, point) * (g - point)
        expect(loss.value(y, g) >= tangent - 1e-12)


@contract.promise
def gradient_is_the_difference_quotient(loss: Loss) -> None:
    """V'(y, f) = (V(y, f + h) - V(y, f - h)) / 2h, away from kinks."""
    y, (f, _) = _targets(loss), _predictions(loss, 2.0)
    for kink in _kinks(loss, y):
        f = np.where(np.abs(f - kink) < 1e-3, f + 3e-3, f)
    quotient = (loss.value(y, f + STEP) - loss.value(y, f - STEP)) / (2 * STEP)
    assert_allclose(loss.gradient(y, f), quotient, atol=1e-5)


@contract.promise
def hessian_is_the_difference_quotient_of_the_gradient(loss: Any) -> None:
    """V''(y, f) = (V'(y, f + h) - V'(y, f - h)) / 2h, where it does not jump."""
    needs(loss, "hessian")
    y, (f, _) = _targets(loss), _predictions(loss, 2.0)
    around = np.array([loss.hessian(y, f + shift) for shift in (-2 * STEP, 0.0, 2 * STEP)])
    smooth = np.ptp(around, axis=0) < 1e-3  # no jump of the hessian nearby
    quotient = (loss.gradient(y, f + STEP) - loss.gradient(y, f - STEP)) / (2 * STEP)
    expect(smooth.mean() > 0.99, "the hessian jumps nearly everywhere")
    assert_allclose(around[1][smooth], quotient[smooth], atol=1e-5)
    expect(around >= 0)


@contract.promise
def the_gradient_jumps_at_the_kinks_and_nowhere_else(loss: Loss) -> None:
    """kinks(y) lists the f at which V' jumps."""
    targets = np.array([1.0, -1.0] if loss.task == "classification" else [1.0, 0.3])
    f, kinks = np.linspace(-4.0, 4.0, 8001), _kinks(loss, targets)
    for i, target in enumerate(targets):
        y = np.full_like(f, target)
        jumps = np.abs(loss.gradient(y, f + STEP) - loss.gradient(y, f - STEP)) > 0.1
        for kink in kinks:
            point = kink[i : i + 1]
            below, above = (loss.gradient(targets[i : i + 1], point + shift) for shift in (-STEP, STEP))
            expect(above - below > 0.1, f"no jump at f = {point[0]:.4g} for y = {target}")
            jumps &= np.abs(f - point) > 2 * STEP
        expect(not jumps.any(), f"for y = {target} the slope jumps at f = {f[jumps][:3]}")


@contract.promise
def large_predictions_stay_finite(loss: Loss) -> None:
    """V and its derivatives are finite at |f| = 1000 and 1e8."""
    y = _targets(loss)
    for size in (1e3, -1e3, 1e8, -1e8):
        f = np.full_like(y, size)
        for method in ("value", "gradient", "hessian"):
            if hasattr(loss, method):
                expect(np.isfinite(getattr(loss, method)(y, f)), f"{method} at f = {size:.0e}")


@contract.promise
def quadratic_means_half_the_squared_residual(loss: Loss) -> None:
    """`quadratic` is set if and only if V(y, f) = (y - f)^2 / 2."""
    y, (f, _) = _targets(loss), _predictions(loss, 2.0)
    equal = np.allclose(loss.value(y, f), 0.5 * (y - f) ** 2)
    expect(equal == bool(getattr(loss, "quadratic", False)))


@contract.promise
def probability_is_the_likelihood_of_the_loss(loss: Any) -> None:
    """V(+1, f) = -log P(+1 | f), and P(-1 | f) = P(+1 | -f)."""
    needs(loss, "probability")
    f = draws().uniform(-30.0, 30.0, size=200)
    p, one = loss.probability(f), np.ones_like(f)
    expect((p > 0) & (p < 1))
    expect(np.diff(p[np.argsort(f)]) >= 0)
    assert_allclose(loss.value(one, f), -np.log(p), rtol=1e-9, atol=1e-12)
    assert_allclose(loss.value(-one, f), -np.log(loss.probability(-f)), rtol=1e-9, atol=1e-12)
    assert_allclose(loss.probability(np.array([-1e4, 1e4])), [0.0, 1.0], atol=1e-12)


# -- conjugate ----------------------------------------------------------------------------------


@contract.promise
def conjugate_is_the_largest_v_f_minus_value(loss: Loss) -> None:
    """V*(y, v) = sup_f v f - V(y, f), on a grid of f."""
    grid, y = np.linspace(-40.0, 40.0, 40_001), _targets(loss)[:60]
    v = -_inside(loss, _targets(loss))[:60]
    gains = v[:, None] * grid - loss.value(np.broadcast_to(y[:, None], (60, len(grid))), grid)
    supremum, conjugate = gains.max(axis=1), loss.conjugate(y, v)
    expect(conjugate >= supremum - 1e-12, "V* is too small")
    assert_allclose(conjugate, supremum, atol=5e-3)


@contract.promise
def fenchel_young_inequality(loss: Loss) -> None:
    """V(y, f) + V*(y, v) >= v f for every f and every v of the domain, its ends included."""
    rng, count = draws(), 20 * COUNT
    target, f, share = rng.uniform(-5, 5, count), rng.uniform(-50, 50, count), rng.uniform(size=count)
    y = target if loss.task == "regression" else labels_like(loss, target)
    f[::7], share[::11], share[1::11] = 3.0 * rng.normal(size=len(f[::7])), 0.0, 1.0
    cut = np.geomspace(0.1, 50.0, count)
    lower, upper = (np.clip(bound, -cut, cut) for bound in loss.dual_box(y))
    v = -(lower + share * (upper - lower))
    slack = loss.value(y, f) + loss.conjugate(y, v) - v * f
    expect(slack >= -1e-12 * (1.0 + np.abs(f) * (1.0 + np.abs(v)) + cut**2), f"{slack.min():.3g} is missing")


@contract.promise
def fenchel_young_equality_at_the_gradient(loss: Loss) -> None:
    """V(y, f) + V*(y, v) = v f at v = V'(y, f)."""
    y, (f, _) = _targets(loss), _predictions(loss)
    v = loss.gradient(y, f)
    assert_allclose(loss.value(y, f) + loss.conjugate(y, v), v * f, atol=1e-10)


@contract.promise
def domain_is_the_dual_box(loss: Loss) -> None:
    """V*(y, -a) is finite for a in the box, rounding allowed for, and +inf outside."""
    y = _targets(loss)
    for edge, targets, outwards in _edges(loss, y):
        for distance in (0.0, 1e-13):
            expect(np.isfinite(loss.conjugate(targets, -(edge + outwards * distance))), "infinite at a bound")
        for distance in (1e-6, 1.0, 1e3):
            outside = loss.conjugate(targets, -(edge + outwards * distance))
            expect(np.isposinf(outside), f"finite at a distance of {distance} from the box")
    for bound, outwards in zip(loss.dual_box(y), (-1.0, 1.0), strict=True):
        endless = ~np.isfinite(bound)
        expect(np.sign(bound[endless]) == outwards, "a bound is infinite on the wrong side")
        for size in (1.0 + 1e-13, 1e4):
            expect(np.isfinite(loss.conjugate(y[endless], np.full(endless.sum(), -outwards * size))))


@contract.promise
def outside_the_domain_the_supremum_is_unbounded(loss: Loss) -> None:
    """v f - V(y, f) grows without end in f for v outside of the domain."""
    for edge, targets, outwards in _edges(loss, _targets(loss)):
        v = -(edge + 0.5 * outwards)
        reached = [v * f - loss.value(targets, np.full_like(v, f)) for f in (-1e6, 1e6)]
        expect(np.maximum(*reached) > 1e5)


@contract.promise
def zero_is_in_the_dual_box(loss: Loss) -> None:
    """Lower <= 0 <= upper, each of the shape of y."""
    y = _targets(loss)
    lower, upper = loss.dual_box(y)
    expect(lower.shape == upper.shape == y.shape, f"shapes {lower.shape} and {upper.shape}")
    expect((lower <= 0) & (upper >= 0))


@contract.promise
def dual_curvature_is_the_second_difference(loss: Loss) -> None:
    """The second derivative of V*(y, -a) in a, inside of the box."""
    step, y = 1e-4, _targets(loss)
    inside, (lower, upper) = _inside(loss, y), loss.dual_box(y)
    a = np.where(np.abs(inside) < 0.02, 0.05 * np.sign(inside), inside)  # clear of a kink at zero
    a = np.where((a > lower + 0.01) & (a < upper - 0.01), a, inside)
    three = [loss.conjugate(y, -(a + shift)) for shift in (-step, 0.0, step)]
    second = (three[0] - 2.0 * three[1] + three[2]) / step**2
    assert_allclose(loss.dual_curvature(y, a), second, rtol=1e-3, atol=1e-5)


@contract.promise
def dual_curvature_is_infinite_at_the_bounds(loss: Loss) -> None:
    """A dual variable at its bound is held fixed; next to it the curvature is at least zero."""
    for edge, targets, outwards in _edges(loss, _targets(loss)):
        expect(np.isposinf(loss.dual_curvature(targets, edge)))
        for distance in (1e-310, 1e-100, 1e-12):
            expect(loss.dual_curvature(targets, edge - outwards * distance) >= 0)


@contract.promise
def dual_curvature_inverts_the_hessian(loss: Any) -> None:
    """V*'' at v = V'(f) is 1 / V''(f) where that is not zero."""
    needs(loss, "hessian")
    y, (f, _) = _targets(loss), _predictions(loss, 2.0)
    hessian = loss.hessian(y, f)
    curved = hessian > 1e-6
    curvature = loss.dual_curvature(y, -loss.gradient(y, f))
    assert_allclose(curvature[curved], 1.0 / hessian[curved], rtol=1e-6)


@contract.promise
def linear_dual_is_minus_the_conjugate_on_the_box(loss: Any) -> None:
    """-V*(y, -a) = linear a - kink |a|; where kink > 0, a = 0 is held fixed."""
    needs(loss, "linear_dual")
    y = _targets(loss)
    linear, kink = loss.linear_dual(y)
    for a in (_inside(loss, y), *loss.dual_box(y), np.zeros_like(y)):
        assert_allclose(-loss.conjugate(y, -a), linear * a - kink * np.abs(a), atol=1e-12)
    expect(kink == 0 or np.isposinf(loss.dual_curvature(y, np.zeros_like(y))).all())


@contract.promise
def clone_and_parameters(loss: Loss) -> None:
    """Clone, get_params and repr agree; `task` is one of five, and `name` is set."""
    _expect_parameters(loss)
    known = {"classification", "regression", "one_class", "quantile", "survival"}
    expect(loss.task in known, f"task={loss.task!r}")


def _expect_parameters(loss: Loss) -> None:
    expect_clone(loss)
    expect(clone(loss) is not loss, "clone gives the same object")
    expect(bool(loss.name))


# -- losses that couple samples -----------------------------------------------------------------


class Draw(NamedTuple):
    """What the methods of a loss that couples samples take."""

    y: FloatArray
    f: FloatArray
    weight: FloatArray

    def at(self, f: FloatArray) -> Draw:
        """The same at other predictions."""
        return self._replace(f=f)


def targets_from(y: Any, *shape: int) -> FloatArray:
    """Targets of that shape, drawn from the rows of y, or random numbers."""
    return draws().normal(size=shape) if y is None else np.asarray(y)[draws().integers(len(y), size=shape)]


def _draws(y: Any, n: int = 30) -> list[Draw]:
    """Three draws, at small and at large predictions."""
    rng = draws()
    return [
        Draw(targets_from(y, n), size * rng.normal(size=n), rng.uniform(0.3, 2.0, size=n))
        for size in (0.1, 1.0, 5.0)
    ]


def _hessian(loss: JointLoss, draw: Draw) -> FloatArray:
    """Difference quotients of the gradient, shape (n, n)."""
    steps = STEP * np.eye(len(draw.f))
    changes = [loss.gradient(*draw.at(draw.f + h)) - loss.gradient(*draw.at(draw.f - h)) for h in steps]
    return np.array(changes).T / (2 * STEP)


@joint_contract.promise
def value_is_one_number_and_no_less_than_least(loss: JointLoss, y: Any) -> None:
    """L(y, f) >= least(y, weight), one float."""
    for draw in _draws(y):
        value, least = loss.value(*draw), loss.least(draw.y, draw.weight)
        expect(np.ndim(value) == 0, f"value of shape {np.shape(value)}")
        expect(value >= least - 1e-9 * abs(least), f"L = {value}, least(y, weight) = {least}")


@joint_contract.promise
def least_is_no_more_than_the_infimum(loss: JointLoss, y: Any) -> None:
    """least(y, weight) is finite, and minimising L numerically does not lead below it."""
    for draw in _draws(y):
        least = loss.least(draw.y, draw.weight)
        expect(np.isfinite(least), f"least(y, weight) = {least}")
        start = draw.at(np.zeros_like(draw.f))
        found = minimize(
            lambda f, at=start: (loss.value(*at.at(f)), loss.gradient(*at.at(f))),
            start.f,
            jac=True,
            method="L-BFGS-B",
            # squares of smaller slopes vanish
            options={"maxiter": 2000, "maxfun": 5000, "ftol": 0.0, "gtol": 1e-100},
        )
        span = loss.value(*start) - found.fun
        expect(
            least <= found.fun + 1e-9 * (abs(found.fun) + span),
            f"L = {found.fun}, least(y, weight) = {least}",
        )


@joint_contract.promise
def convex_and_above_its_tangents(loss: JointLoss, y: Any) -> None:
    """L(f') >= L(f) + <L'(f), f' - f>."""
    for draw in _draws(y):
        for size in (1e-2, 1.0, 10.0):
            step = size * draws().normal(size=len(draw.f))
            here, there = loss.value(*draw), loss.value(*draw.at(draw.f + step))
            gradient = loss.gradient(*draw)
            expect(gradient.shape == draw.f.shape, f"gradient of shape {gradient.shape}")
            rounding = 1e-10 * (abs(here) + abs(there) + float(np.abs(gradient) @ np.abs(step)))
            expect(there >= here + float(gradient @ step) - rounding)


@joint_contract.promise
def the_gradient_is_the_quotient_of_differences(loss: JointLoss, y: Any) -> None:
    """L'(f)_i = (L(f + h e_i) - L(f - h e_i)) / 2h."""
    for draw in _draws(y):
        steps = STEP * np.eye(len(draw.f))
        ends = [(loss.value(*draw.at(draw.f + h)), loss.value(*draw.at(draw.f - h))) for h in steps]
        quotient, rounding = -np.diff(ends)[:, 0] / (2 * STEP), 1e-9 * np.abs(ends).max()
        assert_allclose(loss.gradient(*draw), quotient, rtol=1e-5, atol=1e-5 + rounding)


@joint_contract.promise
def curvature_bounds_the_hessian(loss: JointLoss, y: Any) -> None:
    """diag(curvature) - H is positive semidefinite, and so is H."""
    for draw in _draws(y):
        bound, H = loss.curvature(*draw), _hessian(loss, draw)
        expect(bound.shape == draw.f.shape, f"curvature of shape {bound.shape}")
        size = 1e-5 * (1.0 + float(np.abs(H).max()))
        assert_allclose(H, H.T, atol=size)
        expect(np.linalg.eigvalsh(H).min() >= -size, "the Hessian is not positive semidefinite")
        expect(np.linalg.eigvalsh(np.diag(bound) - H).min() >= -size, "the Hessian is above its bound")


@joint_contract.promise
def hessian_product_is_the_hessian_times_v(loss: JointLoss, y: Any) -> None:
    """H v, with H from differences of the gradient."""
    for draw in _draws(y):
        H, v = _hessian(loss, draw), draws().normal(size=len(draw.f))
        size = 1e-4 * (1.0 + float(np.abs(H).max()))
        assert_allclose(loss.hessian_product(*draw, v), H @ v, atol=size)
        both = np.column_stack([v, v[::-1]])
        assert_allclose(loss.hessian_at(*draw)(both), H @ both, atol=2.0 * size)


@joint_contract.promise
def shift_invariant_means_no_shift_matters(loss: JointLoss, y: Any) -> None:
    """`shift_invariant` is set if and only if L(f + b) = L(f); then sum(L'(f)) = 0."""
    for draw in _draws(y):
        values = [loss.value(*draw.at(draw.f + b)) for b in (0.0, -3.0, 2.0)]
        expect(np.allclose(values, values[0]) == loss.shift_invariant, f"L = {values} at shifted f")
        gradient = loss.gradient(*draw)
        off = abs(float(gradient.sum()))
        expect(not loss.shift_invariant or off <= 1e-9 * np.abs(gradient).sum(), f"sum(L') = {off}")


@joint_contract.promise
def weights_count_repeats(loss: JointLoss, y: Any) -> None:
    """A sample of weight w is w samples of weight 1: the same L, and L' summed over them."""
    for draw in _draws(y):
        count = 1 + np.arange(len(draw.f)) % 3
        rows = np.repeat(np.arange(len(draw.f)), count)
        weighted = draw._replace(weight=count.astype(float))
        repeated = Draw(draw.y[rows], draw.f[rows], np.ones(len(rows)))
        assert_allclose(loss.value(*weighted), loss.value(*repeated), rtol=1e-10, atol=1e-12)
        sums = np.bincount(rows, loss.gradient(*repeated))
        assert_allclose(loss.gradient(*weighted), sums, rtol=1e-8, atol=1e-10)


@joint_contract.promise
def the_order_of_samples_does_not_matter(loss: JointLoss, y: Any) -> None:
    """L stays, and gradient and curvature move with the samples."""
    for draw in _draws(y):
        order = draws().permutation(len(draw.f))
        moved = Draw(*(part[order] for part in draw))
        assert_allclose(loss.value(*moved), loss.value(*draw), rtol=1e-10)
        for method in (loss.gradient, loss.curvature):
            assert_allclose(method(*moved), method(*draw)[order], rtol=1e-8, atol=1e-12)


@joint_contract.promise
def far_predictions_stay_finite(loss: JointLoss, y: Any) -> None:
    """L, L' and the curvature are finite at |f| = 1000 and 1e8."""
    for draw in _draws(y):
        for size in (1e3, 1e8):
            far = draw.at(size * np.sign(draw.f))
            for method in ("value", "gradient", "curvature"):
                expect(np.isfinite(getattr(loss, method)(*far)), f"{method} at f = {size:.0e}")


@joint_contract.promise
def parameters_survive_a_clone(loss: JointLoss, y: Any) -> None:
    """Clone, get_params and repr agree; `task` and `name` are set."""
    _expect_parameters(loss)
    expect(isinstance(loss.task, str) and bool(loss.task), f"task={loss.task!r}")


# -- losses that couple outputs -----------------------------------------------------------------

CLASSES = 4


def _class_draw(loss: Loss, scale: float = 2.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Targets and two random predictions per sample, of shape (n, CLASSES)."""
    score, f, g = draws().normal(scale=scale, size=(3, COUNT, CLASSES))
    return labels_like(loss, score), f, g


def _plans(y: FloatArray) -> FloatArray:
    """Points of the domain of V*: v = u - own with u in the simplex, some of them on its edges."""
    u = draws().dirichlet(np.full(y.shape[1], 0.3), size=len(y))
    u = np.where(u < 0.05, 0.0, u)
    return np.asarray(u / u.sum(axis=1, keepdims=True) - (y > 0))


@coupled_contract.promise
def a_value_per_sample_and_a_slope_per_output(loss: Loss) -> None:
    """V(y, f) >= 0 of shape (n, 1), finite far out; V'(y, f) of shape (n, c)."""
    y, f, _ = _class_draw(loss)
    for size in (1.0, 1e3, 1e8):
        expect(loss.value(y, size * f).shape == (COUNT, 1), f"shape {loss.value(y, f).shape}")
        expect(np.isfinite(loss.value(y, size * f)) & (loss.value(y, size * f) >= 0))
        expect(loss.gradient(y, size * f).shape == y.shape)


@coupled_contract.promise
def convex_with_a_subgradient_everywhere(loss: Loss) -> None:
    """V(y, g) >= V(y, f) + <V'(y, f), g - f>, also where outputs are equal."""
    y, f, g = _class_draw(loss)
    for point in (f, np.zeros_like(f), np.round(f), y):
        tangent = loss.value(y, point) + (loss.gradient(y, point) * (g - point)).sum(axis=1, keepdims=True)
        expect(loss.value(y, g) >= tangent - 1e-12)


@coupled_contract.promise
def what_outputs_have_in_common_does_not_matter(loss: Loss) -> None:
    """V(y, f + b) = V(y, f) for one b added to all outputs, and sum_k V'_k = 0."""
    y, f, _ = _class_draw(loss)
    assert_allclose(loss.value(y, f + 3.0), loss.value(y, f), atol=1e-12)
    assert_allclose(loss.gradient(y, f).sum(axis=1), 0.0, atol=1e-12)


@coupled_contract.promise
def fenchel_young_over_the_simplex(loss: Loss) -> None:
    """V(y, f) + V*(y, v) >= <v, f>, with equality at v = V'(y, f)."""
    y, f, _ = _class_draw(loss)
    for v, equal in ((_plans(y), False), (loss.gradient(y, f), True)):
        slack = loss.value(y, f) + loss.conjugate(y, v) - (v * f).sum(axis=1, keepdims=True)
        expect(slack >= -1e-12, f"{slack.min():.3g} is missing")
        expect(not equal or slack.max() <= 1e-12, f"{slack.max():.3g} too much at the gradient")


@coupled_contract.promise
def the_conjugate_is_reached(loss: Loss) -> None:
    """V*(y, v) = sup_f <v, f> - V(y, f), reached by subgradient ascent from the best point known."""
    y, _, _ = _class_draw(loss)
    y, v = y[:40], _plans(y)[:40]
    f, best = np.zeros_like(y), np.full((len(y), 1), -np.inf)
    for step in np.geomspace(1.0, 1e-3, 2000):
        best = np.maximum(best, (v * f).sum(axis=1, keepdims=True) - loss.value(y, f))
        f += step * (v - loss.gradient(y, f))
    assert_allclose(loss.conjugate(y, v), best, atol=2e-2)


@coupled_contract.promise
def outside_of_the_simplex_it_is_infinite(loss: Loss) -> None:
    """V* is +inf where v does not sum to zero, or u = v + own has an entry below zero."""
    y, _, _ = _class_draw(loss)
    inside, step = _plans(y), np.array([1e-6, -1e-6, 0.0, 0.0])
    own = np.flatnonzero(y[:, 2] > 0)
    expect(np.isfinite(loss.conjugate(y, inside + 1e-13)))
    expect(np.isposinf(loss.conjugate(y, inside + 1e-6)), "a sum of 4e-6 is accepted")
    expect(np.isposinf(loss.conjugate(y[own], np.zeros((len(own), 4)) + step)), "u < 0 is accepted")


@coupled_contract.promise
def simplex_dual_is_minus_the_conjugate(loss: Any) -> None:
    """-V*(y, -a) = <simplex_dual(y), a> where it is finite; bounds of a are those of `dual_box`."""
    needs(loss, "simplex_dual")
    y, _, _ = _class_draw(loss)
    a, (lower, upper) = -_plans(y), loss.dual_box(y)
    linear = (loss.simplex_dual(y) * a).sum(axis=1, keepdims=True)
    assert_allclose(-loss.conjugate(y, -a), linear, atol=1e-12)
    expect((lower <= a) & (a <= upper) & (lower <= 0) & (upper >= 0))


@coupled_contract.promise
def classes_that_share_a_sample_are_free(loss: Loss) -> None:
    """V*(y, -a) has second derivative 0 along them; a class with no share, or all of it, is held fixed."""
    y, _, _ = _class_draw(loss)
    a = -_plans(y)
    shares = (y > 0) - a > 1e-9
    free = shares & (shares.sum(axis=1, keepdims=True) > 1)
    expect((loss.dual_curvature(y, a) == 0.0) == free)
    expect(np.isposinf(loss.dual_curvature(y, np.zeros_like(y))))


@coupled_contract.promise
def parameters_survive_a_copy(loss: Loss) -> None:
    """Clone, get_params and repr agree; `name` is set."""
    _expect_parameters(loss)
