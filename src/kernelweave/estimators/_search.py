"""What searches by cross-validation share: folds, metadata on their way there, scores, the best."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_method_params, check_is_fitted

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from ..gram import Predictor
from ..kernels.compose import NestedKernels
from ._base import all_or_nothing
from ._input import check_settings
from ._labels import LossScore, decided


class Metadata(NamedTuple):
    """What `fit` was given beside X and y, for all samples: by argument of the splitter and of the scorer."""

    split: dict[str, Any]
    score: dict[str, Any]


class Folds(NamedTuple):
    """The splits of a cross-validation, as positions among the samples of positive weight."""

    n_samples: int  # of any weight
    used: IntArray
    splits: list[tuple[IntArray, IntArray]]
    score: dict[str, Any]

    def score_options(self, test: IntArray) -> dict[str, Any]:
        """What the scorer gets with some samples; weights that are all equal do not matter to it."""
        options = _check_method_params(np.empty((self.n_samples, 0)), self.score, self.used[test])
        weight = options.get("sample_weight")
        if weight is not None and not _routing_enabled() and np.ptp(weight) == 0:
            del options["sample_weight"]
        return options


class BaseSearch(NestedKernels):
    """A grid of models, each scored on held-out folds of matrices that are computed once.

    A family gives `_searched`, `_grid` and `_values`. As in scikit-learn, with metadata routing every
    argument of ``fit`` goes to whom requests it, the estimator itself, its splitter and its scorer (without
    `scoring`, its own ``score``); without routing, `groups` go to the splitter, and weights to the scorer.
    """

    #: the class of estimators whose parameters are searched
    _searched: ClassVar[type[BaseEstimator]]

    #: the values of `cv` that are names
    _named_cv: ClassVar[tuple[str, ...]] = ()

    best_estimator_: Any

    _fitted: ClassVar[dict[str, type]] = {"best_estimator_": BaseEstimator}

    def _fits_together(self) -> bool:
        return isinstance(self.best_estimator_, self._searched)

    def _template(self) -> Any:
        """One of them, with the parameters it shares with the search, whose threads and files are its own."""
        own = {*self._get_param_names()} - {"n_jobs", "checkpoint"}
        shared = {name: getattr(self, name) for name in self._searched._get_param_names() if name in own}
        shared["device"] = self.device or getattr(self, "_data_device", None)
        return self._searched(**shared)

    @abstractmethod
    def _grid(self) -> tuple[Any, Any]:
        """An estimator that checks the data, and the grid, checked."""

    @abstractmethod
    def _values(
        self, template: Any, grid: Any, setup: Any, folds: Folds
    ) -> tuple[list[dict[str, Any]], list[list[FloatArray]]]:
        """Parameters of every point, and for each fold the values of every point on its test rows."""

    def _frozen(self, template: Any, values: FloatArray) -> Any:
        """An estimator that answers with function values computed already."""
        if is_classifier(self):
            return FrozenClassifier(template.classes_, template._class_values(values), template._has_labels)
        return FrozenRegressor(template._shaped(values), template.loss)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._template().__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Search by cross-validation, then fit the best point of the grid on all samples.

        Parameters
        ----------
        X, y, sample_weight
            As in the estimator without CV. Kernel parameters taken from data ("scale",
            "median") are taken once, from all rows; normalisation constants from the training
            rows of each fold.
        **params
            `groups`, array-like of shape (n,), for a splitter by groups such as ``cv=GroupKFold()``. With
            scikit-learn's metadata routing, whatever the splitter and the scorer request.
        """
        check_settings(self)
        y = y.toarray() if sparse.issparse(y) else y
        metadata = self._metadata(sample_weight, params)
        template, grid = self._grid()
        setup = template._setup(X, y, sample_weight)
        folds, labels = self._folds(np.asarray(y), setup.weight, metadata), np.asarray(y)
        scorer, targets = check_scoring(self, self.scoring), labels[folds.used]
        with blas_threads_for(len(setup.weight)):
            points, values = self._values(template, grid, setup, folds)
        scores = np.array(
            [
                self._scores(scorer, template, each, targets[test], folds.score_options(test))
                for each, (_, test) in zip(values, folds.splits, strict=True)
            ]
        )
        self._record(points, scores, folds)
        self.best_estimator_ = clone(template).set_params(**self.best_params_).fit(X, y, sample_weight)
        own = ("n_features_in_", "feature_names_in_", "views_in_", "classes_", "multilabel_")
        for name in (*own, "patterns_", "observed_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _scores(
        self, scorer: Any, template: Any, values: list[FloatArray], y: Any, options: dict[str, Any]
    ) -> list[float]:
        """Scores of every point on one fold; neighbours with the same values have the same score."""
        scores: list[float] = []
        for k, part in enumerate(values):
            if k and np.array_equal(part, values[k - 1]):
                scores.append(scores[-1])
                continue
            frozen, blank = self._frozen(template, part), np.zeros((len(y), 1))
            scores.append(self._score(scorer, frozen, blank, y, options))
        return scores

    def _score(self, scorer: Any, frozen: Any, X: FloatArray, y: Any, options: dict[str, Any]) -> float:
        """What a scorer gives the values of a fold; they are no probabilities."""
        try:
            return float(scorer(frozen, X, y, **options))
        except AttributeError as error:
            if not (is_classifier(self) and "proba" in str(error)):
                raise
            raise ValueError(
                f"scoring={self.scoring!r} needs probabilities, and {type(self).__name__} has labels and "
                f"decision values of the folds: use GridSearchCV({self._searched.__name__}(...), ...)."
            ) from error

    def _record(self, points: list[dict[str, Any]], scores: FloatArray, folds: Folds) -> None:
        mean = scores.mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError(self._no_score(folds))
        self.best_index_ = self._best(points, scores, np.where(np.isnan(mean), -np.inf, mean))
        self.best_score_ = float(mean[self.best_index_])
        self.best_params_ = points[self.best_index_]
        self.cv_results_ = {
            "params": points,
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=0),
            "split_test_scores": scores,
        }

    def _best(self, points: list[dict[str, Any]], scores: FloatArray, mean: FloatArray) -> int:
        """Index of the point to take, from scores (n_folds, n_points) and their mean."""
        return int(np.argmax(mean))

    def _no_score(self, folds: Folds) -> str:
        """What to say where the mean score of every point is NaN."""
        default = " (the default)" if self.scoring is None else ""
        remedies = ["a number of folds such as cv=5", "a scoring that is defined on every fold"]
        if all(len(test) == 1 for _, test in folds.splits):
            one = "accuracy" if is_classifier(self) else "neg_mean_squared_error"
            remedies[1] = f"a scoring that is defined for one sample, such as {one!r}"
            remedies[:0] = [f"cv={name!r}, which scores all samples together" for name in self._named_cv]
        return (
            f"scoring={self.scoring!r}{default} is NaN at every point of the grid with cv={self.cv!r}: pass "
            f"{', or '.join(remedies)}."
        )

    # -- metadata and folds -------------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """What ``fit`` passes on, and to whom."""
        own = self._get_metadata_request()
        scorer = own if self.scoring is None else check_scoring(self, self.scoring)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        )

    def _metadata(self, sample_weight: Any, params: dict[str, Any]) -> Metadata:
        """Sort the arguments of ``fit``."""
        _raise_for_params(params, self, "fit", allow={"groups"})
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return Metadata(dict(routed.splitter.split), dict(routed.scorer.score))
        given = {"groups": params["groups"]} if params.get("groups") is not None else {}
        return Metadata(given, {} if sample_weight is None else {"sample_weight": sample_weight})

    def _folds(self, y: Any, weight: FloatArray, metadata: Metadata) -> Folds:
        """The splits of all samples, without those of weight zero: they are in no matrix."""
        if isinstance(self.cv, str):
            names = "".join(f"{name!r}, " for name in self._named_cv)
            raise ValueError(
                f"cv={self.cv!r}: {type(self).__name__} takes {names}a number of folds, a splitter such as "
                "KFold(5), or an iterable of (train, test) positions."
            )
        used = np.flatnonzero(weight)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        if metadata.split.get("groups") is None and _needs_groups(splitter):
            raise ValueError(
                f"cv={self.cv!r} splits by groups, and there are none: pass them to fit, "
                "fit(X, y, groups=...), one label for each sample."
            )
        where = np.full(len(weight), -1)
        where[used] = np.arange(len(used))
        splits = splitter.split(np.zeros((len(weight), 1)), y, **metadata.split)
        kept = [(where[train], where[test]) for train, test in splits]
        kept = [(train[train >= 0], test[test >= 0]) for train, test in kept]
        return Folds(len(weight), used, kept, metadata.score)

    # -- the best estimator -------------------------------------------------------------------

    def weights_frame(self) -> Any:
        """Kernel names, weights and component norms of the best estimator as a DataFrame (needs pandas)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.weights_frame()

    @property
    def model_(self) -> Predictor:
        """The functions of the best estimator."""
        return self.best_estimator_.model_

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the columns of the best estimator, where every kernel with weight is linear."""
        return self.best_estimator_.coef_

    @property
    def intercept_(self) -> Any:
        """Intercept of the best estimator."""
        return self.best_estimator_.intercept_

    @property
    def weights_(self) -> FloatArray:
        """Kernel weights of the best estimator; of a greedy one, 1 for the kernels it took."""
        return self.best_estimator_.weights_

    @property
    def kernel_names_(self) -> list[str]:
        """Names of the kernels."""
        return self.best_estimator_.kernel_names_

    @property
    def stationarity_(self) -> float:
        """What `tol` bounds, of the best estimator."""
        return self.best_estimator_.stationarity_


