"""Small fitted models of every kind that learns kernel weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, WeightedSum, per_feature

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = np.where(Y > 0, "yes", "no")
CLASSES = np.digitize(Y, [-0.7, 0.7])
NEW = RNG.normal(size=(7, 4))
KERNELS: dict[str, Any] = {
    "all": RBF(),
    "line": Linear(),
    "one": RBF(columns=[0]),
    "two": RBF(columns=[1, 2]),
}
SUM = WeightedSum({"all": RBF(gamma=0.2), "line": Linear()})

#: name -> (estimator, targets)
MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "binary": lambda: (kw.MKLClassifier(KERNELS), LABELS),
    "sparse": lambda: (kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm(1)), LABELS),
    "ovr": lambda: (kw.MKLClassifier(KERNELS), CLASSES),
    "ovo": lambda: (kw.MKLClassifier(KERNELS, multiclass="ovo"), CLASSES),
    "shared": lambda: (kw.MKLClassifier(KERNELS, multiclass="shared"), CLASSES),
    "centred": lambda: (kw.MKLClassifier(KERNELS, normalize="center"), LABELS),
    "spherical": lambda: (kw.MKLClassifier(KERNELS, normalize="spherical"), LABELS),
    "regressor": lambda: (kw.MKLRegressor(KERNELS), Y),
    "outputs": lambda: (kw.MKLRegressor(KERNELS), np.column_stack([Y, -(Y**2)])),
    "one class": lambda: (kw.MKLOneClass(KERNELS), None),
    "classifier cv": lambda: (kw.MKLClassifierCV(KERNELS, Cs=2, cv=3), LABELS),
    "regressor cv": lambda: (kw.MKLRegressorCV(KERNELS, Cs=2, cv=3), Y),
    "greedy classifier": lambda: (kw.GroupOMPClassifier(KERNELS, n_kernels=2), LABELS),
    "greedy classes": lambda: (kw.GroupOMPClassifier(KERNELS, n_kernels=2), CLASSES),
    "greedy regressor": lambda: (kw.GroupOMPRegressor(KERNELS, n_kernels=3, normalize="center"), Y),
    "greedy validated": lambda: (
        kw.GroupOMPRegressor(KERNELS, validation_fraction=0.3, random_state=0),
        Y,
    ),
    "greedy regressor cv": lambda: (
        kw.GroupOMPRegressorCV(KERNELS, alphas=[1e-4, 1.0], n_kernels=2, cv=3),
        Y,
    ),
    "greedy classifier cv": lambda: (kw.GroupOMPClassifierCV(KERNELS, alphas=2, n_kernels=2, cv=3), LABELS),
    "bayes regressor": lambda: (kw.EmpiricalBayesRegressor(KERNELS), Y),
    "bayes outputs": lambda: (
        kw.EmpiricalBayesRegressor(KERNELS, multioutput="independent"),
        np.column_stack([Y, -(Y**2)]),
    ),
    "bayes classifier": lambda: (kw.EmpiricalBayesClassifier(KERNELS), LABELS),
    "bayes classes": lambda: (kw.EmpiricalBayesClassifier(KERNELS, method="regression"), CLASSES),
    "together": lambda: (kw.MKLClassifier(per_feature(RBF()), normalize="center"), LABELS),
    "generalized classifier": lambda: (kw.GMKLClassifier(SUM), LABELS),
    "generalized regressor": lambda: (kw.GMKLRegressor(SUM), Y),
}


def fitted(name: str) -> tuple[Any, Any, Any]:
    """The model fitted, its training data and its targets."""
    estimator, y = MODELS[name]()
    data = np.hstack([X] * 4)[:, :16] if name == "together" else X
    if name == "together":
        data = data + 0.1 * np.random.default_rng(1).normal(size=data.shape)
    return estimator.fit(data, y), data, y


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def models() -> Callable[[str], tuple[Any, Any, Any]]:
    """`fitted`, every model only once."""
    kept: dict[str, tuple[Any, Any, Any]] = {}

    def one(name: str) -> tuple[Any, Any, Any]:
        if name not in kept:
            kept[name] = fitted(name)
        return kept[name]

    return one
