"""What every weight regulariser promises, from the definitions of Omega and Omega*."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from .._typing import FloatArray
from ..regularizers import Regularizer
from ._contract import Contract, draws, expect, expect_clone, needs

contract = Contract()  # convex, weights of given norms
concave = Contract()  # penalties that are concave in the squared norms
ascending = Contract()  # convex, weights of given dual norms

SLACK = 1.0 + 1e-8  # prices forgive rounding of this order


def check_regularizer(regularizer: Regularizer, n_kernels: int = 5) -> None:
    """Check a regulariser: price, penalty, weights and conjugate belong to one function h(d).

        Omega(n)  = min_{d>=0} 1/2 sum_m n_m^2 / d_m + 1/2 h(d)      penalty, weights
        Omega*(r) = max_{d>=0} 1/2 sum_m d_m r_m^2 - 1/2 h(d)        conjugate

    The weights attain the penalty and no others do better, Omega(n) + Omega*(r) >= n'r with equality where
    d r = n, and the abilities of the regulariser agree with differences of its price. Concave penalties
    have neither price nor conjugate: their tangents are checked.

    Parameters
    ----------
    regularizer : Regularizer
    n_kernels : int, default=5
        Number of kernels that the parameters of the regulariser are for.

    Raises
    ------
    AssertionError
        Names the property that does not hold, and the regulariser.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.regularizers import LogTerm, LpNorm, Uniform
    >>> from kernelweave.testing import check_regularizer
    >>> check_regularizer(LpNorm(p=1.5))
    >>> check_regularizer(LogTerm())
    >>> class Halved(Uniform):
    ...     def weights(self, norms):
    ...         return np.full_like(norms, 0.5)
    >>> check_regularizer(Halved())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: Halved() breaks the contract, penalty is reached at the weights: ...
    """
    kind = concave if not regularizer.convex else ascending if _ascends(regularizer) else contract
    kind.check(regularizer, regularizer, n_kernels)


def _ascends(regularizer: Regularizer) -> bool:
    return regularizer.ascends


def _norms(n_kernels: int, count: int = 20) -> FloatArray:
    """Norms of the components of some functions."""
    return draws().gamma(1.0, size=(count, n_kernels)) + 0.01


def _joint(regularizer: Regularizer, n: FloatArray, d: FloatArray) -> float:
    """1/2 sum n^2 / d + 1/2 h(d), what Omega(n) minimises; 0 / 0 counts as 0."""
    ratio = np.divide(n**2, d, out=np.where(n > 0, np.inf, 0.0), where=(n > 0) & (d > 0))
    return 0.5 * float(ratio.sum()) + 0.5 * regularizer.price(d)


def _gain(regularizer: Regularizer, r: FloatArray, d: FloatArray) -> float:
    """1/2 sum d r^2 - 1/2 h(d), what Omega*(r) maximises."""
    return 0.5 * float(d @ r**2) - 0.5 * regularizer.price(d)


def _feasible(regularizer: Regularizer, n_kernels: int, count: int = 100) -> FloatArray:
    """Random weights of finite price, many of them on the edge of the set where it is finite."""
    rng = draws()
    points = rng.gamma(0.5, size=(count, n_kernels)) + 1e-9
    points[::3] = -np.sort(-points[::3], axis=1)  # some in decreasing order, for ordered weights
    edges = np.array([_edge(regularizer, point, 30) for point in points])
    depth = np.where(np.arange(count) % 2 == 0, 1.0, rng.uniform(size=count))
    return np.asarray(points * (edges * depth)[:, None])


def _edge(regularizer: Regularizer, point: FloatArray, steps: int = 48) -> float:
    """The largest t in [0, 1e3] at which t * point has a finite price, from below."""
    low, high = 0.0, 1e3
    if np.isfinite(regularizer.price(high * point)):
        return high
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.isfinite(regularizer.price(middle * point)) else (low, middle)
    return low


def _any_count(regularizer: Regularizer) -> None:
    """Skip where the parameters fix the number of kernels."""
    if any(np.ndim(getattr(regularizer, parameter)) > 0 for parameter in regularizer.per_kernel):
        raise SkipTest(f"{type(regularizer).__name__} has parameters per kernel")


# -- penalty and weights ------------------------------------------------------------------------


@contract.promise
def penalty_is_reached_at_the_weights(regularizer: Regularizer, n_kernels: int) -> None:
    """1/2 sum_m n_m^2 / d_m + 1/2 h(d) = Omega(n) at d = weights(n)."""
    for n in _norms(n_kernels):
        d = regularizer.weights(n)
        expect(d.shape == n.shape and (d >= 0).all(), f"weights {d}")
        assert_allclose(_joint(regularizer, n, d), regularizer.penalty(n), rtol=1e-9)


@contract.promise
def a_multiple_takes_weights_to_those_of_a_model(regularizer: Regularizer, n_kernels: int) -> None:
    """For d = weights(n) it is 1, or None; for d near them, price(c d) is finite, c = multiple(d)."""
    rng = draws()
    for n in _norms(n_kernels):
        d = regularizer.weights(n)
        assert_allclose(regularizer.multiple(d) or 1.0, 1.0, rtol=1e-8)
        near = d * np.exp(0.02 * rng.normal(size=n_kernels))
        c = regularizer.multiple(near)
        expect(c is None or np.isfinite(regularizer.price(c * near)), f"h({c} * {near}) is infinite")


@contract.promise
def no_feasible_weights_do_better(regularizer: Regularizer, n_kernels: int) -> None:
    """Omega(n) <= 1/2 sum_m n_m^2 / d_m + 1/2 h(d) for every d."""
    candidates = _feasible(regularizer, n_kernels)
    for n in _norms(n_kernels, 8):
        least = min(_joint(regularizer, n, d) for d in candidates)
        expect(regularizer.penalty(n) <= least * SLACK, f"{regularizer.penalty(n)} > {least}")


@contract.promise
def no_small_change_of_the_weights_does_better(regularizer: Regularizer, n_kernels: int) -> None:
    """The weights are a local minimum, also for moves that are scaled back into the domain."""
    rng = draws()
    for n in _norms(n_kernels, 8):
        d, best = regularizer.weights(n), regularizer.penalty(n)
        for size in (1e-1, 1e-3):
            moved = d * np.exp(size * rng.normal(size=(20, n_kernels)))
            rays = np.geomspace(1.0, 1.0 - 2.0 * size, 8)
            least = min(_joint(regularizer, n, t * point) for point in moved for t in rays)
            expect(best <= least * SLACK, f"{best} > {least}")


@contract.promise
def weights_are_norms_over_the_slope_of_the_penalty(regularizer: Regularizer, n_kernels: int) -> None:
    """d_m = n_m / (dOmega / dn_m), by differences."""
    step = 1e-6
    for n in _norms(n_kernels, 5):
        shifts = step * np.eye(n_kernels)
        slope = [(regularizer.penalty(n + e) - regularizer.penalty(n - e)) / (2 * step) for e in shifts]
        assert_allclose(regularizer.weights(n), n / np.array(slope), rtol=1e-5)


@contract.promise
def no_norms_cost_nothing(regularizer: Regularizer, n_kernels: int) -> None:
    """Omega(0) = Omega*(0) = 0, and the weights at n = 0 are feasible."""
    zero = np.zeros(n_kernels)
    d = regularizer.weights(zero)
    expect(regularizer.penalty(zero) == 0)
    expect(regularizer.conjugate(zero) == 0)
    expect(np.isfinite(d) & (d >= 0), f"weights {d}")
    expect(np.isfinite(regularizer.price(d)), f"h({d}) is infinite")


@contract.promise
def a_component_without_norm_costs_nothing(regularizer: Regularizer, n_kernels: int) -> None:
    """Omega(n, 0) = Omega(n)."""
    _any_count(regularizer)
    for n in _norms(n_kernels, 5):
        padded = np.append(n, 0.0)
        d = regularizer.weights(padded)
        expect(np.isfinite(d), f"weights {d}")
        assert_allclose(regularizer.penalty(padded), regularizer.penalty(n), rtol=1e-9)
        assert_allclose(_joint(regularizer, padded, d), regularizer.penalty(padded), rtol=1e-9)


@contract.promise
@ascending.promise
def initial_weights_are_feasible_and_positive(regularizer: Regularizer, n_kernels: int) -> None:
    """Solvers start from the weights of equal norms, whose price is finite."""
    counts = [n_kernels]
    if not any(np.ndim(getattr(regularizer, parameter)) > 0 for parameter in regularizer.per_kernel):
        counts += [1, 3, 50]
    for count in counts:
        d = regularizer.initial_weights(count)
        expect(d.shape == (count,) and (d > 0).all(), f"weights {d}")
        expect(np.isfinite(regularizer.price(d)))
        if not _ascends(regularizer):
            assert_allclose(d, regularizer.weights(np.ones(count)))


@contract.promise
def price_does_not_fall_as_weights_grow(regularizer: Regularizer, n_kernels: int) -> None:
    """h(t d) is not decreasing in t."""
    for d in draws().gamma(1.0, size=(10, n_kernels)):
        prices = [regularizer.price(t * d) for t in (1e-3, 1e-1, 1.0, 10.0, 1e3)]
        expect(prices == sorted(prices), f"prices {prices}")


@contract.promise
def price_slopes_are_derivatives_of_the_price(regularizer: Any, n_kernels: int) -> None:
    """h' and h'' in the coordinates z of d = T z, by differences, inside of the domain."""
    needs(regularizer, "price_slopes")
    T = regularizer.generators(n_kernels)
    T = np.diag(T) if np.ndim(T) == 1 else T
    step = 1e-4
    for z in draws().uniform(0.2, 1.0, size=(5, n_kernels)):
        z = z * min(1.0, 0.5 * _edge(regularizer, T @ z))
        slopes, curvatures = regularizer.price_slopes(z)
        here, shifts = regularizer.price(T @ z), step * np.eye(n_kernels)
        pairs = [(regularizer.price(T @ (z - e)), regularizer.price(T @ (z + e))) for e in shifts]
        assert_allclose(
            slopes, [(above - below) / (2 * step) for below, above in pairs], rtol=1e-5, atol=1e-7
        )
        second = [(above - 2 * here + below) / step**2 for below, above in pairs]
        assert_allclose(curvatures, second, rtol=1e-4, atol=1e-5)


