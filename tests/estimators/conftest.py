"""Small data sets shared by the tests of the estimators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler


class Data(NamedTuple):
    """Training and new samples."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def _noisy(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.5 * rng.normal(size=n)


@pytest.fixture(scope="session")
def regression() -> Data:
    """A noisy nonlinear target of two of four features."""
    X, t = _noisy(90)
    return Data(X[:60], t[:60], X[60:], t[60:])


@pytest.fixture(scope="session")
def binary() -> Data:
    """Two overlapping classes, labels 0 and 1."""
    X, t = _noisy(90)
    y = (t > 0).astype(int)
    return Data(X[:60], y[:60], X[60:], y[60:])


@pytest.fixture(scope="session")
def flowers() -> Data:
    """Half of iris to train on, half to predict; three classes with string labels."""
    iris = load_iris()
    X = StandardScaler().fit_transform(iris.data)
    y = iris.target_names[iris.target]
    return Data(X[::2], y[::2], X[1::2], y[1::2])


@pytest.fixture(scope="session")
def four() -> Data:
    """Four overlapping classes with integer labels that do not start at zero."""
    rng = np.random.default_rng(2)
    centres = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5], [2.5, 2.5]])
    labels = np.arange(120) % 4
    X = centres[labels] + rng.normal(size=(120, 2))
    return Data(X[:72], 10 + labels[:72], X[72:], 10 + labels[72:])


@pytest.fixture(scope="session")
def grams(binary: Data) -> tuple[np.ndarray, np.ndarray]:
    """Linear and Gaussian kernels of the binary data: (n, n, 2) and (n_new, n, 2)."""
    X, X_new = binary.X, binary.X_new
    train = np.dstack([linear_kernel(X), rbf_kernel(X, gamma=0.3)])
    return train, np.dstack([linear_kernel(X_new, X), rbf_kernel(X_new, X, gamma=0.3)])
