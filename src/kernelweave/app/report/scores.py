"""The model's score beside those of simpler models: the plain sum of kernels, the best kernel, no kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import (
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
    cross_val_predict,
)
from sklearn.pipeline import Pipeline

from ..._typing import FloatArray
from ...estimators import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    MKLSurvival,
    MKLSurvivalCV,
)
from ...estimators._survival import as_columns
from ...estimators.auto import BaseMKLAuto
from ...gram import KernelStack
from ...gram.stack import as_stack
from ...inspection._models import data_for, spread
from ...kernels import RBF, Views
from ...kernels.spec import kernel_alone
from ...losses import Cox
from ...metrics import concordance_jackknife
from ...persistence.codec import NotStored
from ...theory import target_alignment
from .data import Roc, Score, Scores
from .given import Progress, Subject, as_rows, complete
from .measures import measures, roc

#: how many costs to choose from at first, by cross-validation on the training samples
COSTS = 5

#: folds in which costs are chosen, and in which samples are scored where nothing is held out
FOLDS = 3

#: single kernels that are trained, those best aligned with the target
SHORTLIST = 3

#: most samples on which costs and single kernels are chosen, and bytes of their Gram matrices
TUNED_SAMPLES, MATRIX_BYTES = 800, 200_000_000

#: samples x samples x kernels beyond which the plain sum is left out
MOST_ENTRIES = 20_000_000_000

#: what may stop a baseline without stopping the report
FAILURES = (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError)


#: searches of costs, and what they search, by task; of others those of a regression
SEARCHES: dict[str, tuple[Any, Any]] = {
    "classification": (MKLClassifierCV, MKLClassifier),
    "survival": (MKLSurvivalCV, MKLSurvival),
}


@dataclass(frozen=True)
class Baseline:
    """A model to fit; `view` takes from the data what it sees."""

    name: str
    estimator: Any
    view: Callable[[Any], Any] = lambda X: X


def baselines_for(given: Subject) -> list[Baseline]:
    """Plain sum, best single kernel, and last a model that sees no kernel.

    The single kernel is the one with the best validation score among those best aligned with the target.
    """
    trivial = {
        "classification": Baseline("majority class", DummyClassifier()),
        "survival": Baseline("same risk for all", SameRisk()),
    }.get(given.task, Baseline("mean of the targets", DummyRegressor()))
    if not hasattr(given.inner, "kernels"):  # one kernel with parameters
        return [_tuned(given, "one Gaussian kernel on all columns", [RBF()])[1], trivial]
    n, M = len(as_rows(given.X)), len(given.inner.kernel_names_)
    if M == 1:
        return [trivial]
    found = []
    if not given.uniform and M * n**2 <= MOST_ENTRIES:
        found.append(_tuned(given, "uniform sum of the kernels", given.inner.kernels)[1])
    X, y = _part(given)[:2]
    if isinstance(X, Views) and not X.observed.all():
        y, X = np.asarray(y)[X.observed.all(axis=1)], complete(X)
    task, y = ("regression", residuals(y)) if given.task == "survival" else (given.task, y)
    if len(np.unique(np.asarray(y), axis=0)) < 2:
        return [*found, trivial]
    kernels = "precomputed" if given.precomputed else given.inner.kernels
    aligned = np.argsort(-target_alignment(kernels, X, y, task=task).value, kind="stable")
    singles = [_single(given, int(m)) for m in aligned[:SHORTLIST]]
    return [*found, max(singles, key=lambda pair: pair[0])[1], trivial]


class SameRisk(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """No sample is at more risk than another."""

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict(self, X: Any) -> FloatArray:
        return np.zeros(len(as_rows(X)))


def residuals(y: Any) -> FloatArray:
    """For censored times, what is left to explain where all have the same risk: -L'(0) of Cox's loss."""
    columns = as_columns(y)[0]
    return -Cox().gradient(columns, np.zeros(len(y)), np.ones(len(y)))


def _single(given: Subject, m: int) -> tuple[float, Baseline]:
    name = f"best single kernel: {given.inner.kernel_names_[m]}"
    if given.precomputed:
        return _tuned(given, name, "precomputed", lambda X: KernelStack([as_stack(X).matrix(m)]))
    return _tuned(given, name, kernel_alone(given.inner.kernels, data_for(given.model, given.X), m))


def _tuned(
    given: Subject, name: str, kernels: Any, view: Callable[[Any], Any] = lambda X: X
) -> tuple[float, Baseline]:
    """The plain sum of kernels, its cost chosen by cross-validation, and its score there."""
    options: dict[str, Any] = {"normalize": getattr(given.inner, "normalize", "variance")}
    missing = getattr(given.inner, "missing", "error")
    if missing != "error":  # margins in the space of each sample's views are for p = 1 alone
        options["missing"] = "mask" if missing == "margin" else missing
    if hasattr(given.inner, "kernels") and getattr(given.inner, "loss", None) is not None:
        options["loss"] = given.inner.loss
    cost = float(getattr(given.inner, "C", None) or 1.0)
    Search, Plain = SEARCHES.get(given.task, (MKLRegressorCV, MKLRegressor))
    X, y, groups = _part(given)
    try:
        cv = FOLDS if groups is None else list(splitter(given.task).split(np.zeros((len(y), 1)), y, groups))
        search = Search(kernels, regularizers="uniform", Cs=COSTS, cv=cv, **options)
        search.fit(view(X), y)
    except FAILURES:
        return -np.inf, Baseline(name, Plain(kernels, regularizer="uniform", C=cost, **options), view)
    return float(search.best_score_), Baseline(name, clone(search.best_estimator_), view)


def _part(given: Subject) -> tuple[Any, Any, Any]:
    """Training samples as the kernels see them, all or as many as are quickly dealt with, and their groups.

    The samples kept are spread evenly over all samples in the order of their targets: every class in
    proportion.
    """
    X, y, M = data_for(given.model, given.X), np.asarray(given.y), len(given.inner.kernel_names_)
    most = min(TUNED_SAMPLES, max(50, int((MATRIX_BYTES / (8 * M)) ** 0.5)))
    if len(y) <= most:
        return X, given.y, given.groups
    order = (
        np.argsort(np.unique(y, return_inverse=True)[1], kind="stable") if y.ndim == 1 else np.arange(len(y))
    )
    rows = np.sort(order[spread(len(y), most)])
    return given.subset(X, rows), y[rows], None if given.groups is None else np.asarray(given.groups)[rows]


def splitter(task: str) -> Any:
    """Folds of whole groups, classes in proportion."""
    return StratifiedGroupKFold(FOLDS) if task == "classification" else GroupKFold(FOLDS)


# -- scores -------------------------------------------------------------------------------------------


NOTE = "The baselines chose their cost C by cross-validation on the training samples."

#: most samples in folds where nothing is held out
MOST_SAMPLES = 1500


def scores(given: Subject, baselines: Iterable[Any] | None, progress: Progress) -> Scores | None:
    """Scores on the held-out samples, or cross-validated where nothing was held out.

    The errors of two models on the same samples go together, so the standard error of their difference is
    computed from the differences sample by sample. Baselines given by the caller have no values for single
    samples; their errors are added as if they were independent.
    """
    if given.task == "novelty" or given.y is None:
        return None
    check = _held_out(given) if given.held_out else _folds(given)
    progress("scoring the model")
    predicted = check.predict(given.model, lambda X: X)
    own, more = gains(given.task, check.truth, predicted), measures(given.task, check.truth, predicted)
    curves = _curves(given, check)
    more |= {} if curves is None else {"AUC": curves.auc}
    model = Score("this model", *_mean_and_error(own))
    metric = given.metric
    if baselines is not None:
        others = tuple(_given_score(entry, model) for entry in baselines)
        return Scores(metric, check.how, len(own), model, others, more=more, roc=curves)
    progress("choosing the baselines")
    candidates = baselines_for(given)
    scored = [_scored(entry, given.task, check, own, progress) for entry in candidates]
    others = tuple(entry for entry in scored if isinstance(entry, Score))
    failed = tuple(entry for entry in scored if isinstance(entry, str))
    return Scores(metric, check.how, len(own), model, others, candidates[-1].name, failed, NOTE, more, curves)


def _curves(given: Subject, check: Check) -> Roc | None:
    """ROC curves of a classifier on the samples of its score."""
    if given.task != "classification":
        return None
    try:
        return roc(given.inner.classes_, check.truth, check.values(), check.part)
    except FAILURES:  # a fold without one of the classes
        return None


def _scored(baseline: Baseline, task: str, check: Check, own: FloatArray, progress: Progress) -> Score | str:
    """The score of a baseline, or why it has no score."""
    progress(f"scoring the baseline: {baseline.name}")
    try:
        found = gains(task, check.truth, check.predict(baseline.estimator, baseline.view))
    except FAILURES as error:
        return f"{baseline.name} ({error})"
    return Score(baseline.name, *_mean_and_error(found), *_mean_and_error(own - found))


def _mean_and_error(gains: FloatArray) -> tuple[float, float]:
    return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.nan


def _given_score(entry: Any, model: Score) -> Score:
    """A baseline of the caller: a dict or an object with name, score and maybe error."""
    read = entry.get if isinstance(entry, dict) else lambda key, default=None: getattr(entry, key, default)
    name, value, error = read("name"), read("score"), read("error")
    if name is None or value is None:
        raise ValueError(f"baselines: {entry!r} needs a name and a score.")
    both = None if error is None or model.error is None else float(np.hypot(float(error), model.error))
    return Score(
        str(name), float(value), None if error is None else float(error), model.value - float(value), both
    )


@dataclass(frozen=True)
class Check:
    """Samples on which models are compared.

    `predict(estimator, view)` gives the predictions of the model itself, or of a baseline fitted on what
    `view` takes from the data; `values()` the decision values of the model. `part` and `how` say in words
    which samples these are, and how they were predicted.
    """

    truth: Any
    part: str
    how: str
    predict: Callable[[Any, Callable[[Any], Any]], Any]
    values: Callable[[], Any]


def _held_out(given: Subject) -> Check:
    """Trained on the training samples, scored on the held-out ones."""

    def predict(estimator: Any, view: Callable[[Any], Any]) -> Any:
        if estimator is given.model:
            return estimator.predict(given.X_test)
        trained = _in_pipeline(given.model, estimator).fit(view(given.X), given.y)
        return trained.predict(view(given.X_test))

    def values() -> Any:
        return given.model.decision_function(given.X_test)

    return Check(np.asarray(given.y_test), given.part, "on the held-out samples", predict, values)


def _folds(given: Subject) -> Check:
    """Each sample predicted by a model fitted without its fold, with the parameters of the fitted one.

    Where candidates competed for the model they do so again, within the training part of each fold.
    """
    n = len(np.asarray(given.y))
    rows = np.random.RandomState(given.random_state).permutation(spread(n, MOST_SAMPLES))
    truth = np.asarray(given.y)[rows]
    cv: Any = check_cv(FOLDS, truth, classifier=given.task == "classification")
    if given.task == "survival":
        cv = list(StratifiedKFold(FOLDS).split(np.zeros((len(truth), 1)), truth["event"]))
    if given.groups is not None:
        cv = list(
            splitter(given.task).split(np.zeros((len(truth), 1)), truth, np.asarray(given.groups)[rows])
        )

    def own(method: str) -> Any:
        X, extra = given.subset(given.X, rows), {}
        if given.groups is not None and isinstance(given.model, BaseMKLAuto):
            extra = {"groups": np.asarray(given.groups)[rows]}
        return cross_val_predict(_afresh(given.model), X, truth, cv=cv, method=method, params=extra)

    def predict(estimator: Any, view: Callable[[Any], Any]) -> Any:
        if estimator is given.model:
            return own("predict")
        estimator = _in_pipeline(given.model, estimator)
        return cross_val_predict(estimator, given.subset(view(given.X), rows), truth, cv=cv)

    def values() -> Any:
        return own("decision_function")

    how = f"by {FOLDS}-fold cross-validation of the training samples (nothing was held out)"
    return Check(truth, "cross-validated", how, predict, values)


def _afresh(model: Any) -> Any:
    """An unfitted copy of what a search chose, which neither reads nor writes the checkpoint of the fit.

    What a competition chose is not an estimator by itself, so the competition itself is copied.
    """
    copy = clone(model if isinstance(model, BaseMKLAuto) else getattr(model, "best_estimator_", model))
    dropped = [name for name, value in copy.get_params().items() if _of_the_fit(name.split("__")[-1], value)]
    return copy.set_params(**dict.fromkeys(dropped))


def _of_the_fit(name: str, value: Any) -> bool:
    """Whether a parameter is for the fit on all samples alone: paths, splits, what a file did not keep."""
    if name in ("cv", "scoring") and isinstance(value, NotStored):
        return True
    return name == "checkpoint" or (name == "cv" and isinstance(value, list))


def _in_pipeline(model: Any, estimator: Any) -> Any:
    """The estimator after the same transformers as the model."""
    model = getattr(model, "best_estimator_", model)
    if not hasattr(model, "steps"):
        return estimator
    return Pipeline([*[(name, clone(step)) for name, step in model.steps[:-1]], ("baseline", estimator)])


def gains(task: str, truth: Any, predicted: Any) -> FloatArray:
    """Numbers whose mean is the score: hits for accuracy, 1 - e^2 / mean e0^2 for R^2.

    e is the error of a sample, e0 that of the mean of all; with several outputs, their mean. For a
    concordance, they are the numbers of the jackknife.
    """
    if task == "classification":
        return np.asarray(truth == predicted, dtype=float)
    if task == "survival":
        return concordance_jackknife(truth["event"], truth["time"], predicted)
    truth = np.asarray(truth, dtype=float).reshape(len(truth), -1)
    errors = (truth - np.asarray(predicted, dtype=float).reshape(truth.shape)) ** 2
    variance = ((truth - truth.mean(axis=0)) ** 2).mean(axis=0)
    result: FloatArray = (1.0 - errors / np.maximum(variance, 1e-300)).mean(axis=1)
    return result
