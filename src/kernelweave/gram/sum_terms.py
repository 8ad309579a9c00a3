"""Shares of an expansion that many kernels computed together have at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels import Normalization
from .sources import KernelSource


class SumTerm:
    """The share of kernels that a source computes together and that have the same coefficients.

        f_j(x) = sum_k factors[k, j] K_k(x, .) coef[:, j] + offset[j]

    Parameters
    ----------
    kernels : ndarray of int, shape (K,)
        Which of those that the source computes together.
    coef : ndarray of shape (n, J)
    factors : ndarray of shape (K, J)
    offset : ndarray of shape (J,)
    offsets : ndarray of shape (K, J), optional
        What each kernel adds to `offset`.
    """

    def __init__(
        self,
        kernels: IntArray,
        coef: FloatArray,
        factors: FloatArray,
        offset: FloatArray,
        offsets: FloatArray | None = None,
    ) -> None:
        self.kernels, self.coef, self.factors = kernels, coef, factors
        self.offset, self.offsets = offset, offsets

    def __call__(self, source: KernelSource, X: Any) -> FloatArray:
        out = np.tile(self.offset, (X.shape[0], 1))
        for functions in self._alike():
            factors = np.zeros(len(source.together))
            factors[self.kernels] = self.factors[:, functions[0]]
            out[:, functions] += source.cross_sum(factors, X) @ self.coef[:, functions]
        return out

    def _alike(self) -> list[list[int]]:
        """Functions that weigh the kernels alike; those that weigh none are left out."""
        groups: dict[bytes, list[int]] = {}
        for j, own in enumerate(self.factors.T):
            if own.any():
                groups.setdefault(own.tobytes(), []).append(j)
        return list(groups.values())


def sum_terms(rules: Sequence[Normalization], weights: FloatArray, alpha: FloatArray) -> list[SumTerm]:
    """f_j = sum_k weights[j, k] K'_k alpha[:, j] as few sums, for kernels with k(x, x) = 1.

    Parameters
    ----------
    rules : sequence of Normalization
        Of the kernels, fitted.
    weights : ndarray of shape (J, K)
    alpha : ndarray of shape (n, J)

    Examples
    --------
    >>> from kernelweave.kernels import resolve_normalization
    >>> rules = [resolve_normalization("variance").fit(np.eye(2)) for _ in range(3)]
    >>> [term] = sum_terms(rules, np.array([[0.5, 0.0, 1.0]]), np.ones((2, 1)))
    >>> term.kernels, term.factors.ravel()
    (array([0, 2]), array([1., 2.]))
    """
    scales = getattr(rules, "scales", None)  # many rules that only scale
    if scales is not None:
        live = np.flatnonzero(weights.any(axis=0))
        return [SumTerm(live, alpha, (weights * scales)[:, live].T, np.zeros(alpha.shape[1]))]
    coefs: dict[bytes, FloatArray] = {}
    groups: dict[bytes, list[Any]] = {}
    for k in np.flatnonzero(weights.any(axis=0)).tolist():
        rule = rules[k]
        coef, offset = rule.expand(alpha)
        factor = weights[:, k] * rule.scale_
        if rule.needs_diag:
            factor = factor * rule.row_scale(np.ones(1))
        key = b"" if coef is alpha else coef.tobytes()
        coefs[key] = coef
        groups.setdefault(key, []).append((k, factor, offset * factor))
    return [_term(coefs[key], group) for key, group in groups.items()]


def _term(coef: FloatArray, group: list[tuple[int, FloatArray, FloatArray]]) -> SumTerm:
    kernels, factors, offsets = zip(*group, strict=True)
    return SumTerm(np.array(kernels), coef, np.array(factors), np.sum(offsets, axis=0), np.array(offsets))