def _needs_groups(splitter: Any) -> bool:
    """Whether a splitter asks for groups, by scikit-learn's declaration."""
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return splitter.get_metadata_routing().split.requests.get("groups") is True


class FrozenClassifier(ClassifierMixin, BaseEstimator):
    """Answers with decision values of a fold, for scorers."""

    def __init__(self, classes_: Any, values: Any, multilabel: bool = False) -> None:
        self.classes_ = classes_
        self.values = values
        self.multilabel = multilabel

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> FloatArray:
        return self.values

    def predict(self, X: Any) -> Any:
        return decided(self.classes_, self.values, self.multilabel)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples whose labels are right, as `accuracy_score` has it, without its checks."""
        right = np.asarray(self.predict(X) == y)
        return float(np.average(right.reshape(len(y), -1).all(axis=1), weights=sample_weight))


class FrozenRegressor(LossScore, BaseEstimator):
    """Answers with predictions of a fold, for scorers."""

    def __init__(self, values: Any, loss: Any) -> None:
        self.values = values
        self.loss = loss

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> FloatArray:
        return self.values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As that of the regressor; R^2 as `r2_score` has it, without its checks."""
        if self._agreement is not None or len(y) < 2:
            return super().score(X, y, sample_weight)
        y, f = (np.asarray(part, dtype=float).reshape(len(y), -1) for part in (y, self.values))
        mean = partial(np.average, axis=0, weights=sample_weight)
        spread = mean((y - mean(y)) ** 2)
        missed = mean((y - f) ** 2)
        shares = np.divide(missed, spread, out=np.sign(missed), where=spread > 0.0)
        return float(1.0 - shares.mean())
