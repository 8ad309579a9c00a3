"""What searches by cross-validation share: folds, metadata on their way there, scores, the best."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import ceil
from numbers import Integral
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params, check_is_fitted

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import each_once, warn
from ..gram import Predictor
from ..kernels.compose import NestedKernels
from ._base import all_or_nothing
from ._input import check_settings, positive_grid
from ._labels import LossScore, decided

#: what is no difference of scores on a line, as a share of what its best is above its lower quarter
FLAT = 1e-4

#: relative difference of scores that is rounding
SAME_SCORE = 1e-6

#: standard errors that a score is above another where it is clearly better
CLEAR = 2.0

#: how far a grid may be extended: beyond its ends by this factor
REACH = 1e6

#: share of the values of a grid that follow at a time
MORE = 1 / 3

#: folds where `cv` says nothing, if the samples are enough for them
FOLDS = 5

#: fewest values of a user's own that make a grid: one of two is always at an end
FEWEST = 3


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
        options: dict[str, Any] = _check_method_params(
            np.empty((self.n_samples, 0)), self.score, self.used[test]
        )
        weight = options.get("sample_weight")
        if weight is not None and not _routing_enabled() and np.ptp(weight) == 0:
            del options["sample_weight"]
        return options


class Grid(NamedTuple):
    """Values of a parameter to search through, from small to large.

    Attributes
    ----------
    param : str
    argument : str
        What gives them to the search.
    values : ndarray
    open : bool
        Whether more may follow beyond their ends: the search was told how many values, not which.
    lines : list
        What the family says of each line of points that differ in this parameter alone.
    """

    param: str
    argument: str
    values: FloatArray
    open: bool
    lines: list[Any]

    @classmethod
    def of(cls, param: str, argument: str, given: Any, spread: Callable[[int], Any]) -> Grid:
        """The values given, or `spread` over so many."""
        counted = isinstance(given, Integral) and not isinstance(given, bool)
        return cls(param, argument, positive_grid(argument, given, spread), counted, [])


class Trial(NamedTuple):
    """A model that was tried: its line, its place there, its parameters, its scores on the folds.

    A line is of points that differ in one parameter alone, such as the costs of a regulariser. What the folds
    have learned there goes with it, for a search that keeps that.
    """

    line: int
    value: float
    params: dict[str, Any]
    scores: FloatArray
    learned: Any = None

    @property
    def mean(self) -> float:
        """Mean score, -inf where it is not defined."""
        mean = float(np.mean(self.scores))
        return -np.inf if np.isnan(mean) else mean


def edge(scores: FloatArray, best: int) -> int:
    """At which end of a line its best score lies: -1 the first, 1 the last; 0 where it is inside, or flat.

    An end is flat where its score is that of its neighbour, up to 1e-4 of what the best is above the lower
    quarter of the scores.

    Examples
    --------
    >>> scores = np.array([0.9, 0.5, 0.9])
    >>> edge(scores, 0), edge(scores, 2), edge(scores[1:], 1), edge(np.array([0.9, 0.9, 0.5]), 0)
    (-1, 1, 1, 0)
    """
    known = scores[np.isfinite(scores)]
    if len(known) < 2 or best not in (0, len(scores) - 1):
        return 0
    end = 1 if best else -1
    ahead = scores[best] - scores[best - end]
    return end if ahead > FLAT * (scores[best] - np.quantile(known, 0.25)) else 0


def further(values: FloatArray, end: int, limits: tuple[float, float], count: int) -> FloatArray:
    """Values beyond an end (-1 or 1) in the ratio of the last two there, nearest first, up to a limit.

    Examples
    --------
    >>> further(np.array([1.0, 10.0, 100.0]), 1, (1e-3, 1e4), 3)
    array([ 1000., 10000.])
    """
    last, before = (values[-1], values[-2]) if end > 0 else (values[0], values[1])
    more = last * (last / before) ** np.arange(1, count + 1)
    slack = 1.0 + 1e-9
    return np.asarray(more[(more >= limits[0] / slack) & (more <= limits[1] * slack)])


#: line, value and parameters of every point (and what its folds have learned), and of each fold the values of
#: every point on its test rows
Tried = tuple[list[tuple[Any, ...]], list[list[FloatArray]]]

#: a search on the values given for each line
Attempt = Callable[[dict[int, FloatArray]], Tried]


class BaseSearch(NestedKernels):
    """A grid of models, each scored on held-out folds of matrices that are computed once.

    Where the grid is a number of values and the best model lies at one of its ends, values beyond that end
    follow in the same ratio, for every line whose own best lies there, until it lies inside, the score no
    longer changes, or 1e6 times the end is reached. Where no model is clearly better than a constant, some
    follow at the end of the models that fit most closely: on the way to them scores may fall first.

    A family gives `_searched`, `_grid` and `_trying`. As in scikit-learn, with metadata routing every
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

    @contextmanager
    def _own_name(self) -> Iterator[None]:
        """Let errors of the estimator name the search, which is what the user sees."""
        searched, own = self._searched.__name__, type(self).__name__
        kinds = ("Classifier", "Regressor") if "Classifier" in searched else ("Regressor", "Classifier")
        names = {searched: own}
        if kinds[0] in own:
            names[searched.replace(*kinds)] = own.replace(*kinds)
        try:
            yield
        except (TypeError, ValueError) as error:
            if error.args and isinstance(error.args[0], str):
                known = re.compile(rf"\b({'|'.join(names)})\b")
                said = known.sub(lambda found: names[found[0]], error.args[0])
                error.args = (said, *error.args[1:])
            raise

    def _answer(self, method: str, *given: Any) -> Any:
        """What a method of the best estimator answers."""
        check_is_fitted(self, "best_estimator_")
        with self._own_name():
            return getattr(self.best_estimator_, method)(*given)

    #: how the best point is fitted in the end, and who is told of progress: an instance may carry its own
    _fit_best: Any = staticmethod(lambda model, X, y, sample_weight: model.fit(X, y, sample_weight))
    _listener: Any = None

    #: at which end of the grid models fit most closely
    _rough: ClassVar[int] = 1

    @abstractmethod
    def _grid(self) -> tuple[Any, Grid]:
        """An estimator that checks the data, and the grid, checked."""

    def _lines(self, grid: Grid, y: Any, weight: FloatArray) -> dict[int, FloatArray]:
        """The values of every line to begin with."""
        return {0: grid.values}

    @abstractmethod
    def _trying(self, template: Any, grid: Grid, setup: Any, folds: Folds) -> AbstractContextManager[Attempt]:
        """Makes a function of the values to try on each line.

        It gives line, value and parameters of every point, and for each fold the values of every point on its
        test rows.
        """

    def _read_targets(self, y: Any) -> Any:
        """Targets as estimators take them, with an index where they have one."""
        return y.toarray() if sparse.issparse(y) else y

    def _labels_of(self, y: Any) -> Any:
        """Targets as an array, of which folds and scorers are given rows."""
        return np.asarray(y)

    def _stratified_by(self, y: Any) -> Any:
        """What folds have in proportion where `cv` is a number or None; None for nothing."""
        return y if is_classifier(self) else None

    def _order(self, point: Trial) -> tuple[float, ...]:
        """Where a point is among all of them; of lines with equal scores the first is taken."""
        return point.line, point.value

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
    @each_once()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Search by cross-validation, then fit the best point of the grid on all samples.

        Parameters
        ----------
        X, y, sample_weight
            As in the estimator without CV. Kernel parameters taken from data ("scale",
            "median") are taken once, from all rows; normalisation constants from the training
            rows of each fold.
        **params
            `groups`, array-like of shape (n,): samples of a group are in the same fold, with ``cv=None`` and
            with a splitter by groups such as ``cv=GroupKFold()``. With
            scikit-learn's metadata routing, anything that the splitter and the scorer request.
        """
        check_settings(self)
        y = self._read_targets(y)
        metadata = self._metadata(sample_weight, params)
        template, grid = self._grid()
        with self._own_name():
            setup = template._setup(X, y, sample_weight)
        labels = self._labels_of(y)
        folds = self._folds(labels, setup.weight, metadata)
        scorer, targets = check_scoring(self, self.scoring), labels[folds.used]

        def judged(tried: Any, values: Any) -> list[Trial]:
            scores = [
                self._scores(scorer, template, each, targets[test], folds.score_options(test))
                for each, (_, test) in zip(values, folds.splits, strict=True)
            ]
            return [
                Trial(line, value, params, column, *learned)
                for (line, value, params, *learned), column in zip(tried, np.array(scores).T, strict=True)
            ]

        weight = setup.weight[folds.used]
        constant = partial(self._constant_scores, scorer, targets, weight, folds)
        with blas_threads_for(len(setup.weight)), self._trying(template, grid, setup, folds) as attempt:
            lines = self._lines(grid, targets, weight)
            points = self._explored(lambda lines: judged(*attempt(lines)), grid, lines, constant)
        self._record(points, folds, grid)
        best = points[self.best_index_]
        self._warn_of_end(rows_of(points)[best.line], best, grid)
        self._keep(best, template, setup, folds, targets)
        model = clone(template).set_params(**self.best_params_)
        self.best_estimator_ = self._fit_best(model, X, y, sample_weight)
        return self._with_data_of_best()

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

    def _explored(
        self,
        attempt: Callable[[dict[int, FloatArray]], list[Trial]],
        grid: Grid,
        lines: dict[int, FloatArray],
        constant: Callable[[], FloatArray],
    ) -> list[Trial]:
        """The points of the grid in their order, and those beyond it while the best lies at an end."""
        points = sorted(attempt(lines), key=self._order)
        ends = {line: (row[0].value, row[-1].value) for line, row in rows_of(points).items()}
        lines, self.grid_extended_ = {}, {}
        if grid.open and not _better(points[self._best(points, grid)].scores, constant()):
            lines = self._beyond(points, ends, grid, self._rough)
        while grid.open and (lines := lines or self._beyond(points, ends, grid)):
            farthest = [f"{value:.3g}" for value in sorted({values[-1] for values in lines.values()})]
            self._say(f"the grid of {grid.param} is extended to {' and '.join(farthest)}")
            points = sorted([*points, *attempt(lines)], key=self._order)
            values = [point.value for point in points]
            lines, self.grid_extended_ = {}, {grid.param: (float(min(values)), float(max(values)))}
        return points

    def _beyond(
        self, points: list[Trial], ends: dict[int, tuple[float, float]], grid: Grid, every: int = 0
    ) -> dict[int, FloatArray]:
        """The values to try next, of lines whose best lies at the same end as the best of all.

        `every` is the end at which those of every line are wanted.
        """
        rows, best, more = rows_of(points), points[self._best(points, grid)], {}
        end = every or _end(rows[best.line], best)
        for line, row in rows.items():
            own = best if line == best.line else row[best_of(row, grid.open)]
            if len(row) > 1 and end and end in (every, _end(row, own)):
                limits = ends[line][0] / REACH, ends[line][1] * REACH
                values = np.array([point.value for point in row])
                more[line] = further(values, end, limits, ceil(len(grid.values) * MORE))
        return {line: values for line, values in more.items() if len(values)}

    def _constant_scores(self, scorer: Any, y: Any, weight: FloatArray, folds: Folds) -> FloatArray:
        """Scores of a model that is constant; -inf where the scorer makes nothing of one."""
        model, found = DummyClassifier() if is_classifier(self) else DummyRegressor(), []
        for train, test in folds.splits:
            model.fit(np.zeros((len(train), 1)), y[train], weight[train])
            try:
                score = scorer(model, np.zeros((len(test), 1)), y[test], **folds.score_options(test))
            except (AttributeError, TypeError, ValueError):
                score = -np.inf
            found.append(float(score))
        return np.array(found)

    def _keep(self, point: Trial, template: Any, setup: Any, folds: Folds, targets: Any) -> None:
        """Keep what the folds have learned at the best point, where a search has a use for it."""

    def _say(self, words: str) -> None:
        """Tell of progress: on standard output where it is verbose, and to who listens."""
        if self.verbose:
            print(f"[{type(self).__name__}] {words}")
        if self._listener is not None:
            self._listener(words)

    def _record(self, points: list[Trial], folds: Folds, grid: Grid) -> None:
        scores = np.column_stack([point.scores for point in points])
        mean = scores.mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError(self._no_score(folds))
        self.best_index_ = self._best(points, grid)
        self.best_score_ = float(mean[self.best_index_])
        self.best_params_ = points[self.best_index_].params
        self.cv_results_ = {
            "params": [point.params for point in points],
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=0),
            "split_test_scores": scores,
        }

    def _best(self, points: list[Trial], grid: Grid) -> int:
        """Index of the point to take."""
        return best_of(points, grid.open)

    def _warn_of_end(self, row: list[Trial], best: Trial, grid: Grid) -> None:
        """Where the best of a line lies at its end all the same."""
        end = _end(row, best)
        if not end or len(row) < FEWEST:
            return
        last, most, way = (row[-1], "largest", "larger") if end > 0 else (row[0], "smallest", "smaller")
        number = f"a number, {grid.argument}={len(grid.values)}, for a grid that is extended by itself"
        warn(
            f"Scores still rise towards {grid.param} = {last.value:.4g}, the {most} value tried: pass {way} "
            f"values too, or {'look at the scale of the data' if grid.open else number}."
        )

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
        groups = metadata.split.get("groups")
        strata = self._stratified_by(y)
        parted = strata is not None
        y = strata if parted else y
        if self.cv is None:
            known = None if groups is None else np.asarray(groups)[used]
            splitter = default_splitter(y[used], known, parted)
        else:
            splitter = check_cv(self.cv, y, classifier=parted)
        if groups is None and _needs_groups(splitter):
            raise ValueError(
                f"cv={self.cv!r} splits by groups, and no groups were given: pass them to fit, "
                "fit(X, y, groups=...), one label for each sample."
            )
        where = np.full(len(weight), -1)
        where[used] = np.arange(len(used))
        splits = splitter.split(np.zeros((len(weight), 1)), y, **metadata.split)
        kept = [(where[train], where[test]) for train, test in splits]
        kept = [(train[train >= 0], test[test >= 0]) for train, test in kept]
        kept = [(train, test) for train, test in kept if len(test)]  # stratified groups may leave some empty
        return Folds(len(weight), used, kept, metadata.score)

    # -- the best estimator -------------------------------------------------------------------

    def _with_data_of_best(self) -> Self:
        """Take over what the best estimator knows of the data it was fitted on."""
        own = ("n_features_in_", "feature_names_in_", "views_in_", "classes_", "multilabel_")
        for name in (*own, "patterns_", "observed_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def weights_frame(self) -> Any:
        """Kernel names, weights and component norms of the best estimator as a DataFrame (needs pandas)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.weights_frame()

    @property
    def model_(self) -> Predictor:
        """The functions of the best estimator."""
        result: Predictor = self.best_estimator_.model_
        return result

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the columns of the best estimator, where every kernel with weight is linear."""
        result: FloatArray = self.best_estimator_.coef_
        return result

    @property
    def intercept_(self) -> Any:
        """Intercept of the best estimator."""
        return self.best_estimator_.intercept_

    @property
    def weights_(self) -> FloatArray:
        """Kernel weights of the best estimator; of a greedy one, 1 for the kernels it took."""
        result: FloatArray = self.best_estimator_.weights_
        return result

    @property
    def kernel_names_(self) -> list[str]:
        """Names of the kernels."""
        result: list[str] = self.best_estimator_.kernel_names_
        return result

    @property
    def stationarity_(self) -> float:
        """What `tol` bounds, of the best estimator."""
        result: float = self.best_estimator_.stationarity_
        return result


def rows_of(points: list[Trial]) -> dict[int, list[Trial]]:
    """The points of every line, from small values to large ones."""
    rows: dict[int, list[Trial]] = {}
    for point in sorted(points, key=attrgetter("value")):
        rows.setdefault(point.line, []).append(point)
    return rows


def best_of(points: list[Trial], inside: bool) -> int:
    """Index of the best point: the first of those that rounding alone tells apart.

    With `inside`, for values that nobody gave, the one of the same line nearest to the middle of what was
    tried, by ratios. Scores that are equal up to an end say that predictions no longer change there, not that
    the smallest cost is the simplest model: at some point nothing is learned within the tolerance.
    """
    means = np.array([point.mean for point in points])
    equal = np.flatnonzero(means >= means.max() - SAME_SCORE * abs(means.max()))
    first = points[equal[0]]
    if not inside or np.isinf(first.mean):
        return int(equal[0])
    logs = {k: float(np.log(point.value)) for k, point in enumerate(points) if point.line == first.line}
    middle = 0.5 * (min(logs.values()) + max(logs.values()))
    return min((k for k in equal.tolist() if k in logs), key=lambda k: abs(logs[k] - middle))


def _better(scores: FloatArray, others: FloatArray) -> bool:
    """Whether scores are clearly above others on the same folds; also where these are unknown."""
    if not np.isfinite(others).all():
        return True
    ahead = scores - others
    error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else 0.0
    return bool(ahead.mean() > CLEAR * error)


def _end(row: list[Trial], best: Trial) -> int:
    """At which end of its line the best point of it lies, as `edge` has it."""
    return edge(np.array([point.mean for point in row]), [point is best for point in row].index(True))


def default_splitter(y: Any, groups: Any, classifies: bool) -> Any:
    """Folds where `cv` says nothing: 5, or as many as there are samples (or groups) of every class.

    Stratified where there are classes. Groups are not split; without classes every fold has at least 2
    samples, as R^2 needs.

    Examples
    --------
    >>> y = np.array([0, 0, 0, 0, 1, 1, 1])
    >>> default_splitter(y, None, True).n_splits, default_splitter(y, [0, 1, 2, 2, 0, 1, 1], True).n_splits
    (3, 2)
    >>> default_splitter(y, None, False)
    KFold(n_splits=3, random_state=None, shuffle=False)
    """
    units = np.arange(len(y)) if groups is None else np.asarray(groups)
    each = "samples" if groups is None else "groups"
    own = "pass folds of your own as cv=."
    if classifies and type_of_target(y) in ("binary", "multiclass"):
        labels, codes = np.unique(y, return_inverse=True)
        counts = [len(np.unique(units[codes.ravel() == k])) for k in range(len(labels))]
        count, rarest = min(counts), labels[int(np.argmin(counts))]
        if count < 2:
            raise ValueError(
                f"cv=None: every class needs samples to train on and to test on, at least 2 {each}, and "
                f"class {str(rarest)!r} has 1 of {len(np.unique(units))}: add some, leave the class out, or "
                f"{own}"
            )
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        return kind(min(FOLDS, count))
    count = min(len(np.unique(units)), len(y) // 2)
    if count < 2:
        have = f"{len(y)} samples" + ("" if groups is None else f" in {len(np.unique(units))} groups")
        least = "4 samples" + ("" if groups is None else " in 2 groups")
        raise ValueError(
            f"cv=None: two folds of two samples need at least {least}, and there are {have}: add some, or "
            f"{own}"
        )
    return (KFold if groups is None else GroupKFold)(min(FOLDS, count))


def _needs_groups(splitter: Any) -> bool:
    """Whether a splitter asks for groups, by scikit-learn's declaration."""
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return splitter.get_metadata_routing().split.requests.get("groups") is True


class FrozenClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Answers with decision values of a fold, for scorers."""

    def __init__(self, classes_: Any, values: Any, multilabel: bool = False) -> None:
        self.classes_ = classes_
        self.values = values
        self.multilabel = multilabel

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> FloatArray:
        result: FloatArray = self.values
        return result

    def predict(self, X: Any) -> Any:
        return decided(self.classes_, self.values, self.multilabel)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples whose labels are right, as `accuracy_score` has it, without its checks."""
        right = np.asarray(self.predict(X) == y)
        return float(np.average(right.reshape(len(y), -1).all(axis=1), weights=sample_weight))


class FrozenRegressor(LossScore, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Answers with predictions of a fold, for scorers."""

    def __init__(self, values: Any, loss: Any) -> None:
        self.values = values
        self.loss = loss

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> FloatArray:
        result: FloatArray = self.values
        return result

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
