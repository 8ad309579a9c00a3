"""Greedy selection of kernels with ridge and number of kernels chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from .._warnings import on_part
from ..gram import FoldSource, KernelSource
from ..gram.dictionary import PSD_FLOPS, check_kernel_matrix
from ..gram.missing import with_gaps
from ..gram.sources import Gaps
from ..losses import Loss
from ..solvers.checkpoint import Entry, Keeper
from ..solvers.greedy import FactorDictionary, GreedyTask, GroupOMP
from ..solvers.greedy.dictionary import OWN_RANK
from ._group_omp import BaseGroupOMP, GreedyPath, GreedySetup, OutputGroups, path_predictor, stages_of
from ._labels import LabelsMixin, LossScore
from ._search import Attempt, BaseSearch, Folds, Grid, Trial, Tried
from ._training import Training
from .group_omp import GroupOMPClassifier, GroupOMPRegressor


class FactorFoldSource(FoldSource):
    """Kernels on all samples of a cross-validation, thin factors where they have one.

    Parameters
    ----------
    matrices : list of ndarray
        Of shape (n, n), or (n, r) for kernels in `thin`.
    names : list of str
    thin : set of int
        Kernels given by a thin factor.
    rows : ndarray of int
        The training samples.
    gaps : Gaps, optional
        Of all samples.
    """

    def __init__(
        self,
        matrices: list[FloatArray],
        names: list[str],
        thin: set[int],
        rows: IntArray,
        gaps: Gaps | None = None,
    ) -> None:
        super().__init__(matrices, names, rows, gaps)
        self.thin = thin

    def low_rank(self, m: int, max_rank: int) -> FloatArray | None:
        fits = m in self.thin and self.matrices[m].shape[1] <= max_rank
        return self.matrices[m][self.support] if fits else None

    def train(self, m: int) -> FloatArray:
        return self.cross(m, self.support) if m in self.thin else super().train(m)

    def cross(self, m: int, X: IntArray) -> FloatArray:
        Phi = self.matrices[m]
        return Phi[X] @ Phi[self.support].T if m in self.thin else super().cross(m, X)

    def diag(self, m: int, X: IntArray) -> FloatArray:
        return (self.matrices[m][X] ** 2).sum(axis=1) if m in self.thin else super().diag(m, X)


@dataclass(frozen=True)
class GreedySearch:
    """Everything a fold needs: the kernels on all samples, what to minimise, and the ridges."""

    matrices: list[FloatArray]
    names: list[str]
    thin: set[int]
    task: GreedyTask
    rule: GroupOMP
    alphas: FloatArray
    normalize: str | None
    missing: str
    groups: OutputGroups
    gaps: Gaps | None = None

    @classmethod
    def on(cls, source: KernelSource, task: GreedyTask, *settings: Any) -> GreedySearch:
        """Evaluate every kernel once."""
        matrices, thin = [], set()
        for m, name in enumerate(source.names):
            Phi = source.low_rank(m, int(OWN_RANK * source.n_samples))
            matrices.append(source.train(m) if Phi is None else Phi)
            if Phi is None:
                check_kernel_matrix(matrices[-1], f"kernel {name!r}", PSD_FLOPS / len(source.names))
            else:
                thin.add(m)
        return replace(cls(matrices, source.names, thin, task, *settings), gaps=source.gaps)

    def __sizeof__(self) -> int:  # a backend of joblib sends large arguments once, not with every fold
        return object.__sizeof__(self) + sum(K.nbytes for K in self.matrices)

    def probe(self) -> FloatArray:
        """A number for each sample that changes with its data and with the kernels."""
        weights = 1.0 + np.modf(np.arange(len(self.matrices)) * 0.6180339887498949)[0]
        result: FloatArray = np.sum(
            [d * K.sum(axis=1) for d, K in zip(weights, self.matrices, strict=True)], axis=0
        )
        return result

    def kept_fold(self, part: tuple[IntArray, IntArray, int], report: Any, keeper: Keeper) -> FloatArray:
        """`fold`, or what a keeper holds of it."""
        entry = keeper.found("values")
        if entry is None:
            entry = Entry({}, {"values": self.fold(*part)})
            keeper.keep("values", entry)
        return entry.arrays["values"]

    @on_part()
    def fold(self, train: IntArray, test: IntArray, sizes: int) -> FloatArray:
        """Function values on `test` of all models, shape (sizes, n_alphas, n_test, c)."""
        source = FactorFoldSource(self.matrices, self.names, self.thin, train, self.gaps)
        task = replace(self.task, y=self.task.y[train], weight=self.task.weight[train])
        shift = float(self.alphas.min()) * task.total
        options: dict[str, Any] = {"centred": task.fit_intercept, "shift": shift, "check": False}
        make = partial(FactorDictionary, sample_weight=task.weight, **options)
        dictionary = with_gaps(make, source, self.missing, self.normalize, task.weight)
        paths = [self._values(dictionary, replace(task, ridge=float(a)), test, sizes) for a in self.alphas]
        return np.stack(paths, axis=1)

    def _values(
        self, dictionary: FactorDictionary, task: GreedyTask, test: IntArray, sizes: int
    ) -> FloatArray:
        """Values of one path; where it ends early its last model stands in for the larger ones."""
        paths = [self.rule.solve(dictionary, own).state for own in self.groups.tasks(task)]
        path, _ = path_predictor(dictionary, stages_of(paths), self.groups, task.root)
        chosen = [min(size, path.n_stages - 1) for size in range(1, sizes + 1)]
        there = sorted(set(chosen))
        return np.moveaxis(path.staged(test, there), 1, 0)[np.searchsorted(there, chosen)]


class BaseGroupOMPCV(BaseSearch):
    """What the two cross-validated estimators share; see them."""

    _rough = -1

    def _grid(self) -> tuple[BaseGroupOMP, Grid]:
        grid = Grid.of("alpha", "alphas", self.alphas, lambda n: np.geomspace(1.0, 1e-4, n))
        return self._template().set_params(alpha=float(grid.values[-1])), grid

    def _order(self, point: Trial) -> tuple[float, ...]:
        """Of small models first, and from smooth to rough."""
        return point.line, -point.value

    @contextmanager
    def _trying(
        self, template: BaseGroupOMP, grid: Grid, setup: GreedySetup, folds: Folds
    ) -> Iterator[Attempt]:
        """One path for each fold and ridge has the models of every size: the lines are their sizes."""
        source, task = template._problem(setup)
        ridges = grid.values[::-1].copy()
        rule, groups = template._rule(), setup.groups
        search = GreedySearch.on(source, task, rule, ridges, self.normalize, self.missing, groups)
        sizes = min(self.n_kernels or len(search.names), len(search.names))
        told = {
            "kernels": np.array(search.names),
            "alphas": ridges,
            "targets": task.y,
            "weights of the samples": task.weight,
            "folds": tuple(part for pair in folds.splits for part in pair),
        }
        if setup.groups.names:
            told["output_groups"] = tuple(setup.groups.columns)
        own = ("n_kernels", "tol", "loss", "backward", "normalize", "missing")
        names = (*own, "fit_intercept", "random_state")
        training = Training(self, len(folds.splits), told, names)
        if training.checkpoint is not None:
            training.checkpoint.check_probe(search.probe())
        parts = [("fold", (train, test, sizes)) for train, test in folds.splits]

        def attempt(lines: dict[int, FloatArray]) -> Tried:
            alphas = np.unique(np.concatenate(list(lines.values())))[::-1]
            stage = "" if np.array_equal(alphas, ridges) else f"from {alphas[0]!r} to {alphas[-1]!r}"
            values = training.models(
                GreedySearch.kept_fold, replace(search, alphas=alphas), parts, stage=stage
            )
            tried = [
                (size, float(alpha), {"n_kernels": size, "alpha": float(alpha)})
                for size in range(1, sizes + 1)
                for alpha in alphas
            ]
            return tried, [[model for row in fold for model in row] for fold in values]

        yield attempt
        training.end(True)

    def _best(self, points: list[Trial], grid: Grid) -> int:
        if not self.one_standard_error:
            return super()._best(points, grid)
        scores = np.column_stack([point.scores for point in points])
        mean = np.array([point.mean for point in points])
        return _simplest(scores, mean, sum(point.line == 1 for point in points))

    def predict(self, X: Any, n_kernels: int | None = None) -> Any:
        """Predictions of the best estimator, or of the model of `n_kernels` kernels on its path."""
        return self._answer("predict", X, n_kernels)

    @property
    def path_(self) -> GreedyPath:
        """Path of the best estimator."""
        result: GreedyPath = self.best_estimator_.path_
        return result

    @property
    def selected_(self) -> IntArray:
        """Kernels of the best estimator, in the order in which they were added."""
        result: IntArray = self.best_estimator_.selected_
        return result


def _simplest(scores: FloatArray, mean: FloatArray, n_alphas: int) -> int:
    """The best point with as few kernels as come within one standard error of the best of all."""
    best = int(np.argmax(mean))
    error = scores[:, best].std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    first = int(np.flatnonzero(mean >= mean[best] - error)[0]) // n_alphas * n_alphas
    return first + int(np.argmax(mean[first : first + n_alphas]))


class GroupOMPRegressorCV(LossScore, BaseGroupOMPCV):
    """`GroupOMPRegressor` with ridge and number of kernels chosen by cross-validation.

    One path per fold and ridge gives the scores of every number of kernels, and each kernel is
    evaluated once for all of them.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    alphas : int or sequence of float, default=5
        The ridges to choose from; a number n means n values from 1 to 0.0001, and more beyond an end at
        which the best of them lies, as for `Cs` in `MKLClassifierCV`.
    n_kernels : int, optional
        Largest number of kernels to select; all numbers up to it are compared. No limit by default; a number
        above that of the kernels means all of them, with a warning.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; 5 folds by default, fewer with less than 10 samples, and folds of whole groups
        where ``fit`` is given `groups`.
    scoring : str or callable, optional
        R^2 by default.
    one_standard_error : bool, default=False
        Whether to take the fewest kernels whose score is within one standard error of the best.
    output_groups, tol, loss, backward, normalize, missing, fit_intercept, device, random_state, verbose
        As in `GroupOMPRegressor`.
    n_jobs : int, optional
        Threads over the folds.
    checkpoint : str or path-like, optional
        As in `MKLClassifier`; the folds that are done are kept.

    Attributes
    ----------
    best_estimator_ : GroupOMPRegressor
        The best pair, fitted on all samples.
    best_params_, best_score_, best_index_
    cv_results_ : dict
        "params", "mean_test_score", "std_test_score", and "split_test_scores" (folds x points).
    grid_extended_ : dict
        "alpha": the smallest and the largest ridge tried, where the grid was extended; else empty.
    model_, path_, selected_, weights_, stationarity_, kernel_names_, intercept_, coef_, n_features_in_
        Those of `best_estimator_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = kw.GroupOMPRegressorCV(per_feature(Linear()), one_standard_error=True).fit(X, y)
    >>> search.best_score_ > 0.4
    True
    >>> [search.kernel_names_[m] for m in search.selected_[:2]]
    ['x2', 'x8']
    """

    _searched = GroupOMPRegressor

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        alphas: int | Sequence[float] = 5,
        n_kernels: int | None = None,
        output_groups: Any = None,
        tol: float = 1e-3,
        loss: str | Loss = "squared",
        backward: bool = False,
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = False,
        normalize: str | None = "variance",
        missing: str = "error",
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.alphas = alphas
        self.n_kernels = n_kernels
        self.output_groups = output_groups
        self.tol = tol
        self.loss = loss
        self.backward = backward
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.normalize = normalize
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose


class GroupOMPClassifierCV(LabelsMixin, BaseGroupOMPCV):
    """`GroupOMPClassifier` with ridge and number of kernels chosen by cross-validation.

    One path per fold and ridge gives the scores of every number of kernels, and each kernel is
    evaluated once for all of them.

    Parameters
    ----------
    kernels, alphas, n_kernels, one_standard_error, n_jobs, checkpoint
        As in `GroupOMPRegressorCV`.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; 5 stratified folds by default, fewer where a class has fewer samples, and folds of
        whole groups where ``fit`` is given `groups`.
    scoring : str or callable, optional
        Accuracy by default. Scorers that use labels or decision values.
    output_groups, tol, loss, backward, class_weight, normalize, missing, fit_intercept, device, \
random_state, verbose
        As in `GroupOMPClassifier`.

    Attributes
    ----------
    best_estimator_ : GroupOMPClassifier
        The best pair, fitted on all samples.
    classes_ : ndarray
    best_params_, best_score_, best_index_, cv_results_, grid_extended_, model_, path_, selected_, weights_, \
stationarity_, kernel_names_, intercept_, coef_, n_features_in_
        As in `GroupOMPRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> search = kw.GroupOMPClassifierCV(per_feature(RBF()), alphas=[0.01, 0.1]).fit(X, y)
    >>> search.best_score_ > 0.9
    True
    """

    _searched = GroupOMPClassifier

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        alphas: int | Sequence[float] = 5,
        n_kernels: int | None = None,
        output_groups: Any = None,
        tol: float = 1e-3,
        loss: str | Loss = "squared",
        backward: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = False,
        normalize: str | None = "variance",
        missing: str = "error",
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.alphas = alphas
        self.n_kernels = n_kernels
        self.output_groups = output_groups
        self.tol = tol
        self.loss = loss
        self.backward = backward
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.normalize = normalize
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def decision_function(self, X: Any, n_kernels: int | None = None) -> FloatArray:
        """Decision values of the best estimator."""
        result: FloatArray = self._answer("decision_function", X, n_kernels)
        return result

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the best estimator."""
        result: FloatArray = self._answer("predict_proba", X)
        return result
