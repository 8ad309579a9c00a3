"""A direct implementation of MKL-GOMP, and problems to run it on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import block_diag
from sklearn.base import clone

from kernelweave.gram import FeatureSource, KernelStack, StackSource
from kernelweave.kernels import RBF, Linear, Polynomial
from kernelweave.losses import Squared
from kernelweave.solvers.greedy import FactorDictionary, GreedyTask


class Ridge(NamedTuple):
    alpha: np.ndarray
    b: np.ndarray
    objective: float
    residual: np.ndarray


def ridge(K, Y, w, lam, intercept) -> Ridge:
    """min_{alpha, b} 1/l sum_i w_i |Y_i - (K alpha)_i - b|^2 + lambda tr(alpha' K alpha)."""
    n, total = len(Y), w.sum()
    A = K + lam * total * np.diag(1.0 / w)
    if intercept:
        A = block_diag(A, 0.0)
        A[:n, n] = A[n, :n] = 1.0
        Y_long = np.vstack([Y, np.zeros((1, Y.shape[1]))])
    solution = np.linalg.solve(A, Y_long if intercept else Y)
    alpha, b = solution[:n], solution[n] if intercept else np.zeros(Y.shape[1])
    R = Y - K @ alpha - b
    return Ridge(alpha, b, float((w[:, None] * R**2).sum() / total + lam * np.sum(alpha * (K @ alpha))), R)


def gain(K, R, w, lam, intercept) -> float:
    """By how much a function of the space of K (and a constant) can lower 1/l sum_i w_i |R_i|^2."""
    return float((w[:, None] * R**2).sum() / w.sum()) - ridge(K, R, w, lam, intercept).objective


def dense_gomp(Ks, Y, w, lam, s, eps, intercept):
    """Algorithm 1 of the paper, eps a share of the variance: list of (kernel, gain, refit)."""
    chosen, steps = [], []
    R = Y - (w @ Y / w.sum() if intercept else 0.0)
    eps = eps * float((w[:, None] * R**2).sum() / w.sum())
    while len(chosen) < s:
        gains = [-1.0 if j in chosen else gain(K, R, w, lam, intercept) for j, K in enumerate(Ks)]
        best = int(np.argmax(gains))
        if gains[best] <= eps:
            break
        chosen.append(best)
        fit = ridge(sum(Ks[j] for j in chosen), Y, w, lam, intercept)
        R = fit.residual
        steps.append((best, gains[best], fit))
    return steps


KERNELS = [
    *((f"linear {j}", Linear(columns=[j])) for j in range(4)),
    ("plane", Linear(columns=[0, 2])),
    *((f"rbf {j}", RBF(gamma=1.0, columns=[j])) for j in range(4)),
    ("rbf", RBF(gamma=0.2)),
    ("quadratic", Polynomial(degree=2, columns=[1, 3])),
    ("cubic", Polynomial(degree=3)),
]


@pytest.fixture(scope="session")
def data():
    """X, Y of two outputs, and sample weights."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 4))
    Y = np.column_stack([X[:, 0] + np.sin(2 * X[:, 1]), X[:, 2] * X[:, 3] + 0.5 * X[:, 0]])
    return X, Y + 0.2 * rng.normal(size=Y.shape), rng.uniform(0.3, 2.0, size=len(X))


class Problem(NamedTuple):
    dictionary: FactorDictionary
    task: GreedyTask
    Ks: list[np.ndarray]


@pytest.fixture(scope="session")
def make(data):
    """Maker of a factored dictionary, its task, and the same kernels as plain matrices."""

    def build(
        ridge=1e-2,
        outputs=2,
        weighted=True,
        intercept=True,
        normalize="variance",
        loss=None,
        y=None,
        **options,
    ) -> Problem:
        X, Y, weight = data
        weight = weight if weighted else np.ones(len(X))
        targets = Y[:, :outputs] if y is None else y
        task = GreedyTask(targets, weight, loss or Squared(), ridge, intercept)
        source = FeatureSource([(name, clone(kernel)) for name, kernel in KERNELS], X, weight)
        dictionary = FactorDictionary(source, normalize, weight, intercept, task.shift, **options)
        rules = dictionary.normalizations
        return Problem(
            dictionary, task, [rule.scale_ * rule.train(source.train(m)) for m, rule in enumerate(rules)]
        )

    return build


@pytest.fixture(scope="session")
def from_matrices():
    """Maker of dictionary and task of given matrices, not normalised."""

    def build(Ks, Y, weight, ridge, intercept=True, loss=None) -> Problem:
        task = GreedyTask(Y, weight, loss or Squared(), ridge, intercept)
        source = StackSource(KernelStack(Ks))
        return Problem(FactorDictionary(source, None, weight, intercept, task.shift), task, Ks)

    return build


@pytest.fixture(scope="session")
def reference():
    """The direct implementation: `ridge`, `gain` and `gomp`."""
    return SimpleNamespace(ridge=ridge, gain=gain, gomp=dense_gomp)
