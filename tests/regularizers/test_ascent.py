"""The largest value of a concave function, where it is known, within so many calls."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.regularizers._ascent import (
    HIGH,
    LOW,
    Concave,
    _bracket,
    _last_finite,
    _root,
    climb,
    differences,
    log_sum,
    peak,
    search,
    search_ray,
    sweep,
)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.function(*arguments)


@pytest.mark.parametrize("top", [-39.0, -3.3, -0.06, 0.0, 0.01, 0.125, 1.0, 17.0, 69.0])
def test_the_top_of_a_parabola(top):
    f = Counted(lambda t: -((t - top) ** 2))
    found, side = search(f, LOW, HIGH)
    assert found == pytest.approx(top, abs=2e-8)
    assert side == 0
    assert f.calls <= 70


@pytest.mark.parametrize("top", [-3.3, 0.0, 0.3, 17.0])
def test_a_top_so_flat_that_its_neighbours_are_equal(top):
    """1 - t^2 is 1 for all t below 1e-8: such ends of the bracket are not ends of the domain."""
    found, side = search(lambda t: 1.0 - (t - top) ** 2, LOW, HIGH)
    assert found == pytest.approx(top, abs=5e-8)
    assert side == 0


@pytest.mark.parametrize(("top", "end", "side"), [(-50.0, LOW, -1), (80.0, HIGH, 1)])
def test_the_top_beyond_an_end(top, end, side):
    assert search(lambda t: -((t - top) ** 2), LOW, HIGH) == (end, side)


@pytest.mark.parametrize(
    ("left", "right", "slope"),
    [
        (-2.0, 3.0, 1.0),
        (-2.0, 3.0, -1.0),
        (3.0, 5.0, 1.0),
        (-9.0, -4.0, -1.0),
        (20.0, 40.0, 1.0),
        (-39.0, -20.0, -1.0),
        (0.1, 0.2, -1.0),
    ],
)
def test_the_top_where_the_domain_ends(left, right, slope):
    def f(t):
        return slope * t if left <= t <= right else -np.inf

    found, side = search(f, LOW, HIGH)
    assert found == pytest.approx(right if slope > 0 else left, abs=1e-12)
    assert left <= found <= right
    assert side == np.sign(slope)


@pytest.mark.parametrize("top", [-30.0, -0.3, 0.0, 0.05, 12.0])
def test_brackets_hold_the_top(top):
    f = Counted(lambda t: -abs(t - top))
    left, middle, right = _bracket(f, LOW, HIGH)
    assert left <= top <= right
    assert left <= middle <= right
    assert f(middle) >= max(f(left), f(right))
    assert right - left <= 2.0 * abs(top) + 0.5
    assert f.calls <= 30


def test_brackets_stay_between_the_ends():
    for low, high, top in ((-1.0, 1.0, 5.0), (-1.0, 1.0, -5.0), (0.5, 2.0, 0.5), (-3.0, -2.0, -2.5)):
        left, middle, right = _bracket(lambda t, top=top: -((t - top) ** 2), low, high)
        assert low <= left <= middle <= right <= high


def test_the_last_point_of_a_domain():
    f = Counted(lambda t: 0.0 if t <= np.pi else -np.inf)
    found = _last_finite(f, 0.0, 64.0)
    assert found <= np.pi == pytest.approx(found, rel=1e-15)
    assert f.calls <= 60


@pytest.mark.parametrize("top", [-1.5, -0.2, 0.0, 0.3, 2.0])
def test_roots_of_a_derivative(top):
    """F(t z) = sum w (log t z - t z / z*): dF/dt = 0 at t = top."""
    w, u = np.array([1.0, 2.0]), np.log(np.array([1.0, 2.0]))
    level = np.exp(u + top)
    gradient = Counted(lambda z: w * (1.0 / z - 1.0 / level))
    F = Concave(lambda z: float((w * (np.log(z) - z / level)).sum()), gradient)
    found = _root(F, u, LOW, HIGH)
    assert found is None or found == pytest.approx(top, abs=1e-8)
    assert gradient.calls <= 14
    if abs(top) <= 0.5:
        assert found is not None
    assert _root(F, u, top + 0.1, HIGH) is None  # not beyond the ends
    assert _root(Concave(lambda z: float(z.sum()), np.ones_like), u, LOW, HIGH) is None  # it only rises
    steady = Concave(lambda z: float(np.log(z[0])), lambda z: 1.0 / z)  # dF/dt is 1 everywhere
    assert _root(steady, np.zeros(1), LOW, HIGH) is None


def test_sums_of_exponentials_of_any_size():
    for u in (np.array([1e3, 999.0]), np.array([-1e3, -1e3, -1001.0]), np.array([0.5]), np.array([0.0, 1e3])):
        assert log_sum(u) == pytest.approx(np.logaddexp.reduce(u), rel=1e-14)


def test_quotients_of_differences():
    u = np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(
        differences(lambda u: float(np.sin(u) @ [1.0, 2.0, 3.0]), u), np.cos(u) * [1, 2, 3], rtol=1e-8
    )


A, B = np.array([1.0, 0.2, 3.0]), np.array([2.0, 5.0, 0.1])


def logs(z):
    return float((A * np.log(z) - B * z).sum())


@pytest.mark.parametrize("start", [np.ones(3), np.array([1e-6, 1.0, 1e6]), np.full(3, 1e-8)], ids=str)
@pytest.mark.parametrize("gradient", [None, lambda z: A / z - B], ids=["differences", "gradient"])
def test_the_peak_of_logarithms(start, gradient):
    value = Counted(logs)
    found = peak(Concave(value, gradient), start)
    assert found.value == pytest.approx(logs(A / B), rel=1e-9)
    np.testing.assert_allclose(found.point, A / B, rtol=1e-4)
    assert value.calls <= 12_000


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
def test_the_peak_of_many_variables(size, rng):
    """sum a log(z) - 1/2 z'Qz, a > 0: at the top Qz = a / z, and nothing else says where that is."""
    root = rng.normal(size=(12, 12))
    Q, a = root @ root.T / 12.0 + 0.1 * np.eye(12), rng.gamma(1.0, size=12) + 0.1
    F = Concave(
        lambda z: size * float(a @ np.log(z) - 0.5 * z @ Q @ z), lambda z: size * np.asarray(a / z - Q @ z)
    )
    found = peak(F, np.ones(12))
    np.testing.assert_allclose(Q @ found.point, a / found.point, rtol=1e-5)


