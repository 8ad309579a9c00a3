"""Conjugates on a grid, domains from both sides, curvatures, samples without loss, and edge values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kernelweave.losses import (
    CensoredEpsInsensitive,
    Cox,
    EpsInsensitive,
    Hinge,
    Huber,
    JointLoss,
    Logistic,
    MulticlassHinge,
    OneClass,
    OrdinalHinge,
    OrdinalLogistic,
    Pinball,
    Ranking,
    Squared,
    SquaredHinge,
    SurvivalRanking,
)
from kernelweave.losses.base import inside_box, negligible, restrict
from kernelweave.losses.cox import running_sums

from ..targets import targets_of

LOSSES = [
    Hinge(),
    SquaredHinge(),
    Logistic(),
    Squared(),
    EpsInsensitive(0.0),
    EpsInsensitive(0.4),
    Huber(0.7),
    OneClass(),
    Pinball(0.2),
    CensoredEpsInsensitive(0.3),
]
NUMBERS = np.array([-1.2, 0.4, 1.7, -0.3, 0.9])


@pytest.fixture(params=LOSSES, ids=repr)
def loss(request):
    return request.param


@pytest.fixture
def y(loss):
    return targets_of(loss, NUMBERS)


def inside(loss, y, share):
    """Points of the dual box, infinite ends taken as 3 away."""
    lower, upper = (np.clip(end, -3.0, 3.0) for end in loss.dual_box(y))
    return lower + share * (upper - lower)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_the_conjugate_is_the_largest_of_a_grid(loss, y, share):
    v = -inside(loss, y, share)
    grid = np.linspace(-40.0, 40.0, 160_001)
    for one, slope in zip(y, v, strict=True):
        most = (slope * grid - loss.value(np.full_like(grid, one), grid)).max()
        assert loss.conjugate(np.array([one]), np.array([slope]))[0] == pytest.approx(most, abs=2e-4)


def test_the_conjugate_is_infinite_on_both_sides_of_the_box(loss, y):
    for end, sign in zip(loss.dual_box(y), (-1.0, 1.0), strict=True):
        finite = np.isfinite(end)
        a = np.where(finite, end, 0.0)
        assert np.isfinite(loss.conjugate(y, -a)).all()
        beyond = loss.conjugate(y, -(a + sign * 1e-3))
        assert np.isinf(beyond[finite]).all()


def test_what_has_no_loss_has_no_share_in_the_model(loss, y):
    """alpha = -C V'(y, f) is zero where V is zero, at the kink as well; the median has a slope everywhere."""
    if isinstance(loss, Pinball) or loss.name in {"logistic"}:
        pytest.skip("positive, or with a slope, everywhere")
    edges = loss.kinks(y) if hasattr(loss, "kinks") else [y]
    for edge in [*edges, *(edge + 1e-3 for edge in edges), *(edge - 1e-3 for edge in edges)]:
        f = np.where(np.isfinite(edge), edge, 0.0)
        free = loss.value(y, f) == 0.0
        np.testing.assert_array_equal(loss.gradient(y, f)[free], 0.0)


def test_the_curvature_of_the_dual_is_the_second_difference(loss, y):
    step = 1e-4
    for share in (0.2, 0.6, 0.9):
        a = inside(loss, y, share)
        low, at, high = (loss.conjugate(y, -(a + k * step)) for k in (-1, 0, 1))
        second, said = (low - 2 * at + high) / step**2, loss.dual_curvature(y, a)
        free = np.isfinite(said)
        np.testing.assert_allclose(second[free], said[free], rtol=1e-3, atol=1e-4)
    for end in loss.dual_box(y):
        held = np.isfinite(end) & (end != 0.0)
        assert np.isinf(loss.dual_curvature(y, np.where(np.isfinite(end), end, 1.0)))[held].all()


def test_zero_is_a_kink_of_the_dual_where_there_is_a_tube():
    y = np.array([1.0, 2.0])
    a = np.array([0.0, 0.5])
    assert np.isinf(EpsInsensitive(0.1).dual_curvature(y, a)[0])
    assert EpsInsensitive(0.0).dual_curvature(y, a)[0] == 0.0
    assert EpsInsensitive(0.1).dual_curvature(y, a)[1] == 0.0


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (EpsInsensitive, [-0.1, np.inf, np.nan, "wide", None]),
        (CensoredEpsInsensitive, [-0.1, np.inf, np.nan]),
        (Huber, [0.0, -1.0, np.inf, np.nan, "wide"]),
        (Pinball, [0.0, 1.0, -0.1, 1.1, np.nan, "half"]),
        (OrdinalHinge, [0.0, -1.0, np.inf, np.nan, "wide"]),
        (Ranking, [0.0, -1.0, np.nan, "wide"]),
    ],
)
def test_parameters_that_make_no_loss_are_refused(make, bad):
    for value in bad:
        with pytest.raises(ValueError, match="must be a"):
            make(value).check()
    make().check()
    make(0.5).check()