@contract.promise
def shares_of_bent_weights_are_on_the_simplex(regularizer: Any, n_kernels: int) -> None:
    """The price is finite up to where shares sum to one; `bend` has two derivatives, `shares` undoes it."""
    if not regularizer.bent:
        raise SkipTest("weights are linear functions of their coordinates")
    step = 1e-4
    for z in draws().dirichlet(np.ones(n_kernels), size=5):
        weights, slopes, curvatures = regularizer.bend(z)
        assert_allclose(regularizer.shares(weights), z, rtol=1e-9)
        expect(regularizer.price(weights) == 0 and regularizer.price(1.001 * weights) == np.inf)
        below, above = (regularizer.bend((1.0 + sign * step) * z) for sign in (-1.0, 1.0))
        assert_allclose(slopes, (above[0] - below[0]) / (2 * step * z), rtol=1e-5)
        assert_allclose(curvatures, (above[1] - below[1]) / (2 * step * z), rtol=1e-4, atol=1e-6)


@contract.promise
def weights_stay_below_their_bound(regularizer: Regularizer, n_kernels: int) -> None:
    """No norms have weights above `max_weight`, of which solvers make no more."""
    for n in _norms(n_kernels, 5):
        top = float(max(regularizer.weights(size * n).max() for size in (1e-3, 1.0, 1e3, 1e6)))
        expect(top <= regularizer.max_weight * SLACK, f"weight {top}")


