"""THE primal value, dual value and duality gap, for every convex pair of loss and regulariser."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray
from ..gram import Gram
from ..regularizers import Regularizer
from .problem import Problem, best_intercept


@dataclass(frozen=True)
class Certificate:
    """A primal and a dual value around the optimum.

    Attributes
    ----------
    primal, dual : float
        P >= optimum >= D.
    gap : float
        (P - D) / |P|.
    intercept : ndarray of shape (c,)
    norms, dual_norms : ndarray of shape (M,)
        n_m = d_m r_m and r_m = sqrt(alpha' K_m alpha).
    machine_primal, machine_dual : float
        The same two values for the machine at these weights, around its value J(d).
    """

    primal: float
    dual: float
    gap: float
    intercept: FloatArray
    norms: FloatArray
    dual_norms: FloatArray
    machine_primal: float
    machine_dual: float

    @property
    def machine_gap(self) -> float:
        """The part of the gap that the machine at these weights has left."""
        return relative(self.machine_primal - self.machine_dual, self.primal)


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
    """Primal and dual values at (alpha, weights), from their definitions.

        f = sum_m d_m K_m alpha + b,  n_m = d_m r_m,  r_m^2 = s_m = alpha' K_m alpha
        P = sum_i C_i V(y_i, f_i) + Omega(n)        D = -sum_i C_i V*(y_i, -alpha_i / C_i) - Omega*(r)

    Weak duality, P >= D for every feasible alpha, makes P - D a bound on the distance of both
    to the optimum.

    Parameters
    ----------
    problem, gram, regularizer
        What is being solved.
    alpha : ndarray of shape (n, c)
        Feasible dual variables.
    weights : ndarray of shape (M,)
    fitted, squares : ndarray, optional
        sum_m d_m K_m alpha and s, when the caller has them already.
    norms : ndarray of shape (M,), optional
        n_m of other functions than those of alpha, whose values `fitted` are then: any functions have a
        primal value, and any feasible alpha a dual one.
    """
    fitted = gram.dot(weights, alpha) if fitted is None else fitted
    squares = check_squares(gram.quad(alpha) if squares is None else squares, gram, alpha)
    dual_norms = np.sqrt(squares)
    energy = dual_energy = 0.5 * float(weights @ squares)
    if norms is None:
        norms = weights * dual_norms
    else:
        energy = 0.5 * float(np.divide(norms**2, weights, out=np.zeros_like(norms), where=weights > 0).sum())
    intercept = best_intercept(problem, fitted)
    primal_loss, dual_loss = problem.primal_loss(fitted, intercept), problem.dual_loss(alpha)
    primal = primal_loss + regularizer.penalty(norms)
    dual = dual_value(problem, regularizer, alpha, dual_norms, dual_loss)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=relative(primal - dual, primal),
        intercept=intercept,
        norms=norms,
        dual_norms=dual_norms,
        machine_primal=primal_loss + energy,
        machine_dual=dual_loss - dual_energy,
    )


def dual_value(
    problem: Problem, regularizer: Regularizer, alpha: FloatArray, dual_norms: FloatArray, dual_loss: float
) -> float:
    """D at alpha, or where Omega*(r) is infinite at the nearest multiple of alpha where it is not.

    -inf when there is none (alpha with a fixed sum cannot shrink), when alpha is not feasible, or
    when Omega has no conjugate.
    """
    if not regularizer.convex or not problem.has_right_sum(alpha):
        return -np.inf
    scale = regularizer.dual_scale(dual_norms)
    if scale == 1.0:
        return dual_loss - regularizer.conjugate(dual_norms)
    if problem.fit_intercept and problem.loss.alpha_sum != 0.0:
        return -np.inf
    return problem.dual_loss(scale * alpha) - regularizer.conjugate(scale * dual_norms)


def relative(difference: float, value: float) -> float:
    """`difference` relative to |value|."""
    return float(difference / max(abs(value), 1e-12))


def check_squares(squares: FloatArray, gram: Gram, alpha: FloatArray) -> FloatArray:
    """s with rounding below zero removed; a truly negative entry means a kernel that is none."""
    if not np.isfinite(squares).all():
        raise FloatingPointError("alpha' K alpha is not finite: check the kernels for overflow.")
    worst = int(squares.argmin())
    below = -1e-6 * max(float(squares.max()), 1e-12)
    if squares[worst] < below and squares[worst] < -_rounding(gram, alpha, worst):
        raise ValueError(
            f"kernel {worst} is not positive semidefinite: alpha' K alpha = {squares[worst]:.3g} for the "
            "current alpha. Repair the matrix (for example by clipping its negative eigenvalues) or drop it."
        )
    return np.maximum(squares, 0.0)


def _rounding(gram: Gram, alpha: FloatArray, kernel: int) -> float:
    """What rounding can make of alpha' K alpha: a share of sum_ij |alpha_i| |alpha_j| sqrt(K_ii K_jj)."""
    diagonal = gram.diag(np.eye(1, gram.n_kernels, kernel)[0])
    columns = np.abs(alpha).reshape(len(diagonal), -1)
    share = 1e-6 if gram.rounds else 1e-12
    return share * float(((np.sqrt(np.maximum(diagonal, 0.0)) @ columns) ** 2).sum())
