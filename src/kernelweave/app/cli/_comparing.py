"""Nested cross-validation of methods and baselines on the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from ...gram import KernelStack
from ._columns import Parts
from ._console import CliError
from ._facts import certificate, live_kernels, score
from ._methods import COSTS, Options, search_of
from ._monitor import Monitor

#: MKL methods compared by default
LEARNED = ("lp", "elasticnet", "smkl", "gomp", "gmkl", "empirical-bayes")

#: baselines: of kernels, and of the columns themselves
SIMPLE = ("uniform sum", "best single kernel", "random forest", "linear model")

INNER_FOLDS = 3

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
    def helps(self) -> bool:
        # where one fold alone differs, both are equal but for rounding
        return bool(self.difference > self.error * (1 + 1e-9))

    def __str__(self) -> str:
        margin = f"{self.difference:+.3f} ± {self.error:.3f} over the same folds"
        if self.helps:
            return f"Learning the weights helps: {self.learned} against {self.baseline}, {margin}."
        word = "within one standard error of" if self.difference > -self.error else "worse than"
        return (
            f"MKL does not help here: the best of its methods, {self.learned}, is {word} the best baseline, "
            f"{self.baseline} ({margin}). Prefer {self.baseline}, which is simpler."
        )


def outer_folds(task: str, n_folds: int, seed: int, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds of the outer loop, in proportion for classes."""
    smallest = int(np.unique(y, return_counts=True)[1].min()) if task == "classification" else len(y)
    if smallest < n_folds:
        what = "the smallest class has" if task == "classification" else "there are"
        raise CliError(f"--folds {n_folds}: {what} {smallest} rows; use at most {max(smallest, 2)} folds.")
    splitter: Any = StratifiedKFold if task == "classification" else KFold
    return list(splitter(n_folds, shuffle=True, random_state=seed).split(np.zeros((len(y), 1)), y))


def inner_folds(task: str, seed: int) -> Any:
    """Folds by which parameters are chosen inside a training part."""
    splitter: Any = StratifiedKFold if task == "classification" else KFold
    return splitter(INNER_FOLDS, shuffle=True, random_state=seed)


def make_candidate(name: str, task: str, parts: Parts, options: Options) -> Any:
    """An estimator that chooses its own parameters, unfitted."""
    cv = inner_folds(task, options.seed)
    makers: dict[str, Callable[[], Any]] = {
        "uniform sum": lambda: search_of("uniform", task, parts.kernels, options, cv),
        "best single kernel": lambda: BestSingleKernel(parts.kernels, task, options, cv),
        "random forest": lambda: random_forest(task, options),
        "linear model": lambda: linear_model(task, cv),
    }
    return makers[name]() if name in makers else search_of(name, task, parts.kernels, options, cv)


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
        for entry in entries:
            monitor.part(f"fold {number} of {len(folds)}, {entry.name}", done / total)
            if not entry.failure:
                run_fold(entry, ready.target.task, parts, y, truth, options)
            done += 1
    return sorted(entries, key=lambda entry: -entry.mean)


def run_fold(
    entry: Contender, task: str, parts: Parts, y: np.ndarray, truth: np.ndarray, options: Options
) -> None:
    """Fit one method on one training part and score it on the rest."""
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make_candidate(entry.name, task, parts, options).fit(parts.X, y)
            predicted = model.predict(parts.X_rest)
    except (ValueError, MemoryError, CliError) as error:
        entry.failure = str(error).partition("\n")[0]
        return
    entry.seconds += time.monotonic() - began
    entry.scores.append(next(iter(score(task, truth, predicted).values())))
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "weights_"):
        entry.used.append(live_kernels(model))
        entry.certified.append(certificate(model)["certified"])


def verdict(entries: list[Contender]) -> Verdict | None:
    """The best learned weights against the best baseline; None where one of them is missing."""
    there = [entry for entry in entries if np.isfinite(entry.mean)]
    learned = [entry for entry in there if not entry.baseline]
    simple = [entry for entry in there if entry.baseline]
    if not learned or not simple:
        return None
    best, other = learned[0], simple[0]
    differences = np.array(best.scores) - np.array(other.scores)
    error = float(differences.std(ddof=1) / np.sqrt(len(differences))) if len(differences) > 1 else np.inf
    return Verdict(best.name, other.name, float(differences.mean()), error)


# -- what MKL is compared with: one kernel, their plain sum, and models that know no kernels ----------


def random_forest(task: str, options: Options) -> Any:
    """A random forest on the raw columns."""
    cls = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return cls(TREES, random_state=options.seed, n_jobs=options.n_jobs)


def linear_model(task: str, cv: Any) -> Any:
    """Logistic or ridge regression on the raw columns, their penalty chosen by cross-validation."""
    if task == "regression":
        return RidgeCV(np.geomspace(1e-3, 1e4, 15))
    return GridSearchCV(LogisticRegression(max_iter=2000), {"C": list(COSTS)}, cv=cv)


class BestSingleKernel(BaseEstimator):
    """The one kernel, and its cost, with the best cross-validated score.

    Parameters
    ----------
    kernels : dict of name -> kernel, or "precomputed"
    task : str
    options : Options
    cv : splitter
    """

    def __init__(self, kernels: Any, task: str, options: Options, cv: Any) -> None:
        self.kernels = kernels
        self.task = task
        self.options = options
        self.cv = cv

    def fit(self, X: Any, y: Any) -> Self:
        """Search every kernel on its own."""
        self.place_: int = 0
        self.best_: Any = None
        for place, kernel in enumerate(self._candidates(X)):
            search = search_of("uniform", self.task, kernel, self.options, self.cv)
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

    def _candidates(self, X: Any) -> list[Any]:
        if isinstance(self.kernels, str):
            return ["precomputed"] * X.shape[2]
        return [{name: kernel} for name, kernel in self.kernels.items()]

    def _view(self, X: Any, place: int) -> Any:
        return KernelStack([X.matrix(place)]) if isinstance(X, KernelStack) else X