@contract.promise
def tied_coordinates_are_on_the_simplex(regularizer: Any, n_kernels: int) -> None:
    """Where rules say that they are tied, coordinates of sum one cost nothing, and more are refused."""
    if not regularizer.tied or regularizer.bent:
        raise SkipTest("nothing ties coordinates, or shares of bent weights are checked")
    T = regularizer.generators(n_kernels)
    T = np.diag(T) if np.ndim(T) == 1 else T
    for z in draws().dirichlet(np.ones(n_kernels), size=5):
        expect(regularizer.price(T @ z) == 0 and regularizer.price(1.001 * T @ z) == np.inf)


# -- conjugate ----------------------------------------------------------------------------------


@contract.promise
def conjugate_bounds_every_feasible_gain(regularizer: Regularizer, n_kernels: int) -> None:
    """Omega*(r) >= 1/2 sum_m d_m r_m^2 - 1/2 h(d) for every d."""
    candidates = _feasible(regularizer, n_kernels)
    for r in _norms(n_kernels, 8):
        most = max(_gain(regularizer, r, d) for d in candidates)
        expect(regularizer.conjugate(r) * SLACK + 1e-7 >= most, f"{regularizer.conjugate(r)} < {most}")


@contract.promise
def conjugate_is_reached_over_two_kernels(regularizer: Regularizer, n_kernels: int) -> None:
    """Omega*(r) is the largest gain over the edge of the feasible set, where h is a constraint."""
    two = regularizer.select(np.arange(2), n_kernels)
    if two.price(1e-3 * np.ones(2)) != 0:
        raise SkipTest("h is more than a constraint: edges are not optimal")
    for r in draws().gamma(1.0, size=(4, 2)):

        def lost(angle: float, r: FloatArray = r) -> float:
            ray = np.array([np.cos(angle), np.sin(angle)])
            return -_gain(two, r, _edge(two, ray) * ray)

        # a linear function has no second maximum on the edge of a convex set
        found = minimize_scalar(lost, bounds=(0.0, np.pi / 2), method="bounded", options={"xatol": 1e-9})
        assert_allclose(two.conjugate(r), -found.fun, rtol=1e-6)


