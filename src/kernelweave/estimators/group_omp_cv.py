"""Greedy selection of kernels with ridge and number of kernels chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import delayed
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from .._threads import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import parallel
from ..gram import FoldSource, KernelSource
from ..gram.dictionary import PSD_FLOPS, check_kernel_matrix
from ..losses import Loss
from ..solvers._fingerprint import describe, digest
from ..solvers.checkpoint import Entry, Keeper
from ..solvers.greedy import FactorDictionary, GreedyTask, GroupOMP
from ..solvers.greedy.dictionary import OWN_RANK
from ._base import all_or_nothing
from ._checkpoint import keeping, open_checkpoint
from ._folds import Folds, RoutedCV
from ._greedy_path import GreedyPath
from ._group_omp import BaseGroupOMP, path_predictor
from ._input import check_settings, positive_grid
from ._linear import BestLinear
from ._search import FrozenClassifier, FrozenRegressor
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
    """

    def __init__(self, matrices: list[FloatArray], names: list[str], thin: set[int], rows: IntArray) -> None:
        super().__init__(matrices, names, rows)
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

    @classmethod
    def on(
        cls, source: KernelSource, task: GreedyTask, rule: GroupOMP, alphas: FloatArray, normalize: Any
    ) -> GreedySearch:
        """Evaluate every kernel once."""
        matrices, thin = [], set()
        for m, name in enumerate(source.names):
            Phi = source.low_rank(m, int(OWN_RANK * source.n_samples))
            matrices.append(source.train(m) if Phi is None else Phi)
            if Phi is None:
                check_kernel_matrix(matrices[-1], f"kernel {name!r}", PSD_FLOPS / len(source.names))
            else:
                thin.add(m)
        return cls(matrices, source.names, thin, task, rule, alphas, normalize)

    def __sizeof__(self) -> int:  # a backend of joblib sends large arguments once, not with every fold
        return object.__sizeof__(self) + sum(K.nbytes for K in self.matrices)

    def probe(self) -> FloatArray:
        """A number for each sample that changes with its data and with the kernels."""
        weights = 1.0 + np.modf(np.arange(len(self.matrices)) * 0.6180339887498949)[0]
        return np.sum([d * K.sum(axis=1) for d, K in zip(weights, self.matrices, strict=True)], axis=0)

    def kept_fold(self, train: IntArray, test: IntArray, sizes: int, keeper: Keeper) -> FloatArray:
        """`fold`, or what a keeper holds of it."""
        entry = keeper.entry("values")
        if entry is None:
            entry = Entry({}, {"values": self.fold(train, test, sizes)})
            keeper.keep_entry("values", entry)
        return entry.arrays["values"]

    def fold(self, train: IntArray, test: IntArray, sizes: int) -> FloatArray:
        """Function values on `test` of all models, shape (sizes, n_alphas, n_test, c)."""
        source = FactorFoldSource(self.matrices, self.names, self.thin, train)
        task = replace(self.task, y=self.task.y[train], weight=self.task.weight[train])
        shift = float(self.alphas.min()) * task.total
        weight = task.weight
        dictionary = FactorDictionary(source, self.normalize, weight, task.fit_intercept, shift, check=False)
        paths = [self._values(dictionary, replace(task, ridge=float(a)), test, sizes) for a in self.alphas]
        return np.stack(paths, axis=1)

    def _values(
        self, dictionary: FactorDictionary, task: GreedyTask, test: IntArray, sizes: int
    ) -> FloatArray:
        """Values of one path; where it ends early its last model stands in for the larger ones."""
        fits = [stage.fit for stage in self.rule.run(dictionary, task).stages]
        alphas = np.array([task.root * fit.scaled_alpha for fit in fits])
        path = path_predictor(dictionary, fits, alphas)
        chosen = [min(size, len(fits) - 1) for size in range(1, sizes + 1)]
        there = sorted(set(chosen))
        return np.moveaxis(path.staged(test, there), 1, 0)[np.searchsorted(there, chosen)]


