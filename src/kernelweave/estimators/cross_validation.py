"""Model selection over regulariser and cost that computes each Gram matrix once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from .._warnings import parallel
from ..losses import Loss
from ..regularizers import Regularizer
from ._base import BaseMKL, Setup
from ._base_search import BaseSearch, Folds
from ._input import positive_grid
from ._search import FrozenClassifier, FrozenRegressor, Search, matrices_of
from .classifier import MKLClassifier
from .regressor import MKLRegressor


class BaseMKLCV(BaseSearch):
    """What the two cross-validated estimators share; see them."""

    def _checked(self) -> BaseMKL:
        return self._chains()[0][0]

    def _chains(self) -> list[list[BaseMKL]]:
        """The grid: for each regulariser a chain of costs, from small to large."""
        listed = isinstance(self.regularizers, list | tuple)
        regularizers = list(self.regularizers) if listed else [self.regularizers]
        Cs = positive_grid("Cs", self.Cs, lambda n: np.geomspace(1e-2, 1e2, n))
        if len(regularizers) == 0:
            raise ValueError("regularizers=[] is empty: give at least one regularizer, for example 'lp'.")
        chains = [
            [clone(self._template()).set_params(regularizer=clone(r, safe=False), C=float(C)) for C in Cs]
            for r in regularizers
        ]
        for point in (point for chain in chains for point in chain):
            point._check_parameters()
        return chains

    def _values(
        self, template: BaseMKL, setup: Setup, folds: Folds
    ) -> tuple[list[dict[str, Any]], list[list[FloatArray]]]:
        chains = self._chains()
        names, matrices = matrices_of(template, setup)
        search = Search(template, setup, chains, matrices, names, self.normalize)
        # the first fold guides the others: their solutions are near its own
        first = search.fold(*folds.splits[0], None)
        rest = parallel(
            self.n_jobs,
            (delayed(Search.fold)(search, train, test, first.norms) for train, test in folds.splits[1:]),
        )
        points = [{"regularizer": point.regularizer, "C": point.C} for chain in chains for point in chain]
        return points, [fold.values for fold in (first, *rest)]

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


def _has_probability(search: Any) -> bool:
    return hasattr(getattr(search, "best_estimator_", MKLClassifier()), "predict_proba")


class MKLClassifierCV(ClassifierMixin, BaseMKLCV):
    """`MKLClassifier` with regulariser and cost chosen by cross-validation.

    Each Gram matrix is computed once for all folds and all points of the grid, and every fit
    starts from its neighbour on the path of C.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    regularizers : regulariser, str, or list of them, default="lp"
        The regularisers to choose from, such as ``[LpNorm(1), LpNorm(4/3), LpNorm(2), "uniform"]``.
    Cs : int or sequence of float, default=10
        The costs to choose from; a number n means n values from 0.01 to 100.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; 5 stratified folds by default.
    scoring : str or callable, optional
        Accuracy by default. Scorers that use labels or decision values.
    loss, normalize, multiclass, class_weight, tol, max_iter, fit_intercept, device
        As in `MKLClassifier`.
    n_jobs : int, optional
        Threads over the folds.
    verbose : int, default=0

    Attributes
    ----------
    best_estimator_ : MKLClassifier
        The best pair, fitted on all samples.
    best_params_, best_score_, best_index_
    cv_results_ : dict
        "params", "mean_test_score", "std_test_score", and "split_test_scores" (folds x points).
    model_, weights_, kernel_names_, dual_gap_, stationarity_, intercept_, coef_, classes_, n_features_in_
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
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _frozen(self, template: BaseMKL, values: FloatArray) -> Any:
        assert isinstance(template, MKLClassifier)
        return FrozenClassifier(template.classes_, template._class_values(values))

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    @available_if(_has_probability)
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)


class MKLRegressorCV(RegressorMixin, BaseMKLCV):
    """`MKLRegressor` with regulariser and cost chosen by cross-validation.

    Each Gram matrix is computed once for all folds and all points of the grid, and every fit
    starts from its neighbour on the path of C.

    Parameters
    ----------
    kernels, regularizers, Cs, cv, device, n_jobs, verbose
        As in `MKLClassifierCV`.
    scoring : str or callable, optional
        R^2 by default.
    loss, normalize, multioutput, tol, max_iter, fit_intercept
        As in `MKLRegressor`.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_, model_, weights_, kernel_names_, \
dual_gap_, stationarity_, intercept_, coef_, n_features_in_
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
        self.multioutput = multioutput
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _frozen(self, template: BaseMKL, values: FloatArray) -> Any:
        assert isinstance(template, MKLRegressor)
        return FrozenRegressor(values[:, 0] if template._flat else values)
