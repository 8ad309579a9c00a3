"""The toy problem of Kloft et al. (2011), section 6.1, which GOMP Figure 1 uses too.

Two Gaussian classes in 50 dimensions with means +-mu, mu of length 1.75 spread evenly over the informative
dimensions, one linear kernel per dimension. All models are linear functions w'x + b, so their probability
of error is known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge, Squared
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

DIMENSIONS, DISTANCE = 50, 1.75
#: % of noise kernels -> informative kernels ("nu = 1" of the paper is 49 of 50)
LEVELS = {0: 50, 44: 28, 64: 18, 82: 9, 92: 4, 98: 1}
NORMS = {"l1": 1.0, "l4/3": 4 / 3, "l2": 2.0, "l4": 4.0, "linf": np.inf}
BAYES = 100.0 * float(norm.cdf(-DISTANCE))
N_VALIDATION = N_TEST = 10_000


class Line(NamedTuple):
    """A linear classifier, the kernel weights it comes from, and their relative duality gap."""

    w: np.ndarray
    b: float
    weights: np.ndarray
    gap: float = 0.0


class Task(NamedTuple):
    """A training sample, large samples to validate and to test on, and what they were drawn from."""

    X: np.ndarray
    y: np.ndarray
    X_valid: np.ndarray
    y_valid: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    mean: np.ndarray


def draw_task(n: int, noise: int, seed: int) -> Task:
    """Balanced classes; the same for all methods."""
    rng = np.random.default_rng([n, noise, seed])
    mean = np.zeros(DIMENSIONS)
    mean[: LEVELS[noise]] = DISTANCE / np.sqrt(LEVELS[noise])
    drawn = [_sample(rng, size, mean) for size in (n, N_VALIDATION, N_TEST)]
    return Task(*(part for sample in drawn for part in sample), mean)


def _sample(rng: np.random.Generator, n: int, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = np.repeat([1.0, -1.0], n // 2)
    return rng.standard_normal((n, DIMENSIONS)) + y[:, None] * mean, y


def exact_error(line: Line, mean: np.ndarray) -> float:
    """Probability of error in %: (Phi((-w'mu - b) / |w|) + Phi((-w'mu + b) / |w|)) / 2."""
    size = float(np.linalg.norm(line.w))
    if size == 0:
        return 50.0
    margin = float(line.w @ mean)
    return 50.0 * float(norm.cdf((-margin - line.b) / size) + norm.cdf((-margin + line.b) / size))


def model_error(weights: np.ndarray, mean: np.ndarray) -> float:
    """Distance of the weights to the true ones, theta = 1 where mu is not 0, both of length 1."""
    truth = (mean > 0) / np.sqrt((mean > 0).sum())
    size = float(np.linalg.norm(weights))
    return float(np.linalg.norm((weights / size if size > 0 else weights) - truth))


def wrong(line: Line, X: np.ndarray, y: np.ndarray) -> float:
    """Error on a sample, in %."""
    return 100.0 * float(np.mean((X @ line.w + line.b) * y <= 0))


def best(lines: Sequence[Line], task: Task) -> int:
    """Position of the line with least validation error, the first of equals."""
    return int(np.argmin([wrong(line, task.X_valid, task.y_valid) for line in lines]))


def mkl_lines(
    regularizer: Any,
    task: Task,
    costs: Sequence[float],
    squared: bool = False,
    tol: float = 1e-4,
    max_iter: int = 300,
    tight: bool = False,
    solver: str = "auto",
) -> list[Line]:
    """MKL at every cost, each started from the one before, on kernels of variance 1.

    At small C nearly all of the objective is the loss: the regulariser's share is about C n / 20, so that a
    gap of 1e-3 may leave the weights anywhere. `tight` gaps shrink with that share.
    """
    X, y = task.X, task.y
    scales = 1.0 / X.var(axis=0)
    gram = DenseGram([np.outer(x, x) for x in X.T], scales)
    norms, alpha, lines = None, None, []
    for C in costs:
        loss = Squared() if squared else Hinge()
        problem = Problem(y[:, None], loss, np.full((len(y), 1), C))
        method = choose_solver(solver, regularizer)
        gap = min(tol, 1e-2 * C * len(y) / 50) if tight else tol
        state = method.solve(problem, gram, regularizer, gap, max_iter, None, norms, alpha).state
        if regularizer.convex:  # others start from the beginning: where they end depends on the start
            norms, alpha = state.certificate.norms, state.alpha
        w = state.weights * scales * (X.T @ state.alpha[:, 0])
        lines.append(Line(w, float(state.certificate.intercept[0]), state.weights, gap_of(state)))
    return lines


def gap_of(state: Any) -> float:
    """Relative duality gap; zero where there is none, the regulariser not being convex."""
    gap = float(state.certificate.gap)
    return gap if np.isfinite(gap) else 0.0


def estimator_line(model: Any, weights: np.ndarray, **options: Any) -> Line:
    """A fitted estimator as a line: a linear function is known from its values at 0 and the unit vectors."""
    corners = np.vstack([np.zeros(DIMENSIONS), np.eye(DIMENSIONS)])
    values = np.ravel(model.decision_function(corners, **options))
    return Line(values[1:] - values[0], float(values[0]), weights)


def greedy_lines(task: Task, ridges: Sequence[float], counts: int = DIMENSIONS) -> list[tuple[Line, float]]:
    """MKL-GOMP: every number of kernels at every ridge."""
    from kernelweave.kernels import Linear, per_feature

    found = []
    for ridge in ridges:
        model = kw.GroupOMPClassifier(per_feature(Linear()), alpha=ridge, n_kernels=counts, tol=0.0)
        model.fit(task.X, task.y)
        for count in range(1, len(model.selected_) + 1):
            chosen = np.isin(np.arange(DIMENSIONS), model.selected_[:count]).astype(float)
            found.append((estimator_line(model, chosen, n_kernels=count), float(ridge)))
    return found