class BaseGroupOMPCV(BestLinear, RoutedCV):
    """What the two cross-validated estimators share; see them."""

    def _template(self) -> BaseGroupOMP:
        """The estimator whose parameters are searched."""
        raise NotImplementedError

    def _parameters(self) -> dict[str, Any]:
        names = (
            "n_kernels",
            "tol",
            "loss",
            "backward",
            "normalize",
            "fit_intercept",
            "random_state",
            "device",
            "verbose",
        )
        return {name: getattr(self, name) for name in names}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._template().__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Search by cross-validation, one path a fold and ridge, then fit the best pair on all samples.

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
        metadata = self._metadata(sample_weight, params)
        alphas = self._alphas()
        template = self._template().set_params(alpha=float(alphas[0]))
        training = template._setup(X, y, sample_weight)
        folds = self._folds(np.asarray(y), training.weight, metadata)
        with blas_threads_for(len(training.weight)):
            source, task = template._problem(training)
            search = GreedySearch.on(source, task, template._rule(), alphas, self.normalize)
            sizes = min(self.n_kernels or len(search.names), len(search.names))
            scores = self._scores(template, search, sizes, np.asarray(y)[folds.used], folds)
        self._record(alphas, scores)
        self.best_estimator_ = clone(template).set_params(**self.best_params_).fit(X, y, sample_weight)
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _alphas(self) -> FloatArray:
        """The ridges, from smooth to rough."""
        alphas = positive_grid("alphas", self.alphas, lambda n: np.geomspace(1.0, 1e-4, n))
        return alphas[::-1].copy()

    def _scores(
        self, template: BaseGroupOMP, search: GreedySearch, sizes: int, targets: Any, folds: Folds
    ) -> FloatArray:
        """Held-out scores, shape (n_folds, sizes, n_alphas)."""
        kept = folds.splits
        checkpoint = open_checkpoint(self, self._parts(search, kept))
        if checkpoint is not None:
            checkpoint.check_probe(search.probe())
        with keeping(checkpoint) as keepers:
            values = parallel(
                self.n_jobs,
                (
                    delayed(GreedySearch.kept_fold)(search, train, test, sizes, keepers(k))
                    for k, (train, test) in enumerate(kept)
                ),
                keepers.require,
            )
            keepers.finish(True)
        scorer = check_scoring(self, self.scoring)
        return np.array(
            [
                self._fold_scores(scorer, template, V, targets[test], folds.score_options(test))
                for V, (_, test) in zip(values, kept, strict=True)
            ]
        )

    def _parts(self, search: GreedySearch, kept: Sequence[Any]) -> dict[str, str]:
        """What tells the search from others."""
        names = ("n_kernels", "tol", "loss", "backward", "normalize", "fit_intercept", "random_state")
        return {
            "estimator": type(self).__name__,
            "kernels": digest(np.array(search.names)),
            "alphas": digest(search.alphas),
            "targets": digest(search.task.y),
            "weights of the samples": digest(search.task.weight),
            "folds": digest(*(part for pair in kept for part in pair)),
            **{name: describe(getattr(self, name)) for name in names},
        }

    def _fold_scores(
        self, scorer: Any, template: BaseGroupOMP, values: FloatArray, y: Any, options: dict[str, Any]
    ) -> list[list[float]]:
        blank = np.zeros((len(y), 1))
        return [
            [float(scorer(self._frozen(template, model), blank, y, **options)) for model in row]
            for row in values
        ]

    def _frozen(self, template: BaseGroupOMP, values: FloatArray) -> Any:
        """An estimator that answers with function values computed already."""
        raise NotImplementedError

    def _record(self, alphas: FloatArray, scores: FloatArray) -> None:
        """Rank the points of the grid, small models first."""
        sizes = range(1, scores.shape[1] + 1)
        params = [{"n_kernels": size, "alpha": float(alpha)} for size in sizes for alpha in alphas]
        flat = scores.reshape(len(scores), -1)
        mean = flat.mean(axis=0)
        self.best_index_ = int(np.argmax(mean))
        if self.one_standard_error:
            self.best_index_ = _simplest(flat, mean, len(alphas))
        self.best_score_ = float(mean[self.best_index_])
        self.best_params_ = params[self.best_index_]
        self.cv_results_ = {
            "params": params,
            "mean_test_score": mean,
            "std_test_score": flat.std(axis=0),
            "split_test_scores": flat,
        }

    def predict(self, X: Any, n_kernels: int | None = None) -> Any:
        """Predictions of the best estimator, or of the model of `n_kernels` kernels on its path."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, n_kernels)

    @property
    def path_(self) -> GreedyPath:
        """Path of the best estimator."""
        return self.best_estimator_.path_

    @property
    def selected_(self) -> IntArray:
        """Kernels of the best estimator, in the order in which they came in."""
        return self.best_estimator_.selected_

    def weights_frame(self) -> Any:
        """Kernel names, weights and component norms of the best estimator as a DataFrame (needs pandas)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.weights_frame()

    @property
    def weights_(self) -> FloatArray:
        """1 for the kernels of the best estimator, 0 for the others."""
        return self.best_estimator_.weights_

    @property
    def stationarity_(self) -> float:
        """Relative duality gap of the best estimator among the functions of its kernels."""
        return self.best_estimator_.stationarity_

    @property
    def kernel_names_(self) -> list[str]:
        """Names of the kernels."""
        return self.best_estimator_.kernel_names_


