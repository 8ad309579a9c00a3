"""Quantile regression with many kernels."""

from __future__ import annotations

from pinball import Pinball
from sklearn.base import RegressorMixin

from kernelweave.estimators._base import Spec, all_or_nothing, follows_input
from kernelweave.estimators._input import check_weights
from kernelweave.estimators._mkl import BaseMKL, Setup, SubProblem
from kernelweave.estimators._training import with_callbacks
from kernelweave.solvers import Problem


class MKLQuantile(RegressorMixin, BaseMKL):
    """The q-quantile of y given x, as a weighted sum of kernels.

        min  C sum_i max(q t_i, (q - 1) t_i) + Omega,  t_i = y_i - f(x_i)

    Parameters
    ----------
    q : float, default=0.5
        The quantile, between 0 and 1. The other parameters, and the attributes, are those of `MKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> low, high = (MKLQuantile(q=q).fit(X, X[:, 0] + np.sin(40 * X[:, 0])) for q in (0.1, 0.9))
    >>> bool((low.predict(X) < high.predict(X)).all())
    True
    """

    def __init__(
        self,
        kernels="auto",
        *,
        q=0.5,
        regularizer="lp",
        C=1.0,
        normalize="variance",
        solver="auto",
        gram="auto",
        approximation=None,
        rank=100,
        tol=1e-3,
        max_iter=200,
        fit_intercept=True,
        memory_limit=None,
        device=None,
        n_jobs=None,
        random_state=None,
        checkpoint=None,
        verbose=0,
    ) -> None:
        vars(self).update({name: value for name, value in locals().items() if name != "self"})

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Learn kernel weights and the function."""
        spec = Spec.of(self)
        if not 0.0 < self.q < 1.0:
            raise ValueError(f"q={self.q!r} must lie between 0 and 1.")
        table, y = self._validate(X, y, y_numeric=True)
        weight = check_weights(sample_weight, table)
        used = weight > 0
        targets = y[used, None].astype(float)
        problem = Problem.weighted(targets, Pinball(self.q), self.C, weight[used], self.fit_intercept)
        self._fit_problems(Setup(spec, table, weight, [SubProblem("fit", problem)]))
        return self

    @follows_input
    def predict(self, X):
        """The quantile at new samples."""
        return self._decision(X)[:, 0]
