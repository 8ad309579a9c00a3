"""Simpler models to compare with: the plain sum of the kernels, the best one of them, no kernel at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from ....estimators import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from ....gram import KernelStack
from ....gram.stack import as_stack
from ....inspection._models import data_for
from ....kernels import RBF, resolve_kernels
from ....regularizers import Uniform
from ....theory import target_alignment
from .given import Subject, as_rows, spread

#: costs to choose from, by cross-validation on the training samples
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)

#: single kernels that are trained, those best aligned with the target
SHORTLIST = 3

#: most samples on which costs and single kernels are chosen, and bytes of their Gram matrices
MOST_SAMPLES, MATRIX_BYTES = 800, 200_000_000

#: samples x samples x kernels beyond which the plain sum is left out
MOST_ENTRIES = 20_000_000_000

#: what may stop a baseline without stopping the report
FAILURES = (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Baseline:
    """A model to fit; `view` takes from the data what it sees."""

    name: str
    estimator: Any
    view: Callable[[Any], Any] = lambda X: X


def baselines_for(given: Subject) -> list[Baseline]:
    """Plain sum, best single kernel, and last the one that sees no kernel.

    The single kernel is that of the best validation among those best aligned with the target.
    """
    trivial = Baseline("majority class", DummyClassifier())
    if given.task != "classification":
        trivial = Baseline("mean of the targets", DummyRegressor())
    if not hasattr(given.inner, "kernels"):  # one kernel with parameters
        return [_tuned(given, "one Gaussian kernel on all columns", [RBF()])[1], trivial]
    n, M, own = (
        len(as_rows(given.X)),
        len(given.inner.kernel_names_),
        getattr(given.inner, "regularizer", None),
    )
    if M == 1:
        return [trivial]
    found = []
    if own != "uniform" and not isinstance(own, Uniform) and M * n**2 <= MOST_ENTRIES:
        found.append(_tuned(given, "uniform sum of the kernels", given.inner.kernels)[1])
    X, y = _part(given)
    kernels = "precomputed" if given.precomputed else given.inner.kernels
    aligned = np.argsort(-target_alignment(kernels, X, y, task=given.task).value, kind="stable")
    singles = [_single(given, int(m)) for m in aligned[:SHORTLIST]]
    return [*found, max(singles, key=lambda pair: pair[0])[1], trivial]


def _single(given: Subject, m: int) -> tuple[float, Baseline]:
    name = f"best single kernel: {given.inner.kernel_names_[m]}"
    if given.precomputed:
        return _tuned(given, name, "precomputed", lambda X: KernelStack([as_stack(X).matrix(m)]))
    kernel = resolve_kernels(given.inner.kernels, data_for(given.model, given.X))[m][1]
    return _tuned(given, name, [kernel])


def _tuned(
    given: Subject, name: str, kernels: Any, view: Callable[[Any], Any] = lambda X: X
) -> tuple[float, Baseline]:
    """The plain sum of kernels, its cost chosen by cross-validation, and its score there."""
    classifies = given.task == "classification"
    options: dict[str, Any] = {"normalize": getattr(given.inner, "normalize", "variance")}
    if hasattr(given.inner, "kernels") and getattr(given.inner, "loss", None) is not None:
        options["loss"] = given.inner.loss
    cost = float(getattr(given.inner, "C", None) or 1.0)
    costs = sorted({*COSTS, cost})
    Search = MKLClassifierCV if classifies else MKLRegressorCV
    search = Search(kernels, regularizers="uniform", Cs=costs, cv=3, **options)
    X, y = _part(given)
    try:
        search.fit(view(X), y)
    except FAILURES:
        Plain = MKLClassifier if classifies else MKLRegressor
        return -np.inf, Baseline(name, Plain(kernels, regularizer="uniform", C=cost, **options), view)
    return float(search.best_score_), Baseline(name, clone(search.best_estimator_), view)


def _part(given: Subject) -> tuple[Any, Any]:
    """Training samples as the kernels see them, all of them or as many as are quickly dealt with.

    Those left are spread evenly over the samples in the order of their targets: every class in proportion.
    """
    X, y, M = data_for(given.model, given.X), np.asarray(given.y), len(given.inner.kernel_names_)
    most = min(MOST_SAMPLES, max(50, int((MATRIX_BYTES / (8 * M)) ** 0.5)))
    if len(y) <= most:
        return X, given.y
    order = (
        np.argsort(np.unique(y, return_inverse=True)[1], kind="stable") if y.ndim == 1 else np.arange(len(y))
    )
    rows = np.sort(order[spread(len(y), most)])
    return given.subset(X, rows), y[rows]