def test_the_smallest_parameters():
    EpsInsensitive(0.0).check()
    Huber(1e-300).check()
    Pinball(1e-9).check()


# -- log times ---------------------------------------------------------------------------------------


def test_signed_times():
    loss = CensoredEpsInsensitive()
    Y = np.array([[2.0, 1.0], [3.0, 0.0], [0.5, 1.0]])
    np.testing.assert_array_equal(loss.targets(Y), [[2.0], [-3.0], [0.5]])
    with pytest.raises(ValueError, match="y has 1 times of 0"):
        loss.targets(np.array([[0.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="y has strata"):
        loss.targets(np.column_stack([Y, np.zeros(3)]))
    np.testing.assert_allclose(loss.size(np.array([-0.5, 2.0, 1.0])), [np.log(2.0), np.log(2.0), 0.0])


# -- classes -----------------------------------------------------------------------------------------


def test_the_box_of_several_classes_is_that_of_the_simplex(rng):
    y = np.array([[1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]])
    loss = MulticlassHinge()
    lower, upper = loss.dual_box(y)
    corners = [(y > 0) - unit for unit in np.eye(3)]  # a = e_own - u at the corners u of the simplex
    np.testing.assert_array_equal(lower, np.min(corners, axis=0))
    np.testing.assert_array_equal(upper, np.max(corners, axis=0))
    for u in rng.dirichlet(np.ones(3), size=(20, 2)):
        assert np.isfinite(loss.conjugate(y, u - (y > 0))).all()
    assert np.isinf(loss.conjugate(y, 1.01 * (np.eye(3)[[1, 1]] - (y > 0)))).all()


@pytest.mark.parametrize("own", [0, 1, 2])
def test_a_class_that_is_ahead_by_one_has_no_loss(own):
    y, f = np.full((1, 3), -1.0), np.ones((1, 3))
    y[0, own], f[0, own] = 1.0, 2.0
    assert MulticlassHinge().value(y, f) == 0.0
    np.testing.assert_array_equal(MulticlassHinge().gradient(y, f), 0.0)


# -- losses of all samples together ------------------------------------------------------------------


class Centred(JointLoss):
    """(1/2) sum_i w_i (f_i - y_i - mean)^2, whose Hessian is diag(w) - w w' / sum(w)."""

    name, task, shift_invariant = "centred", "regression", True

    def residual(self, y, f, weight):
        return f - y - np.average(f - y, weights=weight)

    def value(self, y, f, weight):
        return 0.5 * float(weight @ self.residual(y, f, weight) ** 2)

    def gradient(self, y, f, weight):
        return weight * self.residual(y, f, weight)

    def curvature(self, y, f, weight):
        return weight


@pytest.mark.parametrize("at", ["anywhere", "minimum", "minimum below", "minimum with a zero"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_products_with_a_hessian_by_differences(rng, unit, at):
    y, weight = unit * rng.normal(size=8), np.append(np.ones(4), rng.uniform(0.1, 1.0, size=4))
    f = {
        "anywhere": unit * rng.normal(size=8),
        "minimum": y + 2.0,
        "minimum below": y - np.abs(y).max() - 2.0,
        "minimum with a zero": y - y[3],
    }[at]
    H = np.diag(weight) - np.outer(weight, weight) / weight.sum()
    for v in (rng.normal(size=8), 1e-3 * np.eye(8)[2], 1e4 * rng.normal(size=8), -rng.gamma(1.0, size=8)):
        found = Centred().hessian_product(y, f, weight, v)
        np.testing.assert_allclose(found, H @ v, rtol=1e-5, atol=1e-6 * np.abs(v).max())
    np.testing.assert_array_equal(Centred().hessian_product(y, f, weight, np.zeros(8)), 0.0)
    together = Centred().hessian_at(y, f, weight)(np.eye(8)[:, :3])
    np.testing.assert_allclose(together, H[:, :3], atol=1e-6)
    assert Centred().least(y, weight) == 0.0


def test_no_curvature_is_no_product():
    class Flat(Centred):
        def curvature(self, y, f, weight):
            return np.zeros_like(f)

    np.testing.assert_array_equal(
        Flat().hessian_product(np.ones(3), np.zeros(3), np.ones(3), np.ones(3)), 0.0
    )


JOINT = [OrdinalLogistic(), OrdinalHinge(), OrdinalHinge(0.3)]


@pytest.mark.parametrize("t", [1e-4, 1e4])
@pytest.mark.parametrize("loss", JOINT, ids=repr)
def test_weights_in_another_unit(rng, loss, t):
    y, f, weight = np.arange(12) % 4 * 1.0, rng.normal(size=12), rng.uniform(0.5, 2.0, size=12)
    v = rng.normal(size=12)
    assert loss.value(y, f, t * weight) == pytest.approx(t * loss.value(y, f, weight), rel=1e-6)
    for what, more in (("gradient", ()), ("curvature", ()), ("hessian_product", (v,))):
        one, other = (getattr(loss, what)(y, f, w, *more) for w in (weight, t * weight))
        np.testing.assert_allclose(other, t * one, rtol=1e-4, atol=1e-6 * t)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("loss", JOINT, ids=repr)
def test_thresholds_are_the_best(rng, loss, spread):
    """Each minimises its own sum over all samples; lopsided weights and classes included."""
    for seed in range(4):
        own = np.random.default_rng(seed)
        y = np.sort(own.integers(0, 4, size=14)).astype(float)
        f, weight = spread * own.normal(size=14), own.gamma(0.3, size=14) + 1e-3
        b = loss.thresholds(y, f, weight)
        total = 0.0
        for k, level in enumerate(np.unique(y)[:-1]):
            signs = np.where(y > level, 1.0, -1.0)

            def cost(t, signs=signs, f=f, weight=weight):
                return float(weight @ loss.margins(signs * (f - t))[0])

            ends = (f.min() - 20.0, f.max() + 20.0)
            best = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": 1e-10}).fun
            assert cost(b[k]) <= best + 1e-7 * (1.0 + abs(best))
            total += cost(b[k])
        assert loss.value(y, f, weight) == pytest.approx(total)


@pytest.mark.parametrize("gap", [2.0, 2.2, 5.0])
def test_thresholds_between_classes_that_keep_their_distance(gap):
    y, f = np.array([0.0, 0.0, 1.0, 2.0]), np.array([-4.0, 0.0, gap, 2.0 * gap])
    np.testing.assert_allclose(OrdinalHinge().thresholds(y, f, np.ones(4)), [0.5 * gap, 1.5 * gap])
    assert OrdinalHinge().value(y, f, np.ones(4)) == 0.0


@pytest.mark.parametrize("loss", JOINT, ids=repr)
def test_margins_and_their_derivatives(loss):
    z, step = np.array([-3.0, -0.7, 0.2, 0.75, 0.9, 1.4, 5.0]), 1e-5
    _, first, second = loss.margins(z)
    ahead, behind = loss.margins(z + step), loss.margins(z - step)
    np.testing.assert_allclose(first, (ahead[0] - behind[0]) / (2 * step), atol=1e-9)
    np.testing.assert_allclose(second, (ahead[1] - behind[1]) / (2 * step), atol=1e-8)


def test_thresholds_that_no_sample_is_near_have_no_curvature():
    y, f = np.array([0.0, 0.0, 1.0, 2.0]), np.array([-9.0, -5.0, 3.0, 9.0])
    np.testing.assert_array_equal(OrdinalHinge().hessian_product(y, f, np.ones(4), np.arange(4.0)), 0.0)


# -- risk sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_who_leaves_before_the_first_event_tells_nothing(ties, rng):
    loss, y = Cox(ties=ties), np.array([[1.0, 0], [2.0, 1], [3.0, 0], [3.0, 1], [3.0, 1]])
    f, weight, v = rng.normal(size=5), np.array([2.0, 1.0, 1.5, 1.0, 0.5]), rng.normal(size=5)
    assert loss.gradient(y, f, weight)[0] == 0.0
    assert loss.hessian_product(y, f, weight, v)[0] == 0.0
    rest = slice(1, None)
    assert loss.value(y, f, weight) == pytest.approx(loss.value(y[rest], f[rest], weight[rest]))


def test_running_sums_of_any_range(rng):
    for x in (
        np.array([0.0, 1500.0]),
        np.array([1500.0, 0.0]),
        np.array([-np.inf, 3.0, 3.0]),
        rng.normal(size=9),
    ):
        expected = np.logaddexp.accumulate(x)
        np.testing.assert_allclose(running_sums(x), expected, rtol=1e-12)
    V = rng.normal(size=(6, 2))
    np.testing.assert_allclose(running_sums(V)[:, 1], running_sums(V[:, 1]))


def test_so_many_terms_and_no_more(monkeypatch):
    from kernelweave.losses import cox

    monkeypatch.setattr(cox, "MOST_TERMS", 4)
    y, f = np.array([[1.0, 1], [2.0, 1]]), np.zeros(2)
    loss = Cox(ties="efron")
    assert np.isfinite(loss.value(y, f, np.array([1.0, 3.0])))
    with pytest.raises(ValueError, match="pass ties='breslow'"):
        loss.value(y, f, np.array([2.0, 3.0]))


def test_pairs_by_their_definition(rng):
    """1/2 sum w_i w_j max(0, 1 - f_i + f_j)^2, its derivatives and their bound, pair by pair."""
    y = np.column_stack([rng.integers(1, 5, size=9), rng.random(9) < 0.6, np.arange(9) % 2]).astype(float)
    f, weight, v = rng.normal(size=9), rng.uniform(0.5, 2.0, size=9), rng.normal(size=9)
    value, gradient, H = 0.0, np.zeros(9), np.zeros((9, 9))
    for i in range(9):
        for j in range(9):
            later = y[i, 0] < y[j, 0] or (y[i, 0] == y[j, 0] and not y[j, 1])
            lacking = 1.0 - f[i] + f[j]
            if i != j and y[i, 1] and later and y[i, 2] == y[j, 2] and lacking > 0:
                pair, both = weight[i] * weight[j], np.eye(9)[j] - np.eye(9)[i]
                value += 0.5 * pair * lacking**2
                gradient += pair * lacking * both
                H += pair * np.outer(both, both)
    loss = SurvivalRanking()
    assert loss.value(y, f, weight) == pytest.approx(value)
    np.testing.assert_allclose(loss.gradient(y, f, weight), gradient, atol=1e-10)
    np.testing.assert_allclose(loss.hessian_product(y, f, weight, v), H @ v, atol=1e-10)
    np.testing.assert_allclose(loss.curvature(y, f, weight), 2.0 * H.diagonal(), atol=1e-10)


def test_pairs_in_the_right_order_and_one_apart_have_no_loss():
    y, f = np.column_stack([np.arange(5.0), np.ones(5)]), -2.0 * np.arange(5.0)
    assert SurvivalRanking().value(y, f, np.ones(5)) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(SurvivalRanking().gradient(y, f, np.ones(5)), 0.0, atol=1e-12)


def test_times_alone_are_all_events(rng):
    time, f, weight = rng.integers(1, 5, size=8) * 1.0, rng.normal(size=8), rng.uniform(0.5, 2.0, size=8)
    both = np.column_stack([time, np.ones(8)])
    for loss in (Cox(), SurvivalRanking()):
        assert loss.value(time, f, weight) == pytest.approx(loss.value(both, f, weight))
        np.testing.assert_allclose(loss.gradient(time, f, weight), loss.gradient(both, f, weight))


# -- what counts as rounding ---------------------------------------------------------------------------


def test_what_is_negligible():
    assert negligible(np.array([-3.0, 1.0, 0.0])) == pytest.approx(3e-10)
    assert negligible(np.zeros(2)) == negligible(np.array([])) == 0.0


def test_bounds_are_not_inside():
    a = np.array([1.0, 1e-10, 0.5, 2e-10, 1.0 - 1e-10])
    found = inside_box(a, np.zeros(5), np.ones(5))
    np.testing.assert_array_equal(found, [False, False, True, True, False])


def test_domains_are_closed_up_to_rounding():
    values = restrict(np.zeros(3), np.array([0.5, 1.0, 1.5]), margin=1.0)
    np.testing.assert_array_equal(values, [0.0, 0.0, np.inf])


def test_points_off_the_simplex_on_either_side():
    y = np.array([[1.0, -1.0, -1.0]])
    for v in ([-0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [-1.0, 0.5, 0.6], [-1.0, 0.5, 0.4]):
        assert np.isinf(MulticlassHinge().conjugate(y, np.array([v]))).all()
    np.testing.assert_array_equal(OneClass().size(np.ones(3)), 0.0)


def test_a_margin_of_one_is_not_violated():
    f = np.array([1.0 - 1e-12, 1.0, 1.0 + 1e-12])
    np.testing.assert_array_equal(SquaredHinge().hessian(np.ones(3), f), [1.0, 0.0, 0.0])


def test_targets_below_zero_are_as_large_as_those_above(loss, y):
    assert (loss.size(y) >= 0.0).all()
    np.testing.assert_array_equal(Squared().size(np.array([-3.0, 2.0])), [3.0, 2.0])


def test_gradients_jump_at_the_kinks_and_nowhere_else(loss, y):
    if not hasattr(loss, "kinks"):
        pytest.skip("its gradient does not jump")
    kinks, step = np.sort(np.stack(loss.kinks(y)), axis=0), 1e-9
    jumps = np.array([loss.gradient(y, kink + step) - loss.gradient(y, kink - step) for kink in kinks])
    assert (jumps >= 0.0).all()
    assert (jumps.max(axis=0) > 0.0).all()
    far = np.full((1, len(y)), 5.0)
    ends = np.vstack([kinks[:1] - far, kinks, kinks[-1:] + far])
    for low, high in pairwise(ends):  # piecewise linear: constant between them
        np.testing.assert_array_equal(
            loss.gradient(y, low + step), loss.gradient(y, np.maximum(high - step, low + step))
        )
