"""Quantile regression with many kernels."""

from __future__ import annotations

from typing import Any

from ..losses import Pinball
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import MKLSolver
from ._base import Spec
from ._input import check_weights
from ._labels import RealTargets
from ._mkl import BaseMKL, Setup, SubProblem


class MKLQuantileRegressor(RealTargets, BaseMKL):
    """Multiple kernel learning of a quantile of y given x.

    Learns f(x) = sum_m d_m sum_i alpha_i k_m(x, x_i) + b together with the kernel weights d:

        min_{f_m, b, d >= 0}  C sum_i max(q t_i, (q - 1) t_i) + 1/2 sum_m ||f_m||^2 / d_m + 1/2 h(d)

    with t_i = y_i - f(x_i): at most a share q of the training targets lies below f. Koenker & Bassett (1978),
    Takeuchi et al. (2006). Two models, such as those of q = 0.1 and 0.9, give an interval; each is fitted on
    its own, so that they may cross where samples are few.

    Parameters
    ----------
    kernels : list, dict, kernel, family or str, default="auto"
        As in `MKLClassifier`.
    quantile : float, default=0.5
        q, between 0 and 1; the default is the median.
    regularizer, C, normalize, missing, solver, gram, approximation, rank, tol, max_iter, fit_intercept, \
memory_limit, device, n_jobs, random_state, checkpoint, verbose
        As in `MKLRegressor`. C is in units of 1 / y.

    Attributes
    ----------
    model_, weights_, kernel_names_, norms_, dual_coef_, intercept_, coef_, support_, objective_, dual_gap_, \
stationarity_, n_iter_, n_resumed_, history_, gram_, patterns_, observed_, n_features_in_, feature_names_in_
        As in `MKLRegressor`.

    Notes
    -----
    `score` is 1 less the pinball loss relative to that of the quantile of y: R^2 of this loss
    (`losses.Pinball.agreement`).

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(100, 1))
    >>> y = X[:, 0] + np.abs(X[:, 0]) * rng.normal(size=100)
    >>> low, high = (kw.MKLQuantileRegressor([Linear(), RBF()], quantile=q).fit(X, y) for q in (0.1, 0.9))
    >>> bool(0.7 <= ((low.predict(X) <= y) & (y <= high.predict(X))).mean() <= 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = "auto",
        *,
        quantile: float = 0.5,
        regularizer: str | Regularizer = "lp",
        C: float = 1.0,
        normalize: str | None = "variance",
        missing: str = "error",
        solver: str | MKLSolver = "auto",
        gram: str = "auto",
        approximation: Any = None,
        rank: int = 100,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        memory_limit: int | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.quantile = quantile
        self.regularizer = regularizer
        self.C = C
        self.normalize = normalize
        self.missing = missing
        self.solver = solver
        self.gram = gram
        self.approximation = approximation
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    _tasks = ("quantile",)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    @property
    def loss(self) -> Pinball:
        """The pinball loss of the quantile."""
        return Pinball(self.quantile)

    def _setup(self, X: Any, y: Any, sample_weight: Any) -> Setup:
        """Check parameters and data; the problem to solve."""
        spec = Spec.of(self)
        table, y = self._validate(X, y, y_numeric=True)
        weight = check_weights(sample_weight, table)
        targets = self._targets(y, weight)
        problem = Problem.weighted(targets, spec.loss, self.C, weight[weight > 0], self.fit_intercept)
        return Setup(spec, table, weight, [SubProblem("fit", problem)])
