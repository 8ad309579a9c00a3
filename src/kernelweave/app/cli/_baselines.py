"""What MKL is compared with: one kernel, their plain sum, and models that know no kernels."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV

from ...gram import KernelStack
from ._methods import COSTS, Options, search_of

#: trees of the random forest
TREES = 300


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


def uniform_sum(task: str, kernels: Any, options: Options, cv: Any) -> Any:
    """All kernels at equal weights, their cost chosen by cross-validation."""
    return search_of("uniform", task, kernels, options, cv)