def test_the_peak_at_bounds():
    """z <= 1: a kink for every coordinate."""
    found = peak(
        Concave(lambda z: float(np.log(z).sum()) if (z <= 1.0).all() else -np.inf), np.array([0.1, 0.5, 0.9])
    )
    assert found.value == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(found.point, 1.0, rtol=1e-6)


def test_no_peak_is_infinite():
    for rate in (1e-35, 1.0, 1e20):
        assert peak(Concave(lambda z, rate=rate: rate * float(z.sum())), np.ones(2)).value == np.inf
    assert peak(Concave(lambda z: -float((1.0 / z).sum())), np.ones(2)).value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("edge", [None, lambda z: (-np.log(z.sum()), -z / z.sum())], ids=["found", "given"])
def test_the_peak_on_a_simplex(edge):
    found = peak(
        Concave(lambda z: float(A @ np.log(z)) if z.sum() <= 1.0 + 1e-12 else -np.inf, None, edge), np.ones(3)
    )
    share = A / A.sum()
    assert found.value == pytest.approx(float(A @ np.log(share)), rel=1e-6)
    np.testing.assert_allclose(found.point, share, rtol=1e-2)


def test_the_peak_where_the_domain_begins():
    """A'log(z) - 10 sum(z) on 1 <= sum(z) <= 100: falls along every ray, and is most at its beginning."""
    found = peak(
        Concave(lambda z: float(A @ np.log(z)) - 10.0 * z.sum() if 1.0 <= z.sum() <= 100.0 else -np.inf),
        np.full(3, 2.0),
    )
    share = A / A.sum()
    assert found.value == pytest.approx(float(A @ np.log(share)) - 10.0, rel=1e-6)
    np.testing.assert_allclose(found.point, share, rtol=1e-2)


@pytest.mark.parametrize("gradient", [None, lambda z: A / z - B], ids=["differences", "gradient"])
def test_the_peak_inside_of_an_edge(gradient):
    """z_1 + z_2 + z_3 <= 100, and the peak far from it."""
    F = Concave(
        lambda z: logs(z) if z.sum() <= 100.0 else -np.inf,
        gradient,
        lambda z: (np.log(100.0 / z.sum()), -z / z.sum()),
    )
    found = peak(F, np.ones(3))
    assert found.value == pytest.approx(logs(A / B), rel=1e-8)
    np.testing.assert_allclose(found.point, A / B, rtol=1e-3)


