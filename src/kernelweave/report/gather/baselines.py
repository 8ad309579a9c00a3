"""Simpler models to compare with: the plain sum of the kernels, the best one of them, no kernel at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import _safe_indexing

from ..._typing import IntArray
from ...estimators import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from ...gram import KernelStack
from ...gram.stack import as_stack
from ...inspection._models import data_for
from ...kernels import RBF, resolve_kernels
from ...regularizers import Uniform
from ...theory import target_alignment
from .given import Given, as_rows, spread

#: costs to choose from, by cross-validation on the training samples
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)

#: single kernels that are trained, those best aligned with the target
SHORTLIST = 3

#: bytes of Gram matrices up to which costs are searched for, and up to which kernels are aligned
SEARCH_BYTES, ALIGN_BYTES = 600_000_000, 200_000_000

#: what may stop a baseline without stopping the report
FAILURES = (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError)

#: samples x samples x kernels beyond which the plain sum is left out
MOST_ENTRIES = 20_000_000_000


@dataclass(frozen=True)
class Baseline:
    """A model to fit; `view` takes from the data what it sees (None: all)."""

    name: str
    estimator: Any
    view: Callable[[Any], Any] | None = None


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
        return [Baseline("one Gaussian kernel on all columns", _tuned(given, [RBF()], 1))]
    M = len(inner.kernel_names_)
    plain = (
        isinstance(getattr(inner, "regularizer", None), Uniform)
        or getattr(inner, "regularizer", "") == "uniform"
    )
    if M == 1 or plain or M * n**2 > MOST_ENTRIES:
        return []
    return [Baseline("uniform sum of the kernels", _tuned(given, inner.kernels, M))]


def _tuned(given: Given, kernels: Any, n_kernels: int) -> Any:
    """The plain sum of kernels with its cost chosen; where the matrices are too large, with the model's."""
    search, single = (
        (MKLClassifierCV, MKLClassifier) if given.task == "classification" else (MKLRegressorCV, MKLRegressor)
    )
    options = {"normalize": getattr(given.inner, "normalize", "variance"), **_loss(given)}
    cost = float(getattr(given.inner, "C", None) or 1.0)
    if not _searchable(given, n_kernels):
        # weights 1 / M in place of 1: the model's cost means the same
        return single(kernels, regularizer="uniform", C=cost / n_kernels, **options)
    return search(kernels, regularizers="uniform", Cs=sorted({*COSTS, cost}), cv=3, **options)


def _searchable(given: Given, n_kernels: int) -> bool:
    return n_kernels * len(as_rows(given.X)) ** 2 * 8 <= SEARCH_BYTES


def cost_words(given: Given) -> str:
    """How the baselines got their cost."""
    if _searchable(given, len(given.inner.kernel_names_)):
        return "The baselines chose their cost C by cross-validation on the training samples."
    return "The uniform sum has the cost of the model: its matrices are too large to search for a better one."


def _loss(given: Given) -> dict[str, Any]:
    own = getattr(given.inner, "loss", None)
    return {} if own is None or not hasattr(given.inner, "kernels") else {"loss": own}


def _singles(given: Given) -> list[Baseline]:
    """The best single kernel: of those best aligned with the target, the one with the best validation."""
    inner = given.inner
    if not hasattr(inner, "kernels") or len(inner.kernel_names_) == 1:
        return []
    tried = [_validated(given, _single(given, int(m))) for m in _aligned(given)[:SHORTLIST]]
    return [max(tried, key=lambda pair: pair[0])[1]]


def _single(given: Given, m: int) -> Baseline:
    name = f"best single kernel: {given.inner.kernel_names_[m]}"
    if given.precomputed:
        return Baseline(name, _tuned(given, "precomputed", 1), lambda X: KernelStack([as_stack(X).matrix(m)]))
    kernel = resolve_kernels(given.inner.kernels, data_for(given.model, given.X))[m][1]
    return Baseline(name, _tuned(given, [kernel], 1))


def _aligned(given: Given) -> IntArray:
    """Kernels by their alignment with the target, on a part of the training samples."""
    M, n = len(given.inner.kernel_names_), len(as_rows(given.X))
    rows = spread(n, max(50, min(600, int((ALIGN_BYTES / (8 * M)) ** 0.5))))
    y = np.asarray(given.y)[rows]
    if given.precomputed:
        X = as_stack(given.X)[np.ix_(rows, rows)]
        return np.argsort(-target_alignment("precomputed", X, y, task=given.task).value, kind="stable")
    X = _safe_indexing(data_for(given.model, given.X), rows)
    return np.argsort(-target_alignment(given.inner.kernels, X, y, task=given.task).value, kind="stable")


def _validated(given: Given, candidate: Baseline) -> tuple[float, Baseline]:
    """Cross-validated score on the training samples, and the candidate with its cost chosen there.

    Where costs are not searched for, all scores are equal and the alignment decides.
    """
    if not hasattr(candidate.estimator, "Cs"):
        return 0.0, candidate
    X = data_for(given.model, given.X)
    X = X if candidate.view is None else candidate.view(X)
    try:
        search = candidate.estimator.fit(X, given.y)
    except FAILURES:
        return -np.inf, candidate
    return float(search.best_score_), replace(candidate, estimator=clone(search.best_estimator_))
