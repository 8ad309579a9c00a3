"""What a report is made from, the model and its data, and what it looks at sample by sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.metrics import confusion_matrix
from sklearn.utils import _safe_indexing

from ..._censored import survival_array
from ..._typing import FloatArray, IntArray
from ...estimators._base import function_names
from ...estimators._survival import RiskScore
from ...gram import KernelStack
from ...gram.stack import as_stack
from ...inspection import contributions, explain
from ...inspection._models import competition, fitted_model, inputs_for, spread
from ...inspection.explanation import affordable, readable_names
from ...kernels import Views
from ...metrics import concordance_jackknife
from ...regularizers import Uniform
from .data import Attributions, Confusion, Novelty, Residuals, Samples, Sizes
from .words import number

#: called with a few words before each step
Progress = Callable[[str], Any]

#: most samples whose components are computed
MOST_ROWS = 2000


@dataclass(frozen=True)
class Subject:
    """A fitted model, training data, and held-out data where there are any."""

    model: Any
    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    random_state: int = 0
    ids: Any = None
    ids_test: Any = None
    groups: Any = None
    preprocessing: Any = None
    feature_names: Any = None

    @cached_property
    def inner(self) -> Any:
        """The estimator inside pipelines and searches."""
        return fitted_model(self.model)

    @cached_property
    def auto(self) -> Any:
        """The estimator that let candidates compete; None where none did."""
        return competition(self.model)

    @property
    def name(self) -> str:
        """The class of the estimator that chose the model, or of the model itself."""
        return type(self.inner if self.auto is None else self.auto).__name__

    @property
    def uniform(self) -> bool:
        """Whether the model is the plain sum of all kernels."""
        if self.auto is not None:
            every = len(self.inner.kernel_names_)
            return all(plain(one.regularizer) and len(one.kernels) == every for _, one, _ in self.auto._taken)
        return plain(getattr(self.inner, "regularizer", None))

    @property
    def stacked(self) -> bool:
        """Whether the model joins several candidates."""
        return self.auto is not None and len(self.auto._taken) > 1

    @property
    def even(self) -> bool:
        """Whether the kernels of the model, all or some of them, are summed without learned weights."""
        if self.auto is None:
            return self.uniform
        return all(plain(one.regularizer) for _, one, _ in self.auto._taken)

    @cached_property
    def precomputed(self) -> bool:
        """Whether the data are Gram matrices."""
        return bool(getattr(self.inner, "_precomputed", False))

    @cached_property
    def task(self) -> str:
        """What is learned: "classification", "regression", "survival" or "novelty"."""
        if is_classifier(self.inner):
            return "classification"
        if isinstance(self.inner, RiskScore):
            return "survival"
        return "novelty" if is_outlier_detector(self.inner) else "regression"

    @property
    def metric(self) -> str:
        """The score that decides."""
        return {"classification": "accuracy", "survival": "concordance"}.get(self.task, "R²")

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
        """Names of the samples looked at: those given, those of the table, or row numbers."""
        table, given = (self.X_test, self.ids_test) if self.held_out else (self.X, self.ids)
        if given is not None:
            return [str(given[row]) for row in self.rows]
        index = table.ids if isinstance(table, Views) else getattr(table, "index", None)
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
    def values(self) -> FloatArray:
        """f on the samples looked at, shape (K, n)."""
        return np.asarray(self.inner.model_(inputs_for(self.model, self.seen))).T

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions whose values decide."""
        names = function_names(self.inner)
        if len(names) == 1:
            return ("f",)
        numbered = not hasattr(self.inner, "classes_") and not hasattr(self.inner, "output_names_")
        return tuple(str(name + 1 if numbered else name) for name in names)

    def subset(self, X: Any, rows: IntArray) -> Any:
        """Training samples of these rows; for matrices, on both axes."""
        return as_stack(X)[np.ix_(rows, rows)] if self.precomputed else _safe_indexing(X, rows)


def targets_of(model: Any) -> Callable[[Any], Any]:
    """How targets of a model are read: censored times as a structured array, others as they are."""
    if not isinstance(fitted_model(model), RiskScore):
        return lambda y: y
    return lambda y: None if y is None else survival_array(y)


def plain(regularizer: Any) -> bool:
    """Whether all kernels weigh the same."""
    return regularizer == "uniform" or isinstance(regularizer, Uniform)


