"""Model selection over regulariser and cost that computes each Gram matrix once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray, IntArray
from .._warnings import parallel
from ..gram import Dictionary, FeatureSource, FoldSource, GramStore, KernelSource, StackFoldSource
from ..gram.dictionary import PSD_FLOPS, check_kernel_matrix, check_parts
from ..gram.missing import with_gaps
from ..gram.sources import Gaps
from ..losses import Loss
from ..regularizers import Regularizer
from ..solvers.run import Result
from ._base import Spec
from ._chain import Chain, Guide
from ._input import positive_grid
from ._labels import LabelsMixin, LossScore
from ._mkl import BaseMKL, Setup, SubProblem, left_out
from ._search import BaseSearch, Folds, Metadata
from .classifier import MKLClassifier
from .path import specs_along
from .regressor import MKLRegressor

#: the rule of `cv` that scores each sample by the model without it
LEAVE_ONE_OUT = "leave-one-out"


class Fold(NamedTuple):
    """Held-out decision values (n_test, n_functions) of every point, and what guides other folds."""

    values: list[FloatArray]
    guides: list[list[list[Guide]]]  # chain, problem, point


@dataclass(frozen=True)
class ChainSearch:
    """Everything a fold needs: the problems, the grid, and the matrices of all samples.

    Or, where a device computes them, the kernels and the samples: never are there matrices on the host.
    """

    setup: Setup
    chains: list[list[Spec]]
    matrices: list[FloatArray] | GramStore | FeatureSource
    names: list[str]
    normalize: str | None
    missing: str = "error"
    gaps: Gaps | None = None

    def __sizeof__(self) -> int:  # a backend of joblib sends large arguments once, not with every fold
        held = sum(K.nbytes for K in self.matrices) if isinstance(self.matrices, list) else 0
        return object.__sizeof__(self) + held

    def fold(self, train: IntArray, test: IntArray, guides: Any) -> Fold:
        """Solve the grid on `train` and evaluate it on `test`."""
        dictionary, parts = self._dictionary(train), [part.part(train) for part in self.setup.problems]
        solved = self._solved(dictionary, parts, guides)
        own = [[[Guide.of(found, dictionary) for found in line] for line in lines] for lines in solved]
        points = [point for lines in solved for point in zip(*lines, strict=True)]
        return Fold(_held_out(dictionary, parts, points, self._samples(test)), own)

    def left_out(self) -> list[FloatArray]:
        """Solve the grid on all samples, and evaluate it on each by the model without that sample.

        A model that does not see a sample, as of two other classes, is the model without it.
        """
        C: Any = self.setup.spec.C
        parts, every = self.setup.problems, np.arange(np.count_nonzero(self.setup.weight))
        dictionary, values = self._dictionary(every), []
        for lines, chain in zip(self._solved(dictionary, parts, None), self.chains, strict=True):
            for point, spec in zip(zip(*lines, strict=True), chain, strict=True):
                value = _held_out(dictionary, parts, [point], self._samples(every))[0]
                columns = np.split(value, np.cumsum([part.problem.shape[1] for part in parts])[:-1], axis=1)
                for found, part, out in zip(point, parts, columns, strict=True):
                    rows = every if part.rows is None else part.rows
                    problem = part.problem.at_cost(spec.C / C)
                    out[rows] = left_out(found, problem, part.gram(dictionary))
                values.append(value)
        return values

    def _solved(
        self, dictionary: Dictionary, parts: list[SubProblem], guides: Any
    ) -> list[list[list[Result]]]:
        """Solutions of every chain, problem and point."""
        C = self.setup.spec.C
        return [
            [Chain(dictionary, part, C, guides and guides[c][k]).solve(chain) for k, part in enumerate(parts)]
            for c, chain in enumerate(self.chains)
        ]

    def _dictionary(self, train: IntArray) -> Dictionary:
        """The kernels on the training rows; of a store, as much in memory as there is room for."""
        weight = self.setup.weight[self.setup.weight > 0][train]
        options: dict[str, Any] = {"check": False, "device": self.setup.spec.device}
        if isinstance(self.matrices, GramStore):
            stored = StackFoldSource(self.matrices, self.names, train)
            return Dictionary(stored, self.normalize, weight, gram="auto", **options)
        source: KernelSource
        if isinstance(self.matrices, FeatureSource):
            source, options["gram"] = self.matrices.part(train), "auto"
        else:
            source = FoldSource(self.matrices, self.names, train, self.gaps)
        make = partial(Dictionary, sample_weight=weight, **options)
        found: Dictionary = with_gaps(make, source, self.missing, self.normalize, weight)
        return found

    def _samples(self, rows: IntArray) -> Any:
        """Some samples as the predictors of a fold are given them: where there are matrices, their rows."""
        return _safe_indexing(self.matrices.X, rows) if isinstance(self.matrices, FeatureSource) else rows


def _held_out(
    dictionary: Dictionary, parts: list[SubProblem], points: list[tuple[Result, ...]], test: Any
) -> list[FloatArray]:
    """Decision values on test samples, one array (n_test, n_functions) per point."""
    states = [found.state for point in points for found in point]
    pairs = zip(states, parts * len(points), strict=True)
    alphas = [part.spread(state.alpha, dictionary.gram.n_samples) for state, part in pairs]
    weights = dictionary.all_weights(np.array([state.weights for state in states]))
    weights = np.repeat(weights, [alpha.shape[1] for alpha in alphas], axis=0)
    intercept = np.concatenate([state.certificate.intercept for state in states])
    values = dictionary.predictor(weights, np.hstack(alphas), intercept)(test)
    return np.split(values, len(points), axis=1)


class Matrices(NamedTuple):
    """Checked, not normalised matrices of the kernels on the samples of positive weight, names, and gaps.

    Those of a store stay there; for a device the kernels themselves. And the kernels, where they are known.
    """

    values: list[FloatArray] | GramStore | FeatureSource
    names: list[str]
    gaps: Gaps | None
    kernels: Sequence[Any]


def matrices_of(template: BaseMKL, setup: Setup) -> Matrices:
    """The matrices that all folds are parts of."""
    used = np.flatnonzero(setup.weight)
    if isinstance(setup.table, GramStore):
        everything = len(used) == len(setup.table)
        stored = setup.table if everything else setup.table[used, used]
        return Matrices(stored, setup.table.names, None, [None] * len(setup.table.names))
    source = template._source(setup.table, setup.weight)
    if setup.spec.device is not None and isinstance(source, FeatureSource):
        check_parts(source, source.blocks())
        return Matrices(source, source.names, source.gaps, source.kernels)
    matrices = dict(source.train_all())
    for m, name in enumerate(source.names):
        check_kernel_matrix(matrices[m], f"kernel {name!r}", PSD_FLOPS / len(source.names))
    values, kernels = [matrices[m] for m in range(len(source.names))], getattr(source, "kernels", None)
    return Matrices(values, source.names, source.gaps, kernels or [None] * len(values))


class BaseMKLCV(BaseSearch):
    """What the two cross-validated estimators share; see them."""

    _named_cv = (LEAVE_ONE_OUT,)

    def _grid(self) -> tuple[BaseMKL, list[list[tuple[dict[str, Any], Spec]]]]:
        """For each regulariser a chain of costs, from small to large."""
        listed = isinstance(self.regularizers, list | tuple)
        regularizers = list(self.regularizers) if listed else [self.regularizers]
        Cs = positive_grid("Cs", self.Cs, lambda n: np.geomspace(1e-2, 1e2, n))
        if len(regularizers) == 0:
            raise ValueError("regularizers=[] is empty: give at least one regularizer, for example 'lp'.")
        copies = [clone(regularizer, safe=False) for regularizer in regularizers]
        points = [[{"regularizer": own, "C": float(C)} for C in Cs] for own in copies]
        template, chains = self._template(), []
        for chain in points:
            own = clone(template).set_params(**chain[0])
            specs = specs_along(own, "C", [point["C"] for point in chain])
            chains.append(list(zip(chain, specs, strict=True)))
        return clone(template).set_params(**points[0][0]), chains

    def _values(
        self, template: BaseMKL, grid: list[list[tuple[dict[str, Any], Spec]]], setup: Setup, folds: Folds
    ) -> tuple[list[dict[str, Any]], list[list[FloatArray]]]:
        if self._leaves_one_out and not setup.spec.loss.separable:
            raise ValueError(
                f"cv={self.cv!r}: {type(setup.spec.loss).__name__} couples samples, and no formula leaves "
                "one of them out: pass a number of folds, such as cv=5."
            )
        matrices, names, gaps, _ = matrices_of(template, setup)
        specs = [[spec for _, spec in chain] for chain in grid]
        search = ChainSearch(setup, specs, matrices, names, self.normalize, self.missing, gaps)
        points = [point for chain in grid for point, _ in chain]
        if self._leaves_one_out:
            return points, [search.left_out()]
        # the first fold guides the others: their solutions are near its own
        first = search.fold(*folds.splits[0], None)
        rest = parallel(
            self.n_jobs,
            (
                delayed(ChainSearch.fold)(search, train, test, first.guides)
                for train, test in folds.splits[1:]
            ),
        )
        return points, [fold.values for fold in (first, *rest)]

    @property
    def _leaves_one_out(self) -> bool:
        return isinstance(self.cv, str) and self.cv == LEAVE_ONE_OUT

    def _folds(self, y: Any, weight: FloatArray, metadata: Metadata) -> Folds:
        if not self._leaves_one_out:
            return super()._folds(y, weight, metadata)
        if metadata.split:
            given = ", ".join(metadata.split)
            raise ValueError(
                f"cv={self.cv!r} leaves out one sample at a time, so it has no use for {given}: pass a "
                "splitter, such as cv=LeaveOneGroupOut()."
            )
        used = np.flatnonzero(weight)
        every = np.arange(len(used))
        return Folds(len(weight), used, [(every, every)], metadata.score)

    def predict(self, X: Any) -> Any:
        """Predictions of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @property
    def n_iter_(self) -> int:
        """Machines trained by the best estimator."""
        return self.best_estimator_.n_iter_

    @property
    def dual_gap_(self) -> float:
        """Relative duality gap of the best estimator."""
        return self.best_estimator_.dual_gap_


