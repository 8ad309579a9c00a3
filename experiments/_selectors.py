"""Feature selectors that Varma & Babu (2009) compare with and that scikit-learn does not have."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC


class LPSVM(ClassifierMixin, BaseEstimator):
    """min ||w||_1 + C sum_i max(0, 1 - y_i (w'x_i + b)), labels -1 and 1: Fung & Mangasarian (2002)."""

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Solve the linear program in w+, w-, b and the slacks."""
        n, m = X.shape
        self.classes_ = np.unique(y)
        signed = y[:, None] * np.hstack([X, -X, np.ones((n, 1))])
        found = linprog(
            np.r_[np.ones(2 * m), 0.0, np.full(n, self.C)],
            A_ub=-np.hstack([signed, np.eye(n)]),
            b_ub=-np.ones(n),
            bounds=[(0.0, None)] * (2 * m) + [(None, None)] + [(0.0, None)] * n,
        )
        self.coef_ = found.x[:m] - found.x[m : 2 * m]
        self.intercept_ = found.x[2 * m]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Signs."""
        return np.where(X @ self.coef_ + self.intercept_ >= 0.0, 1, -1)


class BoostedSVMs(ClassifierMixin, BaseEstimator):
    """AdaBoost over one Gaussian SVM per feature, trained beforehand: section 4 of Varma & Babu (2009).

    Every round takes the SVM of least weighted error, until none is better than chance or `rounds` are done;
    `coef_` is the sum of votes of every feature.
    """

    def __init__(self, C: float = 1.0, gamma: float = 1.0, rounds: int = 100) -> None:
        self.C = C
        self.gamma = gamma
        self.rounds = rounds

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Train the SVMs, then boost."""
        self.classes_ = np.unique(y)
        columns = range(X.shape[1])
        self.machines_ = [SVC(C=self.C, gamma=self.gamma).fit(X[:, [k]], y) for k in columns]
        self.coef_ = boost(self._votes(X), y, self.rounds)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Signs of the weighted votes."""
        return np.where(self._votes(X) @ self.coef_ >= 0.0, 1, -1)

    def _votes(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([one.predict(X[:, [k]]) for k, one in enumerate(self.machines_)])


def boost(votes: np.ndarray, y: np.ndarray, rounds: int) -> np.ndarray:
    """Weights of fixed classifiers by AdaBoost, from their votes (n, M) and labels -1 and 1."""
    weights, share = np.zeros(votes.shape[1]), np.full(len(y), 1.0 / len(y))
    for _ in range(rounds):
        errors = share @ (votes != y[:, None])
        best = int(np.argmin(errors))
        error = max(float(errors[best]), 1e-6)  # a perfect one would have all the weight
        if error >= 0.5 - 1e-9:
            break
        step = 0.5 * np.log((1.0 - error) / error)
        weights[best] += step
        share = share * np.exp(-step * y * votes[:, best])
        share /= share.sum()
    return weights


def bahsic(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Features, best first, by backward elimination with HSIC: Song et al. (2007).

    With a linear kernel for the labels HSIC = y'HKHy up to a constant; K = exp(-||x - z||^2 / (2 m)) on the m
    features left. The one without which HSIC is largest goes.
    """
    centered = y - y.mean()
    apart = (X.T[:, :, None] - X.T[:, None, :]) ** 2
    left, gone, total = list(range(X.shape[1])), [], apart.sum(axis=0)
    while len(left) > 1:
        values = [hsic(total - apart[k], len(left) - 1, centered) for k in left]
        gone.append(left.pop(int(np.argmax(values))))
        total = total - apart[gone[-1]]
    return np.array([*left, *reversed(gone)])


def hsic(distances: np.ndarray, m: int, centered: np.ndarray) -> float:
    """y'HKHy."""
    return float(centered @ np.exp(distances / (-2.0 * m)) @ centered)


def importance(model: Any) -> np.ndarray:
    """Size of every feature's weight in a fitted model; ones for a model without weights."""
    for name in ("weights_", "coef_", "feature_importances_"):
        if hasattr(model, name):
            return np.abs(np.ravel(getattr(model, name)))
    return np.ones(model.n_features_in_)
