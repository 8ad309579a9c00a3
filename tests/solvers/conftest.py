"""Small problems for every loss, and the primal and dual of MATH.md section 1 in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import xlogy

from kernelweave.losses import LOSSES, Loss
from kernelweave.solvers import Problem
from kernelweave.testing.solvers import Sample, draw_problem

from ..targets import SEPARABLE

# V(y, f) and V*(y, v) of MATH.md section 1, written once more
VALUES: dict[str, Callable[..., np.ndarray]] = {
    "hinge": lambda loss, y, f: np.maximum(0, 1 - y * f),
    "squared_hinge": lambda loss, y, f: np.maximum(0, 1 - y * f) ** 2 / 2,
    "logistic": lambda loss, y, f: np.log1p(np.exp(-y * f)),
    "squared": lambda loss, y, f: (y - f) ** 2 / 2,
    "eps_insensitive": lambda loss, y, f: np.maximum(0, np.abs(y - f) - loss.eps),
    "huber": lambda loss, y, f: np.where(
        np.abs(y - f) <= loss.delta, (y - f) ** 2 / 2, loss.delta * np.abs(y - f) - loss.delta**2 / 2
    ),
    "one_class": lambda loss, y, f: np.maximum(0, -f),
    "pinball": lambda loss, y, f: np.where(y > f, loss.quantile, loss.quantile - 1) * (y - f),
    "censored_eps_insensitive": lambda loss, y, f: np.where(
        y > 0,
        np.maximum(0, np.abs(np.log(np.abs(y)) - f) - loss.eps),
        np.maximum(0, np.log(np.abs(y)) - f - loss.eps),
    ),
}
CONJUGATES: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {  # value, and v in which interval
    "hinge": lambda loss, y, v: (y * v, (-1 <= y * v + 1e-12) & (y * v <= 1e-12)),
    "squared_hinge": lambda loss, y, v: (y * v + v**2 / 2, y * v <= 1e-12),
    "logistic": lambda loss, y, v: (
        xlogy(-y * v, np.abs(y * v)) + xlogy(1 + y * v, np.abs(1 + y * v)),
        (-1 <= y * v + 1e-12) & (y * v <= 1e-12),
    ),
    "squared": lambda loss, y, v: (v**2 / 2 + v * y, np.isfinite(v)),
    "eps_insensitive": lambda loss, y, v: (v * y + loss.eps * np.abs(v), np.abs(v) <= 1 + 1e-12),
    "huber": lambda loss, y, v: (v * y + v**2 / 2, np.abs(v) <= loss.delta + 1e-12),
    "one_class": lambda loss, y, v: (0 * v, (-1 <= v + 1e-12) & (v <= 1e-12)),
    "pinball": lambda loss, y, v: (v * y, (-loss.quantile <= v + 1e-12) & (v - 1e-12 <= 1 - loss.quantile)),
    "censored_eps_insensitive": lambda loss, y, v: (
        v * np.log(np.abs(y)) + loss.eps * np.abs(v),
        (v >= -1 - 1e-12) & (v <= np.where(y > 0, 1.0, 0.0) + 1e-12),
    ),
}


def value(loss: Loss, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """V(y, f), from the table; a loss not in it vouches for itself."""
    return VALUES[loss.name](loss, y, f) if loss.name in VALUES else loss.value(y, f)


def conjugate(loss: Loss, y: np.ndarray, v: np.ndarray) -> np.ndarray:
    """V*(y, v), likewise."""
    if loss.name not in CONJUGATES:
        return loss.conjugate(y, v)
    values, allowed = CONJUGATES[loss.name](loss, y, v)
    return np.where(allowed, values, np.inf)


def omega(p: float, n: np.ndarray) -> float:
    """1/2 (sum n^q)^(2/q), q = 2p / (p + 1)."""
    q = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    return 0.5 * np.linalg.norm(n, q) ** 2


def omega_star(p: float, r: np.ndarray) -> float:
    """1/2 ||r^2||_p*, p* = p / (p - 1)."""
    return 0.5 * np.linalg.norm(r**2, np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1))


def dual_value(problem: Problem, alpha: np.ndarray) -> float:
    """-C sum V*(y, -alpha / C); -inf unless the column sums are those of the intercept."""
    wanted = problem.loss.alpha_sum
    if problem.fit_intercept and np.abs(alpha.sum(axis=0) - wanted).max() > 1e-9 * (1 + np.abs(alpha).sum()):
        return -np.inf
    return -float((problem.C * conjugate(problem.loss, problem.y, -alpha / problem.C)).sum())


def primal_value(problem: Problem, f: np.ndarray, b: np.ndarray) -> float:
    """C sum V(y, f + b), and b itself for the one-class offset."""
    loss = float((problem.C * value(problem.loss, problem.y, f + b)).sum())
    return loss + problem.loss.alpha_sum * float(np.sum(b))


class Reference:
    """Primal and dual values from their definitions, without the library's certificate."""

    def bounds(
        self, sample: Sample, p: float, alpha: np.ndarray, weights: np.ndarray, b: np.ndarray
    ) -> tuple[float, float]:
        """(P, D) of the multiple-kernel problem with an lp-norm constraint."""
        f = np.einsum("m,mij,jc->ic", weights, sample.Ks, alpha, optimize=True)
        s = np.einsum("ic,mij,jc->m", alpha, sample.Ks, alpha, optimize=True)
        r = np.sqrt(np.maximum(s, 0.0))
        primal = primal_value(sample.problem, f, b) + omega(p, weights * r)
        return primal, dual_value(sample.problem, alpha) - omega_star(p, r)

    def machine_bounds(
        self, problem: Problem, K: np.ndarray, alpha: np.ndarray, b: np.ndarray
    ) -> tuple[float, float]:
        """(P, D) of the machine for one matrix."""
        energy = 0.5 * float((alpha * (K @ alpha)).sum())
        return primal_value(problem, K @ alpha, b) + energy, dual_value(problem, alpha) - energy

    def primal(self, problem: Problem, f: np.ndarray, b: np.ndarray) -> float:
        """The loss part of P."""
        return primal_value(problem, f, b)

    def dual(self, problem: Problem, alpha: np.ndarray) -> float:
        """The loss part of D."""
        return dual_value(problem, alpha)

    def gap(self, bounds: tuple[float, float]) -> float:
        primal, dual = bounds
        return (primal - dual) / max(abs(primal), 1e-12)


@pytest.fixture(scope="session")
def reference() -> Reference:
    return Reference()


@pytest.fixture(scope="session", name="draw")
def _draw() -> Callable[..., Sample]:
    return draw_problem


@pytest.fixture(params=sorted(SEPARABLE))
def loss(request: pytest.FixtureRequest) -> Loss:
    return LOSSES[request.param]()
