"""Squared and smooth losses where K is on a device: linear systems with one Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray
from ...gram.torch.sums import positive_factor
from ..problem import Problem
from .base import Machine, SingleSolver, machine_gap
from .smooth import Newton

#: samples up to which systems are factored; larger ones are solved by conjugate gradients
MOST_FACTORED = 16_000

#: most steps of conjugate gradients, and the residual of a Newton step that they solve for
MOST_STEPS, NEWTON_TOL = 2000, 1e-2


def solve_shifted(
    K: Any, extra: Any, right: Any, tol: float = 1e-7, start: Any = None, most: int = MOST_STEPS
) -> Any:
    """(K + diag(extra))^-1 right in double precision, for tensors `extra` (n,) > 0 and `right` (n, c).

    Cholesky of the well-conditioned form I + D K D, D = extra^-1/2, or conjugate gradients where n
    is large.

    Parameters
    ----------
    K : Matrix
    tol : float
        Of the residual, relative to `right`, if conjugate gradients are used.
    start : tensor of shape (n, c), optional
    most : int, default=2000
        Most steps.
    """
    if len(K) <= MOST_FACTORED:
        D = extra.double().rsqrt()[:, None]
        every = torch.arange(len(K), device=D.device)
        A = (K.rows(every).double() + K.shift) * D * D.T
        A.diagonal().add_(1.0)
        return D * torch.cholesky_solve(D * right.double(), positive_factor(A))
    own, precondition = extra.double()[:, None], Preconditioner(K, extra)

    def product(v: Any) -> Any:
        return own * v + K.product(v)

    return conjugate_gradients(product, precondition, right.double(), tol, start, most)


class Preconditioner:
    """The inverse of diag(D) + Z'Z, with Z'Z about K, from some of its rows, and D the rest plus `extra`.

        (D + Z'Z)^-1 = D^-1 - D^-1 Z' (I + Z D^-1 Z')^-1 Z D^-1

    Smooth kernels have few large eigenvalues, which the rows capture; the many small ones are about equal,
    and so is what the rows leave of the diagonal (Frangella, Tropp & Udell 2023).

    Parameters
    ----------
    K : Matrix
    extra : tensor of shape (n,)
    """

    def __init__(self, K: Any, extra: Any) -> None:
        self.Z, left = K.sketch
        self.D = (extra.double() + left)[:, None]
        inner = (self.Z / self.D[:, 0].to(self.Z.dtype)) @ self.Z.T
        inner.diagonal().add_(1.0)
        self.factor = positive_factor(inner.double())

    def __call__(self, v: Any) -> Any:
        v = v / self.D
        inner = torch.cholesky_solve((self.Z @ v.to(self.Z.dtype)).double(), self.factor)
        return v - (self.Z.T @ inner.to(self.Z.dtype)).double() / self.D


def conjugate_gradients(
    product: Callable[[Any], Any],
    precondition: Callable[[Any], Any],
    right: Any,
    tol: float,
    start: Any = None,
    most: int = MOST_STEPS,
) -> Any:
    """x with product(x) = right, all columns at once, to a residual in the norm of the preconditioner."""
    x = torch.zeros_like(right) if start is None else start.double().clone()
    r = right.clone() if start is None else right - product(x)
    z = precondition(r)
    p, size = z, (r * z).sum(dim=0)
    goal = tol**2 * (size if start is None else (right * precondition(right)).sum(dim=0))
    for _ in range(most):
        if bool((size <= goal).all()):
            break
        Ap = product(p)
        share = size / (p * Ap).sum(dim=0).clamp(min=1e-300)
        x, r = x + share * p, r - share * Ap
        z = precondition(r)
        size, before = (r * z).sum(dim=0), size
        p = z + (size / before.clamp(min=1e-300)) * p
    return x


class TorchLeastSquares(SingleSolver):
    """Solves (K + diag(1/C)) alpha + b = y, sum(alpha) = 0, by a factor or by conjugate gradients.

    Steps continue until the gap is as small as asked for, for all outputs at once.
    """

    name = "torch_least_squares"
    requires = ("quadratic",)

    def solve(self, K: Any, problem: Problem, tol: float, alpha: FloatArray | None = None) -> Machine:
        self.check(problem.loss)
        device = K.like.device
        given = (problem.centred(problem.y), problem.C)
        y, C = (torch.as_tensor(np.ascontiguousarray(v), device=device) for v in given)
        right = torch.cat([y, torch.ones_like(C)], dim=1)
        found, residual = None, min(1e-3, tol)
        while True:
            found = solve_shifted(K, 1.0 / C[:, 0], right, residual, found)
            machine = self._machine(K, problem, found)
            if residual <= 1e-7 or machine_gap(problem, machine.alpha, machine.fitted) <= tol:
                return machine
            residual *= 0.1

    def _machine(self, K: Any, problem: Problem, found: Any) -> Machine:
        alpha = found[:, :-1]
        if problem.fit_intercept:
            ones = found[:, -1:]
            alpha = alpha - ones * (alpha.sum(dim=0) / ones.sum())
        host = problem.feasible(alpha.cpu().numpy())
        return Machine(host, K @ host, 1)

    def solve_column(self, K: Any, problem: Problem, tol: float, alpha: FloatArray) -> Machine:
        return self.solve(K, problem, tol, alpha)


#: curvature below this share of the largest counts as that share, so a flat sample hardly moves
FLAT = 1e-10


class TorchNewton(Newton):
    """The Newton steps of `Newton`, whose linear systems are solved on the device.

    All samples stay in the system: a sample with next to no curvature W has a large 1/W on the diagonal.
    """

    name = "torch_newton"

    def direction(
        self, K: Any, problem: Problem, alpha: FloatArray, f: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(dalpha, db) with (diag(1/W) + K) dalpha + db = -(alpha + C V') / W, sum(alpha + dalpha) right."""
        residual = (alpha - problem.alpha_of(f))[:, 0]
        W = (problem.C * problem.loss.hessian(problem.y, f))[:, 0]
        W = np.maximum(W, FLAT * max(float(W.max()), 1e-300))
        right = np.column_stack([-residual / W, np.ones(len(W))])
        extra, sides = (torch.as_tensor(values, device=K.like.device) for values in (1.0 / W, right))
        x, ones = solve_shifted(K, extra, sides, NEWTON_TOL).cpu().numpy().T
        db = 0.0
        if problem.fit_intercept:
            db = (x.sum() - (problem.loss.alpha_sum - alpha.sum())) / ones.sum()
        return (x - db * ones)[:, None], np.array([db])