@contract.promise
@ascending.promise
def fenchel_young_inequality(regularizer: Regularizer, n_kernels: int) -> None:
    """Omega(n) + Omega*(r) >= n'r: weak duality."""
    norms, dual_norms = _norms(n_kernels), draws().gamma(1.0, size=(50, n_kernels))
    penalties = np.array([regularizer.penalty(n) for n in norms])
    conjugates = np.array([regularizer.conjugate(r) for r in dual_norms])
    slack = SLACK * (penalties[:, None] + conjugates) - norms @ dual_norms.T
    expect(slack >= 0, f"{-slack.min():.3g} is missing")


@contract.promise
def fenchel_young_equality_where_d_r_is_n(regularizer: Regularizer, n_kernels: int) -> None:
    """Omega(n) + Omega*(r) = n'r and Omega*(r) = 1/2 sum_m d_m r_m^2 - 1/2 h(d), at r = n / d."""
    for n in _norms(n_kernels):
        d = regularizer.weights(n)
        r = n / d
        assert_allclose(regularizer.penalty(n) + regularizer.conjugate(r), n @ r, rtol=1e-9, atol=1e-12)
        assert_allclose(regularizer.conjugate(r), _gain(regularizer, r, d), rtol=1e-9, atol=1e-12)


@contract.promise
@ascending.promise
def a_multiple_of_dual_norms_has_a_finite_conjugate(regularizer: Regularizer, n_kernels: int) -> None:
    """dual_scale(r) is the largest c <= 1 for which Omega*(c r) is finite."""
    for r in 3.0 * _norms(n_kernels, 5):
        scale = regularizer.dual_scale(r)
        expect(0 < scale <= 1, f"dual_scale {scale}")
        expect(np.isfinite(regularizer.conjugate(scale * r)))
        expect(scale == 1.0 or regularizer.conjugate(1.001 * scale * r) == np.inf)


