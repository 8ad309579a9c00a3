"""Novelty detection with many kernels."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from .._typing import FloatArray
from ..gram import Predictor
from ..losses import Loss
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import MKLSolver
from ._base import Spec, all_or_nothing, follows_input
from ._input import check_weights
from ._mkl import BaseMKL, Setup, SubProblem
from ._training import with_callbacks


class NoveltyDetection(OutlierMixin):
    """Mixin of novelty detectors: the region where the function learned, a score less rho, is positive."""

    nu: float
    C: float | None
    model_: Predictor

    #: values of the function learned, shape (n, 1)
    _decision: Callable[..., FloatArray]

    #: C may be None, and nu says what it is
    _optional_cost = True

    _tasks: ClassVar[tuple[str, ...]] = ("one_class",)

    _fitted: ClassVar[dict[str, type]] = {"offset_": float}

    def _problem(self, loss: Loss, weight: FloatArray) -> Problem:
        """The problem of samples of positive weight."""
        used = weight[weight > 0]
        costs = self._cost(float(used.sum())) * used[:, None]
        return Problem(np.zeros((len(used), 1)), loss, costs)

    @follows_input
    def score_samples(self, X: Any) -> FloatArray:
        """Values of sum_m f_m: larger is more normal."""
        return self.decision_function(X) + self.offset_

    @follows_input
    def decision_function(self, X: Any) -> FloatArray:
        """Values of f: positive inside the learned region, zero on its boundary.

        Support vectors lie on the boundary, where f is zero but for rounding: it is made zero.
        """
        values = self._decision(X)[:, 0]
        return np.where(np.abs(values) <= 1e-9 * abs(self.offset_), 0.0, values)

    @follows_input
    def predict(self, X: Any) -> FloatArray:
        """+1 for samples inside the learned region or on its boundary, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _cost(self, size: float) -> float:
        """C for training samples of total weight `size`."""
        if self.C is None:
            if not (isinstance(self.nu, Real) and 0 < self.nu <= 1):
                raise ValueError(f"nu={self.nu!r} must be in (0, 1].")
            return 1.0 / (self.nu * size)
        if self.C * size < 1.0 - 1e-9:
            raise ValueError(f"C={self.C!r} is too small: it must be at least 1 / n = {1.0 / size:.4g}.")
        return self.C


class MKLOneClass(NoveltyDetection, BaseMKL):
    """Multiple kernel learning for novelty detection.

    Learns the region where most training samples lie, f(x) = sum_m f_m(x) - rho >= 0:

        min_{f_m, rho, d >= 0}  C sum_i max(0, -f(x_i)) - rho + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    With one kernel it is the one-class SVM (Schoelkopf et al. 2001), C = 1 / (nu n). Kloft et
    al. (2011), section 3.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    loss : str or Loss, default="one_class"
    regularizer : str or Regularizer, default="lp"
        Convex: "lp" (p = 2), "uniform" (all weights 1), "block", "mahalanobis", and for sparse weights
        "elasticnet", "wedge"; concave terms, whose optimum is a local one: "log", "smkl", "mfocuss",
        "group_lasso", "mkl"; or an object such as ``LpNorm(p=1)``.
    nu : float, default=0.5
        Bound on the share of training samples left outside, in (0, 1].
    C : float, optional
        Cost of leaving a sample outside; overrides `nu` when given. At least 1 / n.
    solver : str or MKLSolver, default="auto"
        "auto" by the regulariser; "newton", "alternating", "joint_ascent", "majorize_minimize" or
        "interleaved", each for some regularisers (see `kernelweave.solvers.multiple`), or an object.
    normalize, gram, approximation, rank, tol, max_iter, memory_limit, device, n_jobs, random_state, \
checkpoint, verbose
        As in `MKLClassifier`.

    Attributes
    ----------
    offset_ : float
        rho: decision_function = score_samples - offset_.
    model_, weights_, kernel_names_, norms_, dual_coef_, intercept_, coef_, support_, objective_, dual_gap_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, n_features_in_, feature_names_in_
        As in `MKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> X = load_iris().data[:50]
    >>> detector = kw.MKLOneClass(nu=0.1).fit(X)
    >>> detector.predict([[5.0, 3.4, 1.5, 0.2], [9.0, 9.0, 9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        loss: str = "one_class",
        regularizer: str | Regularizer = "lp",
        nu: float = 0.5,
        C: float | None = None,
        normalize: str | None = "variance",
        solver: str | MKLSolver = "auto",
        gram: str = "auto",
        approximation: Any = None,
        rank: int = 100,
        tol: float = 1e-3,
        max_iter: int = 200,
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.loss = loss
        self.regularizer = regularizer
        self.nu = nu
        self.C = C
        self.normalize = normalize
        self.solver = solver
        self.gram = gram
        self.approximation = approximation
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the region of the training samples.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, n_features), or kernels
            With `approximation` also a Dask array or data frame, or a `ParquetTable`: of these, and of
            arrays mapped from disk, kernels take their parameters from at most 100,000 rows.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A sample of weight w counts as w equal samples.
        """
        spec = Spec.of(self)
        if self.normalize == "center":
            raise ValueError(
                "normalize='center' leaves MKLOneClass nothing to learn (the mean of centred samples is 0): "
                "use 'variance', 'spherical', 'trace' or None."
            )
        table, _ = self._validate(X)
        weight = check_weights(sample_weight, table)
        problem = self._problem(spec.loss, weight)
        self._fit_problems(Setup(spec, table, weight, [SubProblem("fit", problem)]))
        self.offset_ = -float(self.model_.intercept[0])
        return self