def as_rows(X: Any) -> range:
    """One number per sample, for any kind of data."""
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
        return range(as_stack(X).shape[0])  # a list of matrices
    return range(X.shape[0] if hasattr(X, "shape") else len(X))


def complete(X: Any) -> Any:
    """The samples that have all views; all samples where the data are not views."""
    return X[np.flatnonzero(X.observed.all(axis=1))] if isinstance(X, Views) else X


def take(X: Any, rows: IntArray) -> Any:
    """Rows of data as `predict` takes them; for matrices, rows of their test axis."""
    if len(rows) == len(as_rows(X)):
        return X
    if isinstance(X, list | tuple) and np.ndim(X[0]) == 2:
        X = as_stack(X)
    return X[rows] if isinstance(X, KernelStack) else _safe_indexing(X, rows)


# -- sample by sample ---------------------------------------------------------------------------------


#: most samples, and about how many numbers all of them may take
MOST_SAMPLES, MOST_NUMBERS, LEAST_SAMPLES = 200, 24_000, 24

#: most points of a residual plot
MOST_POINTS = 400


def samples(given: Subject) -> Samples | None:
    """Samples to look at closely: wrong ones and doubtful ones first, the others evenly spread."""
    if given.parts is None:
        return None
    # samples whose components keep the page small: a page shows at most 40 kernels of each
    numbers = len(given.parts) * min(given.parts.shape[2], 40)
    most = max(LEAST_SAMPLES, min(MOST_SAMPLES, MOST_NUMBERS // max(numbers, 1)))
    chosen = choose(_doubt(given), most)
    return _samples(given, chosen, given.intercept, given.parts[:, chosen])


def _samples(given: Subject, chosen: IntArray, intercept: FloatArray, parts: FloatArray) -> Samples:
    """Some of the samples looked at, taken apart."""
    wrong = _wrong(given)
    return Samples(
        part=given.part,
        labels=tuple(given.labels[row] for row in chosen),
        truth=as_words(given.truth, chosen),
        predicted=as_words(given.predicted, chosen),
        wrong=() if wrong is None else tuple(bool(wrong[row]) for row in chosen),
        intercept=intercept,
        parts=parts,
        n_all=given.n_seen,
    )


def choose(doubt: FloatArray, most: int) -> IntArray:
    """Rows in their order: all, or half of them the most doubtful and the rest evenly spread.

    Examples
    --------
    >>> import numpy as np
    >>> choose(np.array([0.0, 0.0, 9.0, 0.0, 0.0, 0.0]), 2).tolist()
    [0, 2]
    """
    n = len(doubt)
    if n <= most:
        return np.arange(n)
    doubtful = np.argsort(-doubt, kind="stable")[: most // 2]
    others = np.setdiff1d(np.arange(n), doubtful)
    picks = others[np.linspace(0, len(others) - 1, most - len(doubtful)).astype(int)]
    return np.sort(np.concatenate([doubtful, picks]))


def _wrong(given: Subject) -> FloatArray | None:
    if given.task != "classification" or given.truth is None:
        return None
    return np.asarray(given.predicted != given.truth)


def _doubt(given: Subject) -> FloatArray:
    """Large for samples worth a look: wrong, near the boundary, far from the observed value."""
    values = given.values
    if given.task == "survival":
        if given.truth is None:
            return np.zeros(values.shape[1])
        return -concordance_jackknife(given.truth["event"], given.truth["time"], given.predicted)
    if given.task == "regression":
        if given.truth is None:
            return np.zeros(values.shape[1])
        residuals = np.asarray(given.truth, dtype=float).reshape(values.shape[1], -1).T - values
        result: FloatArray = np.abs(residuals).sum(axis=0)
        return result
    margin = np.abs(values[0]) if len(values) == 1 else np.ptp(np.sort(values, axis=0)[-2:], axis=0)
    wrong = _wrong(given)
    result = -margin + (0.0 if wrong is None else 1e6 * wrong)
    return result


def as_words(values: Any, rows: Any = slice(None)) -> tuple[str, ...]:
    """Targets or predictions of some samples, none where these are not known.

    Examples
    --------
    >>> times = np.array([(True, 2.5), (False, 3.0)], dtype=[("event", bool), ("time", float)])
    >>> as_words(times)
    ('2.5 (event)', '3 (censored)')
    """
    if values is None:
        return ()
    picked = np.asarray(values)[rows]
    if picked.dtype.names is not None:
        known = zip(picked["time"].tolist(), picked["event"].tolist(), strict=True)
        return tuple(f"{number(time)} ({'event' if event else 'censored'})" for time, event in known)
    if picked.dtype.kind == "f":
        return tuple(", ".join(number(v) for v in np.ravel(row)) for row in picked)
    return tuple(str(value) for value in picked)


#: most samples, background samples and features kept of an explanation, and its most work
MOST_EXPLAINED, MOST_BACKGROUND, MOST_KEPT, WORK = 60, 50, 40, 1e8

#: least features called by numbers that are a curve
CURVE = 8


def attributions(given: Subject) -> Attributions | None:
    """What features add to samples, among them those worth a look; None where no kernel is taken apart."""
    total, background = len(given.rows), min(len(as_rows(given.X)), MOST_BACKGROUND)
    n, B = affordable(given.model, given.seen, min(total, MOST_EXPLAINED), background, WORK)
    chosen = choose(_doubt(given), n)
    others = take(given.X, spread(len(as_rows(given.X)), B))
    names = given.feature_names
    names = readable_names(given.model, others) if names is None else names
    found = explain(given.model, take(given.seen, chosen), others, within=False, feature_names=names)
    if len(found.feature_names) == len(found.whole):
        return None
    values, _ = found.parts_by("feature")
    own = {by: found.importance(by=by) for by in ("feature", "kernel")}
    sizes = {by: Sizes(tuple(one.feature_names), one.mean, one.low, one.high) for by, one in own.items()}
    order = np.argsort(-own["feature"].mean, kind="stable")
    kept, rest = order[:MOST_KEPT], values[..., order[MOST_KEPT:]].sum(axis=2, keepdims=True)
    parts = np.concatenate([values[..., kept], rest], axis=2)
    channels, positions = _curve(found.feature_names)
    return Attributions(
        samples=_samples(given, chosen, np.atleast_1d(np.asarray(found.base_value)), parts),
        features=tuple(found.feature_names[f] for f in kept),
        data=found.data[:, kept],
        by_feature=sizes["feature"],
        by_kernel=sizes["kernel"],
        positions=positions,
        channels=channels,
        n_background=B,
        whole=found.whole,
    )


def _curve(names: list[str]) -> tuple[IntArray, FloatArray | None]:
    """Features whose names are numbers, such as wavelengths, in order; none where there are few."""
    found = {}
    for f, name in enumerate(names):
        try:
            found[f] = float(name.rpartition(": ")[2])
        except ValueError:
            continue
    if len(set(found.values())) < CURVE or len(set(found.values())) < len(found):
        return np.arange(0), None
    channels = np.array(sorted(found, key=lambda f: found[f]))
    return channels, np.array([found[f] for f in channels])


def errors(given: Subject) -> Confusion | Residuals | Novelty | None:
    """Confusion of a classifier, residuals of a regressor, values of a detector; None for survival."""
    if given.task == "novelty":
        return Novelty(np.asarray(given.model.decision_function(given.seen), dtype=float), given.part)
    if given.truth is None or given.task == "survival":
        return None
    return _confusion(given) if given.task == "classification" else _residuals(given)


def _confusion(given: Subject) -> Confusion:
    """Confusion of all classes of the samples looked at, also those that training did not see."""
    classes = given.inner.classes_
    unseen = [label for label in np.unique(given.truth) if label not in classes]
    labels = [*classes, *unseen]
    counts = confusion_matrix(given.truth, given.predicted, labels=labels)
    return Confusion(tuple(str(label) for label in labels), counts, given.part)


def _residuals(given: Subject) -> Residuals:
    n = len(given.truth)
    rows = spread(n, MOST_POINTS)
    observed = np.asarray(given.truth, dtype=float).reshape(n, -1)[rows].T
    predicted = np.asarray(given.predicted, dtype=float).reshape(n, -1)[rows].T
    names = given.functions if len(given.functions) == len(observed) else ("f",) * len(observed)
    labels = tuple(given.labels[row] for row in rows)
    return Residuals(names, observed, predicted, labels, given.part, given.n_seen)