@pytest.mark.parametrize("gradient", [None, lambda z: 1.0 / z - 1.0 / 3.0], ids=["differences", "gradient"])
@pytest.mark.parametrize("start", [0.02, 1.0, 2.9, 3.9])
def test_the_peak_before_an_edge(start, gradient):
    """log(z) - z / 3 on z <= 4: more at the edge than far inside, and most at 3."""
    F = Concave(
        lambda z: float(np.log(z[0]) - z[0] / 3.0) if z[0] <= 4.0 + 1e-12 else -np.inf,
        gradient,
        lambda z: (float(np.log(4.0 / z[0])), -np.ones(1)),
    )
    t, side = search_ray(F, np.log([start]), LOW, float(np.log(4.0 / start)))
    assert side == 0
    assert t == pytest.approx(np.log(3.0 / start), abs=1e-6)
    found = peak(F, np.array([start]))
    assert found.value == pytest.approx(np.log(3.0) - 1.0, rel=1e-9)
    np.testing.assert_allclose(found.point, 3.0, rtol=1e-4)


@pytest.mark.parametrize("start", [0.5, 1.9, 2.0])
def test_the_peak_where_the_domain_ends_before_the_slope_does(start):
    """log(z) - z / 3 on z <= 2: its gradient goes on to the top at 3, which is outside."""
    F = Concave(
        lambda z: float(np.log(z[0]) - z[0] / 3.0) if z[0] <= 2.0 else -np.inf, lambda z: 1.0 / z - 1.0 / 3.0
    )
    assert _root(F, np.log([start]), LOW, HIGH) is None
    assert peak(F, np.array([start])).value == pytest.approx(np.log(2.0) - 2.0 / 3.0, rel=1e-6)


def test_the_peak_of_a_function_without_scale():
    found = peak(
        Concave(lambda z: float(A @ np.log(z / z.sum())), scale_free=True), np.array([1.0, 9.0, 0.1])
    )
    assert found.value == pytest.approx(float(A @ np.log(A / A.sum())), rel=1e-8)
    assert found.point.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found.point, A / A.sum(), rtol=1e-3)


def test_what_is_not_a_number_is_outside():
    F = Concave(lambda z: np.nan if z[0] > 1.0 else float(z[0]))
    assert F.at(np.array([0.5])) == -np.inf
    assert F.at(np.array([-0.5])) == pytest.approx(np.exp(-0.5))
    assert np.isfinite(Concave(lambda z: float(np.log(z).sum())).at(np.array([1e4, -1e4])))


def test_slopes_in_logarithms():
    for gradient in (None, lambda z: A / z - B):
        u = np.array([0.1, -0.4, 0.7])
        np.testing.assert_allclose(Concave(logs, gradient).slope(u), A - B * np.exp(u), rtol=1e-7)
    # from two points inside, linear slopes are exact
    F = Concave(lambda z: float(-0.5 * np.log(z) @ np.log(z)), lambda z: -np.log(z) / z)
    np.testing.assert_allclose(F.slope_inside(np.array([1.0, 2.0]), -0.1), [-1.0, -2.0], rtol=1e-9)


def test_one_sweep_goes_up_and_says_by_how_much():
    F, u = Concave(logs), np.zeros(3)
    before = F.at(u)
    swept, gained = sweep(F, u, before)
    assert F.at(swept) == pytest.approx(before + gained)
    assert gained > 0.0
    np.testing.assert_allclose(np.exp(swept), A / B, rtol=1e-6)  # coordinates do not depend on one another
    assert sweep(Concave(logs, lambda z: A / z - B), u, before)[1] == 0.0


def test_climbing_ends_where_the_slope_is_zero():
    scales = np.array([LOW, HIGH])
    value = Counted(logs)
    u, top = climb(Concave(value, lambda z: A / z - B), np.array([2.0, -3.0, 0.5]), scales)
    assert top == pytest.approx(logs(A / B), rel=1e-10)
    np.testing.assert_allclose(A - B * np.exp(u), 0.0, atol=1e-6)
    assert value.calls <= 2_000
