"""What a report is made from: the model and its data, asked for in the ways the parts of the report need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils import _safe_indexing

from ...._typing import FloatArray, IntArray
from ....estimators._base import function_names
from ....gram import KernelStack
from ....gram.stack import as_stack
from ....inspection import contributions
from ....inspection._models import fitted_model

#: called with a few words before each step
Progress = Callable[[str], Any]

#: most samples whose components are computed
MOST_ROWS = 2000


@dataclass(frozen=True)
class Given:
    """A fitted model, training data, and held-out data where there are any."""

    model: Any
    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    random_state: int = 0

    @cached_property
    def inner(self) -> Any:
        """The estimator inside pipelines and searches."""
        return fitted_model(self.model)

    @cached_property
    def precomputed(self) -> bool:
        """Whether the data are Gram matrices."""
        return bool(getattr(self.inner, "_precomputed", False))

    @cached_property
    def task(self) -> str:
        """What is learned: "classification", "regression" or "novelty"."""
        if is_classifier(self.inner):
            return "classification"
        return "novelty" if is_outlier_detector(self.inner) else "regression"

    @property
    def held_out(self) -> bool:
        """Whether there are held-out samples, with targets where the task has some."""
        return self.X_test is not None and (self.y_test is not None or self.task == "novelty")

    @property
    def part(self) -> str:
        """The samples looked at: "held-out" ones where there are some."""
        return "held-out" if self.held_out else "training"

    @cached_property
    def rows(self) -> IntArray:
        """Rows of that part that are looked at, evenly spread when there are many."""
        return spread(self.n_seen, MOST_ROWS)

    @cached_property
    def seen(self) -> Any:
        """The samples looked at, as `predict` takes them."""
        return take(self.X_test if self.held_out else self.X, self.rows)

    @cached_property
    def truth(self) -> Any:
        """Their targets."""
        y = self.y_test if self.held_out else self.y
        return None if y is None else np.asarray(y)[self.rows]

    @property
    def n_seen(self) -> int:
        """Samples of the part looked at, before any are left out."""
        return len(as_rows(self.X_test if self.held_out else self.X))

    @cached_property
    def predicted(self) -> Any:
        """Predictions on the samples looked at."""
        return np.asarray(self.model.predict(self.seen))

    @cached_property
    def labels(self) -> list[str]:
        """Names of the samples looked at: those of the table, or row numbers."""
        table = self.X_test if self.held_out else self.X
        index = getattr(table, "index", None)
        return [str(row if index is None else index[row]) for row in self.rows]

    @cached_property
    def intercept(self) -> FloatArray:
        """b of every function."""
        return np.asarray(self.inner.model_.intercept, dtype=float)

    @cached_property
    def parts(self) -> FloatArray | None:
        """f_m on the samples looked at, shape (K, n, M); None when the model is not a sum of kernels."""
        if hasattr(self.inner, "kernel_") and not hasattr(self.inner.kernel_, "kernels_"):
            return None
        parts = contributions(self.model, self.seen)
        return parts if parts.ndim == 3 else parts[None]

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions whose values decide."""
        names = function_names(self.inner)
        if len(names) == 1:
            return ("f",)
        numbered = not hasattr(self.inner, "classes_") and not hasattr(self.inner, "output_names_")
        return tuple(str(name + 1 if numbered else name) for name in names)

    def subset(self, X: Any, rows: IntArray) -> Any:
        """Training samples of these rows; of matrices, on both axes."""
        return as_stack(X)[np.ix_(rows, rows)] if self.precomputed else _safe_indexing(X, rows)


def as_rows(X: Any) -> range:
    """One number per sample, of any kind of data."""
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
        return range(as_stack(X).shape[0])  # a list of matrices
    return range(X.shape[0] if hasattr(X, "shape") else len(X))


def spread(n: int, most: int) -> IntArray:
    """Rows evenly spread over n, `most` at the most."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def take(X: Any, rows: IntArray) -> Any:
    """Rows of data as `predict` takes them; of matrices, their test axis."""
    if len(rows) == len(as_rows(X)):
        return X
    if isinstance(X, list | tuple) and np.ndim(X[0]) == 2:
        X = as_stack(X)
    return X[rows] if isinstance(X, KernelStack) else _safe_indexing(X, rows)
