"""Predictive means and variances of Gaussian processes with weighted kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..gram import Dictionary
from ..solvers.multiple.empirical_bayes import Posterior


class Process:
    """Posterior means and variances on new data, by live kernels only and a block of rows at a time.

    Parameters
    ----------
    dictionary : Dictionary
        Its training data are kept, its Gram matrices are not.
    columns : ndarray of int
        The training samples that the posteriors refer to.
    weights : ndarray of shape (J, M)
        Kernel weights of every model.
    posteriors : list of J Posterior
    """

    block_bytes = 1 << 26

    def __init__(
        self, dictionary: Dictionary, columns: IntArray, weights: FloatArray, posteriors: list[Posterior]
    ) -> None:
        self.source, self.columns, self.posteriors = dictionary.source, columns, posteriors
        # centring needs the kernel values of all training samples
        self.source.restrict(np.arange(self.source.n_samples))
        self.live = np.flatnonzero(weights.any(axis=0))
        self.rules = [dictionary.normalizations[m] for m in self.live.tolist()]
        self.factors = weights[:, self.live] * np.array([rule.scale_ for rule in self.rules])

    def __call__(self, X: Any, variance: bool = False) -> tuple[FloatArray, FloatArray]:
        """Means (n_new, n_functions) and latent variances (n_new, J), zero when not asked for."""
        n, J = X.shape[0], len(self.posteriors)
        means = np.empty((n, sum(posterior.alpha.shape[1] for posterior in self.posteriors)))
        variances = np.zeros((n, J))
        step = max(1, self.block_bytes // (8 * self.source.n_samples * (J + 2)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            crosses, priors = self._covariances(self.source.rows(X, part), variance)
            pairs = list(zip(self.posteriors, crosses, strict=True))
            means[part] = np.hstack([K @ posterior.alpha + posterior.intercept for posterior, K in pairs])
            if variance:
                columns = zip(self.posteriors, crosses, priors, strict=True)
                variances[part] = np.column_stack([model.variance(K, prior) for model, K, prior in columns])
        return means, variances

    def _covariances(self, X: Any, variance: bool) -> tuple[FloatArray, FloatArray]:
        """sum_m d_m k_m(x, x_i) and sum_m d_m k_m(x, x) of every model; the latter only if asked for."""
        crosses = np.zeros((len(self.posteriors), X.shape[0], len(self.columns)))
        priors = np.zeros(crosses.shape[:2])
        for m, rule, factors in zip(self.live, self.rules, self.factors.T, strict=True):
            K = self.source.cross(int(m), X)
            diag = self.source.diag(int(m), X) if variance or rule.needs_diag else None
            cross = rule.cross(K, diag)[:, self.columns]
            for j in np.flatnonzero(factors):
                crosses[j] += factors[j] * cross
            if variance and diag is not None:
                priors += np.multiply.outer(factors, rule.diag(diag, K))
        return crosses, priors
