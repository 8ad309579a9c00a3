"""THE primal value, dual value and duality gap, for every convex pair of loss and regulariser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._typing import FloatArray
from ..gram import Gram
from ..regularizers import Regularizer
from .problem import UNIT, Problem, best_intercept

if TYPE_CHECKING:
    from .base import State

#: least gain of a model to which a gap may be relative, as a share of P - C least
LEAST_GAIN = 1e-4

#: share of the terms of alpha' K alpha below which an optimum with sum(alpha) != 0 counts as zero
ZERO = 1e-12


@dataclass(frozen=True)
class Certificate:
    """A primal and a dual value around the optimum.

    Attributes
    ----------
    primal, dual : float
        P >= optimum >= D; D allows for rounding.
    gap : float
        (P - D) / scale.
    scale : float
        |P|; or, for a loss that couples samples, what a model can gain (`scale_of`); or, where both P and D
        are zero up to rounding, the size of the terms that they are sums of.
    rounding : float
        The part of `gap` that is only a bound on the effect of rounding.
    intercept : ndarray of shape (c,)
    norms, dual_norms : ndarray of shape (M,)
        n_m = d_m r_m and r_m = sqrt(alpha' K_m alpha).
    machine_primal, machine_dual : float
        The same two values for the machine at these weights, around its value J(d).
    """

    primal: float
    dual: float
    gap: float
    scale: float
    rounding: float
    intercept: FloatArray
    norms: FloatArray
    dual_norms: FloatArray
    machine_primal: float
    machine_dual: float

    @property
    def machine_gap(self) -> float:
        """The part of the gap that the machine at these weights leaves."""
        return relative(self.machine_primal - self.machine_dual, self.scale)

    @property
    def is_rounding(self) -> bool:
        """Whether nearly all of the gap may be rounding: then no machine will do better."""
        return self.rounding > 0.9 * self.gap


def certificate(
    problem: Problem,
    gram: Gram,
    regularizer: Regularizer,
    alpha: FloatArray,
    weights: FloatArray,
    fitted: FloatArray | None = None,
    squares: FloatArray | None = None,
    norms: FloatArray | None = None,
) -> Certificate:
    """Primal and dual values at (alpha, weights), and the gap between them.

        f = sum_m d_m K_m alpha + b,  n_m = d_m r_m,  r_m^2 = s_m = alpha' K_m alpha
        P = sum_i C_i V(y_i, f_i) + Omega(n)        D = -sum_i C_i V*(y_i, -alpha_i / C_i) - Omega*(r)

    Weak duality, P >= D for every feasible alpha, makes P - D a bound on the distance of both to the optimum.
    It is not computed by subtraction but as the sum of `difference`, whose terms are not negative, and a
    bound on the effect of rounding on them (`Rounding`). The relative gap does not depend on the units of
    targets, kernels and costs.

    The V* of a loss that couples samples is known at one point only, alpha = -C V'(f) for the predictions f.
    That point is certified, with f from the functions of the given alpha.

    Matrices that are positive semidefinite only for vectors of sum zero (`SphereGram`) have no functions that
    could be given other weights. For them P has 1/2 sum_m d_m s_m + 1/2 h(d) in place of Omega(n), which is
    no larger. It bounds J(d) from above because s_m is convex in alpha of a given sum.

    Parameters
    ----------
    problem, gram, regularizer
        What is being solved.
    alpha : ndarray of shape (n, c)
        Feasible dual variables.
    weights : ndarray of shape (M,)
    fitted, squares : ndarray, optional
        sum_m d_m K_m alpha and s, if the caller has them already.
    norms : ndarray of shape (M,), optional
        n_m of functions other than those of alpha; then `fitted` holds their values. Any functions have a
        primal value, and any feasible alpha has a dual value.
    """
    fitted = gram.dot(weights, alpha) if fitted is None else fitted
    squares = check_squares(gram.quad(alpha) if squares is None else squares, gram, alpha)
    intercept = best_intercept(problem, fitted)
    if not problem.loss.separable:  # the dual point belongs to f, not to its functions
        norms = weights * np.sqrt(squares) if norms is None else norms
        alpha = problem.alpha_of(fitted + intercept)
        squares = check_squares(gram.quad(alpha), gram, alpha)
    energy, own = 0.5 * float(weights @ squares), norms is None
    products = 2.0 * energy if own else float(np.vdot(alpha, fitted))
    noise = Rounding.of(gram, weights, alpha, fitted, products if own else None)
    dual_norms = np.sqrt(squares)
    norms = weights * dual_norms if norms is None else norms
    machine_energy = energy
    if not own:  # 1/2 sum_m n_m^2 / d_m
        shares = np.divide(norms**2, weights, out=np.zeros_like(norms), where=weights > 0)
        machine_energy = 0.5 * float(shares.sum())
    f, primal_loss = fitted + intercept, problem.primal_loss(fitted, intercept)

    def omega(norms: FloatArray, energy: float) -> float:
        return energy + 0.5 * regularizer.price(weights) if gram.conditional else regularizer.penalty(norms)

    primal = primal_loss + omega(norms, energy)
    # an intercept of another size costs f some digits
    spread = noise.of_fitted + np.minimum(UNIT * np.abs(f), np.abs(fitted))
    bounds = np.sqrt(squares + noise.of_squares)
    most = weights * bounds if own else norms  # a norm is the root of a number that rounding may have made 0
    largest = omega(most, energy + 0.5 * float(weights @ noise.of_squares))
    misfit, largest_misfit = (float(problem.misfit(alpha, f, how).sum()) for how in (None, spread))
    parts = (spread, largest, bounds, products, largest_misfit)
    apart = difference(problem, regularizer, alpha, f, *parts)
    rounding = largest_misfit - misfit + 0.5 * float(weights @ noise.of_squares)
    machine_primal, dual = primal_loss + machine_energy, primal - apart
    # a concave penalty has logarithms, which may have any sign
    convex = regularizer.convex
    scale = scale_of(problem, primal if convex else machine_primal, dual, noise.size)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=relative(primal - dual, scale),
        scale=scale,
        rounding=relative(rounding, scale),
        intercept=intercept,
        norms=norms,
        dual_norms=dual_norms,
        machine_primal=machine_primal,
        machine_dual=primal_loss - misfit - energy + products,
    )


def difference(
    problem: Problem,
    regularizer: Regularizer,
    alpha: FloatArray,
    f: FloatArray,
    spread: FloatArray | None,
    omega: float,
    dual_norms: FloatArray,
    products: float,
    misfit: float | None = None,
) -> float:
    """P - D as a sum of terms that are not negative: the slack in two applications of Fenchel's inequality.

        P - D = sum_i [C_i V(y_i, f_i) + C_i V*(y_i, -alpha_i / C_i) + alpha_i f_i]
                + [Omega(n) + Omega*(r) - sum_m <alpha, f_m>]

    The terms vanish at the optimum, and so do their derivatives, unlike those of P and D: errors of f and r
    count only by their squares (and at kinks). A second bracket below zero is an error of arithmetic, and
    counts as much as a positive one.

    Where Omega*(r) is infinite, D is taken at the nearest multiple of alpha where it is finite. The result is
    +inf when there is no such multiple (alpha with a fixed sum cannot shrink), when alpha is not feasible, or
    when Omega has no conjugate.

    Parameters
    ----------
    problem, regularizer, alpha
        As in `certificate`.
    f : ndarray of shape (n, c)
        Predictions, intercept included.
    spread : ndarray or None
        How far rounding may have moved f.
    omega : float
        Omega(n).
    dual_norms : ndarray of shape (M,)
        r.
    products : float
        sum_m <alpha, f_m>, with f_m on the samples: sum_m d_m s_m for the functions of alpha.
    misfit : float, optional
        The first sum, for alpha itself, if the caller has it already.
    """
    if not regularizer.convex or not problem.has_right_sum(alpha):
        return np.inf
    share = regularizer.dual_scale(dual_norms)
    if share != 1.0 and problem.fit_intercept and problem.loss.alpha_sum != 0.0:
        return np.inf
    blocks = omega + regularizer.conjugate(share * dual_norms) - share * products
    if misfit is None or share != 1.0:
        misfit = float(problem.misfit(alpha, f, spread, share).sum())
    return misfit + abs(blocks)


@dataclass(frozen=True)
class Rounding:
    """The effect that rounding can have had on K_d alpha and alpha' K_m alpha.

    Entries of K are off by about a unit u of rounding, |K_ij| <= k_i k_j with k_i = sqrt(K_ii), and sums over
    them by about as much, since errors rarely all have the same sign:

        (K alpha)_i       by  u k_i |k alpha|_1
        alpha' K alpha    by  u |k alpha|_1 |k alpha|_2

    u is the unit of double precision, or larger where sum_m d_m s_m and alpha' (K_d alpha), the same number
    computed in two ways, differ by more.

    Attributes
    ----------
    of_fitted : ndarray of shape (n, c) or (1, c)
        Error of K_d alpha.
    of_squares : ndarray of shape (M,)
        Error of alpha' K_m alpha.
    size : float
        |k alpha|_1^2 of K_d, the size of the terms of alpha' K_d alpha.
    """

    of_fitted: FloatArray
    of_squares: FloatArray
    size: float

    @classmethod
    def of(
        cls,
        gram: Gram,
        weights: FloatArray,
        alpha: FloatArray,
        fitted: FloatArray,
        products: float | None = None,
    ) -> Rounding:
        """The rounding of an iterate; `products` = sum_m d_m s_m if `fitted` is K_d alpha."""
        diagonals = gram.diagonals()
        own = weights @ diagonals if len(diagonals) > 1 else weights.sum() * diagonals[0]
        (total,), (length,) = _lengths(own[None, :], alpha)
        off = 0.0 if products is None else abs(float(np.vdot(alpha, fitted)) - products)
        unit = max(UNIT, relative(off, float(total @ length))) if off > 0.0 else UNIT
        of_squares = unit * np.multiply(*_lengths(diagonals, alpha)).sum(axis=1) * np.ones(len(weights))
        return cls(unit * np.sqrt(own)[:, None] * total, of_squares, float((total**2).sum()))


def _lengths(diagonals: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """|k alpha|_1 and |k alpha|_2 of all matrices and outputs, from their diagonals k^2, (M, n) or (M, 1)."""
    if diagonals.shape[1] == 1:
        k = np.sqrt(diagonals)
        return k * np.abs(alpha).sum(axis=0), k * np.linalg.norm(alpha, axis=0)
    return np.sqrt(diagonals) @ np.abs(alpha), np.sqrt(diagonals @ alpha**2)


def scale_of(problem: Problem, primal: float, dual: float, size: float) -> float:
    """What the gap is relative to: |P|, or, for a loss that couples samples, what the model can gain.

    Such a loss may have a part that is nearly the same for every model, such as the logarithms of the sizes
    of risk sets in a partial likelihood: relative to that, every gap would be small. With L(0) the loss of
    the best constant, C L(0) - D bounds what any model gains over it, and the gap is relative to

        min(P - C least, max(C L(0) - D, 1e-4 (P - C least)))

    The first applies where L has nearly vanished, the last where there is nothing to gain but rounding.

    Only in a problem with sum(alpha) = alpha_sum != 0 does P have terms of both signs, so that the optimum
    may be zero although the terms are not small. P and D are then rounding, without any correct digit. Where
    both are below a share `ZERO` of the size of the terms of alpha' K_d alpha, the gap is relative to that
    size.
    """
    cancels = problem.loss.alpha_sum != 0.0 and max(abs(primal), abs(dual)) <= ZERO * size
    if cancels or problem.loss.separable:
        return size if cancels else abs(primal)
    left = abs(primal - problem.floor)
    return min(left, max(problem.ceiling - dual, LEAST_GAIN * left))


def relative(part: float, size: float) -> float:
    """`part` relative to |size|; 0 relative to 0 is 0."""
    if size == 0.0:
        return 0.0 if part == 0.0 else float(np.copysign(np.inf, part))
    return float(part / abs(size))


def check_squares(squares: FloatArray, gram: Gram, alpha: FloatArray) -> FloatArray:
    """s with rounding below zero removed; a truly negative entry is refused: K_m is not a kernel."""
    if not np.isfinite(squares).all():
        raise FloatingPointError("alpha' K alpha is not finite: check the kernels for overflow.")
    worst = int(squares.argmin())
    below = -1e-6 * max(float(squares.max()), 0.0)
    if squares[worst] < below and squares[worst] < -_negligible(gram, alpha, worst):
        raise ValueError(
            f"kernel {worst} is not positive semidefinite: alpha' K alpha = {squares[worst]:.3g} for the "
            "current alpha. Repair the matrix (for example by clipping its negative eigenvalues) or drop it."
        )
    return np.maximum(squares, 0.0)


def _negligible(gram: Gram, alpha: FloatArray, kernel: int) -> float:
    """How far rounding takes alpha' K alpha below 0: a share of sum_ij |alpha_i alpha_j| sqrt(K_ii K_jj).

    Entries of a centred kernel carry the rounding of the entries before centring, which may be far larger,
    and those of a matrix in single precision that of their precision.
    """
    diagonal = gram.diag(np.eye(1, gram.n_kernels, kernel)[0])
    columns = np.abs(alpha).reshape(len(diagonal), -1)
    share = 1e-6 if gram.rounds or gram.centred or gram.single else 1e-12
    return share * float(((np.sqrt(np.maximum(diagonal, 0.0)) @ columns) ** 2).sum())


def full_rank_gap(problem: Problem, regularizer: Regularizer, state: State, missing: FloatArray) -> float:
    """A bound on the relative duality gap of the problem with the exact kernels.

    Factors approximate from below, Z_m Z_m' <= K_m. Every function of the factors is a function of the
    kernel, with no larger norm, so the primal value P of the approximated problem bounds the optimum from
    above. And

        alpha' K_m alpha = alpha' Z_m Z_m' alpha + alpha' (K_m - Z_m Z_m') alpha

    with the last term bounded by `missing` gives a dual value that bounds it from below.

    Parameters
    ----------
    problem, regularizer
        What was solved.
    state : State
        The solution with factors.
    missing : ndarray of shape (M,)
        Bounds of the last term; for a loss that couples samples, at alpha = -C V'(f).

    Returns
    -------
    gap : float
        (P - D) / scale; NaN where no bound is known.
    """
    if not np.isfinite(missing).all():
        return np.nan
    alpha, squares, proof = state.alpha, np.maximum(state.squares, 0.0), state.certificate
    f = state.fitted + proof.intercept
    if not problem.loss.separable:
        alpha, squares = problem.alpha_of(f), proof.dual_norms**2
    dual_norms, products = np.sqrt(squares + missing), float(np.vdot(alpha, state.fitted))
    omega = regularizer.penalty(proof.norms)
    apart = difference(problem, regularizer, alpha, f, None, omega, dual_norms, products)
    return relative(apart, proof.scale) if np.isfinite(apart) else np.nan