def _simplest(scores: FloatArray, mean: FloatArray, n_alphas: int) -> int:
    """The best point with as few kernels as come within one standard error of the best of all."""
    best = int(np.argmax(mean))
    error = scores[:, best].std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    first = int(np.flatnonzero(mean >= mean[best] - error)[0]) // n_alphas * n_alphas
    return first + int(np.argmax(mean[first : first + n_alphas]))


class GroupOMPRegressorCV(RegressorMixin, BaseGroupOMPCV):
    """`GroupOMPRegressor` with ridge and number of kernels chosen by cross-validation.

    One path a fold and ridge gives the scores of every number of kernels, and each kernel is
    evaluated once for all of them.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    alphas : int or sequence of float, default=5
        The ridges to choose from; a number n means n values from 1 to 0.0001.
    n_kernels : int, optional
        Most kernels to choose; all numbers up to that are compared. No limit by default; more than
        there are means all, with a warning.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; 5 folds by default.
    scoring : str or callable, optional
        R^2 by default.
    one_standard_error : bool, default=False
        Whether to take the fewest kernels whose score is within one standard error of the best.
    tol, loss, backward, normalize, fit_intercept, device, random_state, verbose
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

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        alphas: int | Sequence[float] = 5,
        n_kernels: int | None = None,
        tol: float = 1e-3,
        loss: str | Loss = "squared",
        backward: bool = False,
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = False,
        normalize: str | None = "variance",
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
        self.tol = tol
        self.loss = loss
        self.backward = backward
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _template(self) -> BaseGroupOMP:
        return GroupOMPRegressor(self.kernels, **self._parameters())

    def _frozen(self, template: BaseGroupOMP, values: FloatArray) -> Any:
        assert isinstance(template, GroupOMPRegressor)
        return FrozenRegressor(template._shaped(values))


class GroupOMPClassifierCV(ClassifierMixin, BaseGroupOMPCV):
    """`GroupOMPClassifier` with ridge and number of kernels chosen by cross-validation.

    One path a fold and ridge gives the scores of every number of kernels, and each kernel is
    evaluated once for all of them.

    Parameters
    ----------
    kernels, alphas, n_kernels, one_standard_error, n_jobs, checkpoint
        As in `GroupOMPRegressorCV`.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; 5 stratified folds by default.
    scoring : str or callable, optional
        Accuracy by default. Scorers that use labels or decision values.
    tol, loss, backward, class_weight, normalize, fit_intercept, device, random_state, verbose
        As in `GroupOMPClassifier`.

    Attributes
    ----------
    best_estimator_ : GroupOMPClassifier
        The best pair, fitted on all samples.
    classes_ : ndarray
    best_params_, best_score_, best_index_, cv_results_, model_, path_, selected_, weights_, \
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

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        alphas: int | Sequence[float] = 5,
        n_kernels: int | None = None,
        tol: float = 1e-3,
        loss: str | Loss = "squared",
        backward: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = False,
        normalize: str | None = "variance",
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
        self.tol = tol
        self.loss = loss
        self.backward = backward
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _template(self) -> BaseGroupOMP:
        return GroupOMPClassifier(self.kernels, class_weight=self.class_weight, **self._parameters())

    def _frozen(self, template: BaseGroupOMP, values: FloatArray) -> Any:
        assert isinstance(template, GroupOMPClassifier)
        return FrozenClassifier(template.classes_, template._class_values(values))

    def decision_function(self, X: Any, n_kernels: int | None = None) -> FloatArray:
        """Decision values of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X, n_kernels)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)