@contract.promise
@ascending.promise
def weights_of_dual_norms_reach_fenchel_young(regularizer: Any, n_kernels: int) -> None:
    """Omega(n) + Omega*(r) = n'r at n = d r, d = weights_from_dual(r), whose price is finite."""
    if regularizer.sparse or not hasattr(regularizer, "weights_from_dual"):
        raise SkipTest(f"{regularizer} has no weights of given dual norms")
    for r in _norms(n_kernels):
        d = regularizer.weights_from_dual(r)
        expect(np.isfinite(regularizer.price(d)))
        assert_allclose(regularizer.penalty(d * r) + regularizer.conjugate(r), (d * r) @ r, rtol=1e-9)


# -- concave penalties --------------------------------------------------------------------------


@concave.promise
def weights_are_inverse_slopes(regularizer: Regularizer, n_kernels: int) -> None:
    """1 / d_m = 2 dg / dx_m, with g the penalty as a function of x = n^2, by differences."""
    step = 1e-6
    for n in _norms(n_kernels):
        x, shifts = n**2 + 0.01, step * np.eye(n_kernels)
        pairs = [(regularizer.penalty(np.sqrt(x - e)), regularizer.penalty(np.sqrt(x + e))) for e in shifts]
        slope = [(above - below) / step for below, above in pairs]
        assert_allclose(1.0 / regularizer.weights(np.sqrt(x)), slope, rtol=1e-5)


@concave.promise
def tangent_majorises_and_touches(regularizer: Regularizer, n_kernels: int) -> None:
    """g(x) <= g(x0) + 1/2 sum_m (x_m - x0_m) / d_m(x0): no step of a machine raises the objective."""
    norms = _norms(n_kernels)
    for n0, n in zip(norms, norms[::-1], strict=True):
        rise = 0.5 * float(((n**2 - n0**2) / regularizer.weights(n0)).sum())
        tangent = regularizer.penalty(n0) + rise
        expect(regularizer.penalty(n) <= tangent + 1e-10 * (1.0 + abs(tangent)))


@concave.promise
def no_norms_have_finite_weights(regularizer: Regularizer, n_kernels: int) -> None:
    """The weights at n = 0 are finite and not negative."""
    weights = regularizer.weights(np.zeros(n_kernels))
    expect(np.isfinite(weights) & (weights >= 0), f"weights {weights}")


@concave.promise
def no_conjugate_is_claimed(regularizer: Regularizer, n_kernels: int) -> None:
    """A concave penalty has no duality gap, and says so."""
    try:
        regularizer.conjugate(np.ones(n_kernels))
    except NotImplementedError:
        return
    raise AssertionError("conjugate() returned a value")


# -- all of them --------------------------------------------------------------------------------


@contract.promise
@concave.promise
@ascending.promise
def select_keeps_what_it_is_told_to(regularizer: Regularizer, n_kernels: int) -> None:
    """Selecting all kernels gives the regulariser itself."""
    same = regularizer.select(np.arange(n_kernels), n_kernels)
    for n in _norms(n_kernels, 3):
        assert_allclose(same.penalty(n), regularizer.penalty(n), rtol=1e-12)


@contract.promise
@concave.promise
@ascending.promise
def clone_and_parameters(regularizer: Regularizer, n_kernels: int) -> None:
    """Clone, get_params and repr agree; `name` is set."""
    expect_clone(regularizer)
    expect(clone(regularizer) is not regularizer, "clone gives the same object")
    expect(bool(regularizer.name))