class MKLClassifierCV(LabelsMixin, BaseMKLCV):
    """`MKLClassifier` with regulariser and cost chosen by cross-validation.

    Each Gram matrix is computed once for all folds and all points of the grid (on a device once for each
    fold), and every point begins with what its neighbour on the path of C knows, as in `mkl_path`.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    regularizers : regulariser, str, or list of them, default="lp"
        The regularisers to choose from, such as ``[LpNorm(1), LpNorm(4/3), LpNorm(2), "uniform"]``.
    Cs : int or sequence of float, default=10
        The costs to choose from; a number n means n values from 0.01 to 100.
    cv : int, splitter, iterable or "leave-one-out", default=None
        As in scikit-learn; 5 stratified folds by default. "leave-one-out" (Subrahmanya & Shin 2010, section
        4.1) fits every point once, on all samples, and scores the predictions f_i of each sample by the
        machine without it, at kernel weights and normalisation held fixed:

            f_i = y_i - alpha_i / (M^-1)_ii,    M = sum_m d_m K_m + diag(1 / C_i)

        bordered by ones for the intercept, exact for the squared loss; for other losses to first order, as
        `kernelweave.solvers.leave_one_out` says. It costs little beside the fits, but a sample has had its
        say in the weights: with many kernels and few samples, scores are too good. Equal samples are left
        out together.
    scoring : str or callable, optional
        Accuracy by default. Scorers that use labels or decision values; with "leave-one-out" of all samples
        at once.
    loss, normalize, missing, multiclass, class_weight, tol, max_iter, fit_intercept, device
        As in `MKLClassifier`; views are completed from the training samples of each fold.
    n_jobs : int, optional
        Threads over the folds.
    verbose : int, default=0

    Attributes
    ----------
    best_estimator_ : MKLClassifier
        The best pair, fitted on all samples.
    best_params_, best_score_, best_index_
    cv_results_ : dict
        "params", "mean_test_score", "std_test_score", and "split_test_scores" (folds x points); leaving one
        out is one fold of all samples.
    model_, weights_, kernel_names_, dual_gap_, stationarity_, intercept_, coef_, classes_, patterns_, \
observed_, n_features_in_
        Those of `best_estimator_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> search = kw.MKLClassifierCV(per_feature(RBF()), regularizers=[kw.LpNorm(1), kw.LpNorm(2)], Cs=3)
    >>> search.fit(X, y).best_score_ > 0.9
    True
    """

    _searched = MKLClassifier

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "hinge",
        regularizers: str | Regularizer | Sequence[str | Regularizer] = "lp",
        Cs: int | Sequence[float] = 10,
        cv: Any = None,
        scoring: Any = None,
        normalize: str | None = "variance",
        missing: str = "error",
        multiclass: str = "ovr",
        class_weight: dict[Any, float] | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.regularizers = regularizers
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.normalize = normalize
        self.missing = missing
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)


