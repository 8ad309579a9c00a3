"""Simpler models to compare with: the plain sum of the kernels, the best one of them, no kernel at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import _safe_indexing

from ...._typing import IntArray
from ....estimators import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from ....gram import KernelStack
from ....gram.stack import as_stack
from ....inspection._models import data_for
from ....kernels import RBF, resolve_kernels
from ....regularizers import Uniform
from ....theory import target_alignment
from .given import Given, as_rows, spread

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


def baselines_for(given: Given) -> list[Baseline]:
    """Plain sum, best single kernel, and last the one that sees no kernel."""
    return [*_sums(given), *_singles(given), _trivial(given)]


def _trivial(given: Given) -> Baseline:
    if given.task == "classification":
        return Baseline("majority class", DummyClassifier())
    return Baseline("mean of the targets", DummyRegressor())


def _sums(given: Given) -> list[Baseline]:
    inner, n = given.inner, len(as_rows(given.X))
    if not hasattr(inner, "kernels"):  # one kernel with parameters
        return [_tuned(given, "one Gaussian kernel on all columns", [RBF()])[1]]
    M, own = len(inner.kernel_names_), getattr(inner, "regularizer", None)
    if M == 1 or own == "uniform" or isinstance(own, Uniform) or M * n**2 > MOST_ENTRIES:
        return []
    return [_tuned(given, "uniform sum of the kernels", inner.kernels)[1]]


def _singles(given: Given) -> list[Baseline]:
    """The best single kernel: of those best aligned with the target, the one with the best validation."""
    if not hasattr(given.inner, "kernels") or len(given.inner.kernel_names_) == 1:
        return []
    tried = [_single(given, int(m)) for m in _aligned(given)[:SHORTLIST]]
    return [max(tried, key=lambda pair: pair[0])[1]]


def _single(given: Given, m: int) -> tuple[float, Baseline]:
    name = f"best single kernel: {given.inner.kernel_names_[m]}"
    if given.precomputed:
        return _tuned(given, name, "precomputed", lambda X: KernelStack([as_stack(X).matrix(m)]))
    kernel = resolve_kernels(given.inner.kernels, data_for(given.model, given.X))[m][1]
    return _tuned(given, name, [kernel])


def _tuned(
    given: Given, name: str, kernels: Any, view: Callable[[Any], Any] = lambda X: X
) -> tuple[float, Baseline]:
    """The plain sum of kernels, its cost chosen by cross-validation, and its score there."""
    classifies = given.task == "classification"
    options = {"normalize": getattr(given.inner, "normalize", "variance"), **_loss(given)}
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


def _loss(given: Given) -> dict[str, Any]:
    own = getattr(given.inner, "loss", None)
    return {} if own is None or not hasattr(given.inner, "kernels") else {"loss": own}


def _aligned(given: Given) -> IntArray:
    """Kernels by their alignment with the target."""
    X, y = _part(given)
    kernels = "precomputed" if given.precomputed else given.inner.kernels
    return np.argsort(-target_alignment(kernels, X, y, task=given.task).value, kind="stable")


def _part(given: Given) -> tuple[Any, Any]:
    """Training samples as the kernels see them, all of them or as many as are quickly dealt with."""
    n, M = len(as_rows(given.X)), len(given.inner.kernel_names_)
    rows = _in_proportion(
        np.asarray(given.y), min(MOST_SAMPLES, max(50, int((MATRIX_BYTES / (8 * M)) ** 0.5)))
    )
    if len(rows) == n:
        return data_for(given.model, given.X), given.y
    y = np.asarray(given.y)[rows]
    if given.precomputed:
        return as_stack(given.X)[np.ix_(rows, rows)], y
    return _safe_indexing(data_for(given.model, given.X), rows), y


def _in_proportion(y: Any, most: int) -> IntArray:
    """Rows spread evenly over the samples in the order of their targets: every class in proportion."""
    order = (
        np.argsort(np.unique(y, return_inverse=True)[1], kind="stable") if y.ndim == 1 else np.arange(len(y))
    )
    return np.sort(order[spread(len(y), most)])
