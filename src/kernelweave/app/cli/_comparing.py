"""Nested cross-validation of methods and baselines on the same folds."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ...gram import KernelStack
from ._columns import Parts
from ._console import CliError
from ._facts import certificate, live_kernels, score
from ._methods import Options, search_of
from ._monitor import Monitor
from ._splits import make_folds

#: MKL methods compared by default
LEARNED = ("lp", "elasticnet", "smkl", "gomp", "gmkl", "empirical-bayes")

#: baselines: of kernels, and of the columns themselves
SIMPLE = ("uniform sum", "best single kernel", "random forest", "linear model")

#: those that see columns, and no kernels
OF_COLUMNS = ("random forest", "linear model")

INNER_FOLDS = 3

#: costs of the linear model of classes
LINEAR_COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)

#: trees of the random forest
TREES = 300


@dataclass
class Contender:
    """One method over all folds."""

    name: str
    baseline: bool
    scores: list[float] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    seconds: float = 0.0
    certified: list[bool | None] = field(default_factory=list)
    failure: str = ""

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores)) if self.scores and not self.failure else -np.inf

    @property
    def error(self) -> float:
        """Standard error of the mean over folds."""
        n = len(self.scores)
        return float(np.std(self.scores, ddof=1) / np.sqrt(n)) if n > 1 else np.nan

    @property
    def proof(self) -> str:
        """Whether every fold was certified; "-" for what has no certificate."""
        if not self.certified or None in self.certified:
            return "-"
        return "yes" if all(self.certified) else "no"


@dataclass(frozen=True)
class Verdict:
    """Best learned weights against the best baseline, fold by fold."""

    learned: str
    baseline: str
    difference: float
    error: float

    @property
    def tie(self) -> bool:
        """Whether both scores are the same in the three decimals that are shown."""
        return abs(self.difference) < 0.0005

    @property
    def helps(self) -> bool:
        # where one fold alone differs, both are equal but for rounding
        return bool(self.difference > self.error * (1 + 1e-9)) and not self.tie

    def __str__(self) -> str:
        margin = f"{self.difference:+.3f} ± {self.error:.3f} over the same folds"
        if self.helps:
            return f"Learning the weights helps: {self.learned} against {self.baseline}, {margin}."
        word = "worse than"
        if self.tie:
            word = "as good as"
        elif self.difference >= -self.error * (1 + 1e-9):
            word = "within one standard error of"
        return (
            f"MKL does not help here: the best of its methods, {self.learned}, is {word} the best baseline, "
            f"{self.baseline} ({margin}). Prefer {self.baseline}, which is simpler."
        )


def make_candidate(name: str, parts: Parts, options: Options, cv: Any) -> Any:
    """An estimator that chooses its own parameters, unfitted."""
    classifies = options.task == "classification"
    if name in ("best single kernel", "uniform sum") and options.missing == "margin":
        options = replace(options, missing="mask")  # margins by pattern are for p = 1
    if name == "best single kernel":
        return BestSingleKernel(parts.kernels, options, cv)
    if name == "random forest":
        forest = RandomForestClassifier if classifies else RandomForestRegressor
        return on_columns(forest(TREES, random_state=options.seed, n_jobs=options.n_jobs), parts)
    if name == "linear model" and classifies:
        linear = on_columns(LogisticRegression(max_iter=2000), parts)
        prefix = "" if isinstance(linear, LogisticRegression) else "logisticregression__"
        return GridSearchCV(linear, {f"{prefix}C": list(LINEAR_COSTS)}, cv=cv)
    if name == "linear model":
        return on_columns(
            RidgeCV(np.geomspace(1e-3, 1e4, 15), cv=cv if isinstance(cv, list) else None), parts
        )
    return search_of("uniform" if name == "uniform sum" else name, parts.kernels, options, cv)


def on_columns(model: Any, parts: Parts) -> Any:
    """A model of the columns themselves; of views of all of them, with means where samples lack some."""
    if isinstance(parts.X, np.ndarray) and parts.X.dtype.kind == "f":
        return model
    return make_pipeline(FunctionTransformer(columns_of_all), SimpleImputer(keep_empty_features=True), model)


def columns_of_all(X: Any) -> np.ndarray:
    """Columns of numbers of all views, or of an array in which some hold text."""
    tables = [X] if isinstance(X, np.ndarray) else list(X.tables.values())
    numbers = [pd.DataFrame(table).infer_objects().select_dtypes("number") for table in tables]
    return np.hstack([table.to_numpy(np.float64) for table in numbers])


def compare_all(
    names: list[str],
    ready: Any,
    folds: list[tuple[np.ndarray, np.ndarray]],
    options: Options,
    monitor: Monitor,
) -> list[Contender]:
    """Every method on every fold; one that fails is left out of the ranking, with its reason."""
    entries = [Contender(name, name in SIMPLE) for name in names]
    total, done = len(folds) * len(entries), 0
    for number, (train, test) in enumerate(folds, 1):
        parts = ready.split(train, test)
        y, truth = ready.target.y[train], ready.target.y[test]
        inner = inner_folds(options, y, None if ready.group_of is None else ready.group_of[train])
        for entry in entries:
            monitor.part(f"fold {number} of {len(folds)}, {entry.name}", done / total)
            if not entry.failure:
                run_fold(entry, parts, y, truth, options, inner)
            done += 1
    return sorted(entries, key=lambda entry: -entry.mean)


def inner_folds(options: Options, y: np.ndarray, group_of: np.ndarray | None) -> Any:
    """Folds in which the parameters of every method are chosen."""
    if group_of is not None or options.task == "survival":
        where = "--folds, inside a training part"
        return make_folds(options.task, y, INNER_FOLDS, options.seed, group_of, where)
    splitter: Any = StratifiedKFold if options.task == "classification" else KFold
    return splitter(INNER_FOLDS, shuffle=True, random_state=options.seed)


def run_fold(
    entry: Contender, parts: Parts, y: np.ndarray, truth: np.ndarray, options: Options, cv: Any
) -> None:
    """Fit one method on one training part and score it on the rest."""
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make_candidate(entry.name, parts, options, cv).fit(parts.X, y)
            predicted = model.predict(parts.X_rest)
    except (ValueError, MemoryError, CliError) as error:
        entry.failure = str(error).partition("\n")[0]
        return
    entry.seconds += time.monotonic() - began
    entry.scores.append(next(iter(score(options.task, truth, predicted).values())))
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "weights_"):
        entry.used.append(live_kernels(model))
        entry.certified.append(certificate(model)["certified"])


def verdict(entries: list[Contender]) -> Verdict | None:
    """The best learned weights against the best baseline; None where one of them is missing."""
    there = [entry for entry in entries if np.isfinite(entry.mean)]
    best = next((entry for entry in there if not entry.baseline), None)
    other = next((entry for entry in there if entry.baseline), None)
    if best is None or other is None:
        return None
    differences = np.array(best.scores) - np.array(other.scores)
    error = float(differences.std(ddof=1) / np.sqrt(len(differences))) if len(differences) > 1 else np.inf
    return Verdict(best.name, other.name, float(differences.mean()), error)


def single_kernels(kernels: Any) -> list[Any]:
    """Every kernel of a dict, or of a list of (name, kernel, view), alone."""
    return [[one] for one in kernels] if isinstance(kernels, list) else [{k: v} for k, v in kernels.items()]


class BestSingleKernel(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The one kernel, and its cost, with the best cross-validated score.

    Parameters
    ----------
    kernels : dict of name -> kernel, list of (name, kernel, view), or "precomputed"
    options : Options
    cv : splitter, or list of splits
    """

    def __init__(self, kernels: Any, options: Options, cv: Any) -> None:
        self.kernels = kernels
        self.options = options
        self.cv = cv

    def fit(self, X: Any, y: Any) -> Self:
        """Search every kernel on its own."""
        self.place_: int = 0
        self.best_: Any = None
        given = isinstance(self.kernels, str)
        singles: Any = ["precomputed"] * X.shape[2] if given else single_kernels(self.kernels)
        for place, kernel in enumerate(singles):
            search = search_of("uniform", kernel, self.options, self.cv)
            with suppress(ValueError):  # a kernel that cannot be fitted alone is not the best one
                search.fit(self._view(X, place), y)
            score = getattr(search, "best_score_", -np.inf)
            if score > getattr(self.best_, "best_score_", -np.inf):
                self.place_, self.best_ = place, search
        if self.best_ is None:
            raise ValueError("no kernel can be fitted alone")
        return self

    def predict(self, X: Any) -> Any:
        return self.best_.predict(self._view(X, self.place_))

    @property
    def best_estimator_(self) -> Any:
        return self.best_.best_estimator_

    def _view(self, X: Any, place: int) -> Any:
        return KernelStack([X.matrix(place)]) if isinstance(X, KernelStack) else X