class MKLRegressorCV(LossScore, BaseMKLCV):
    """`MKLRegressor` with regulariser and cost chosen by cross-validation.

    Each Gram matrix is computed once for all folds and all points of the grid (on a device once for each
    fold), and every point begins with what its neighbour on the path of C knows, as in `mkl_path`.

    Parameters
    ----------
    kernels, regularizers, Cs, cv, device, n_jobs, verbose
        As in `MKLClassifierCV`.
    scoring : str or callable, optional
        R^2 by default; of ``loss="ranking"`` the share of pairs in the right order
        (`losses.Ranking.agreement`).
    loss, normalize, missing, multioutput, tol, max_iter, fit_intercept
        As in `MKLRegressor`.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, model_, weights_, kernel_names_, \
dual_gap_, stationarity_, intercept_, coef_, patterns_, observed_, n_features_in_
        As in `MKLClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import Linear, per_feature
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = kw.MKLRegressorCV(per_feature(Linear()), regularizers=[kw.LpNorm(1), "uniform"], Cs=3)
    >>> search.fit(X, y).best_score_ > 0.4
    True
    """

    _searched = MKLRegressor

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str | Loss = "squared",
        regularizers: str | Regularizer | Sequence[str | Regularizer] = "lp",
        Cs: int | Sequence[float] = 10,
        cv: Any = None,
        scoring: Any = None,
        normalize: str | None = "variance",
        missing: str = "error",
        multioutput: str = "shared",
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.regularizers = regularizers
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.normalize = normalize
        self.missing = missing
        self.multioutput = multioutput
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
