"""Are the gradients of a kernel and a penalty right? Finite differences tell, component by component."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._typing import FloatArray
from ...kernels.parametric import ParametricKernel
from ..problem import Problem
from .penalties import Penalty

#: samples looked at, and the relative error that is a mistake
ROWS, TOLERANCE = 40, 1e-4


def check_gradient(
    kernel: ParametricKernel, X: FloatArray, d: FloatArray | None = None, penalty: Penalty | None = None
) -> None:
    """Compare the gradients with finite differences; raise ValueError naming the wrong components.

    Parameters
    ----------
    kernel : ParametricKernel
    X : array-like of shape (n, n_features)
        The first 40 rows are used.
    d : ndarray of shape (n_parameters,), optional
        Where to look; by default the start values.
    penalty : Penalty, optional
        Checked as well.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import ProductRBF
    >>> check_gradient(ProductRBF(), np.arange(6.0).reshape(3, 2))
    """
    kernel = kernel._fitted_on(X)
    rows = np.asarray(X[:ROWS], dtype=np.float64)
    d = kernel.initial(X) if d is None else np.asarray(d, dtype=np.float64)
    d = np.where(d > 0, d, max(float(d.max(initial=0.0)), 1e-3))
    alpha = np.random.RandomState(0).standard_normal((len(rows), 1))

    def quadratic(at: FloatArray) -> float:
        return float((alpha.T @ kernel(rows, d=at) @ alpha)[0, 0])

    size = float(np.abs(quadratic(d))) / d
    what = f"{type(kernel).__name__}.grad_quad"
    _compare(kernel.grad_quad(rows, alpha, d), quadratic, d, size, kernel, what)
    if penalty is not None:
        size = abs(penalty.value(d)) / d
        _compare(penalty.gradient(d), penalty.value, d, size, kernel, f"{type(penalty).__name__}.gradient")


def _compare(
    gradient: FloatArray,
    value: Callable[[FloatArray], float],
    d: FloatArray,
    size: FloatArray,
    kernel: ParametricKernel,
    what: str,
) -> None:
    """Each slope against its difference quotient; the error is relative to it, or to value / d."""
    expected = _differences(value, d)
    error = np.abs(gradient - expected) / np.maximum(np.maximum(np.abs(expected), 1e-3 * size), 1e-300)
    wrong = np.flatnonzero(~(error <= TOLERANCE))
    if len(wrong):
        told = ", ".join(
            f"{k} ({kernel.names_[k]!r}): {gradient[k]:.6g}, finite differences {expected[k]:.6g}"
            for k in wrong[:5]
        )
        raise ValueError(f"{what} is wrong in {len(wrong)} of {len(d)} components, such as {told}.")


def _differences(value: Callable[[FloatArray], float], d: FloatArray) -> FloatArray:
    """Central differences of fourth order."""
    slopes = np.empty_like(d)
    for k, step in enumerate(2e-3 * d):
        e = np.zeros_like(d)
        e[k] = step
        near, far = value(d + e) - value(d - e), value(d + 2 * e) - value(d - 2 * e)
        slopes[k] = (8.0 * near - far) / (12.0 * step)
    return slopes


def check_problem(problem: Problem) -> None:
    """Refuse costs that leave nothing to learn."""
    if not (problem.C > 0).all():
        raise ValueError("C = 0 leaves nothing to learn from: give every sample a positive cost.")
