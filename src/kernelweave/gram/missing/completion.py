"""Conditional mean embeddings: kernel ridge regression from the other views to one that samples lack."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._typing import FloatArray, IntArray

#: samples of a view that choose its ridge; with more of them the leave-one-out error hardly changes
MOST_LEFT_OUT = 300

#: ridges tried, in units of the mean diagonal of S
RIDGES = np.geomspace(1e-4, 1e2, 19)


def left_out_errors(S: FloatArray, K: FloatArray, ridges: FloatArray) -> FloatArray:
    """Leave-one-out errors of the regression of embeddings, for every ridge.

    Kernel ridge regression with S predicts the embedding phi_i of kernel K. With G = (S + lambda I)^-1, the
    error of the prediction from the other samples is

        phi_i - phi_i^(-i) = sum_j G_ij phi_j / G_ii,    squared norm  (G K G)_ii / G_ii^2

    Parameters
    ----------
    S, K : ndarray of shape (n, n)
    ridges : ndarray of positive numbers

    Returns
    -------
    errors : ndarray
        Sums over the samples of the squared norms.

    Examples
    --------
    >>> left_out_errors(np.eye(2), np.eye(2), np.array([0.1, 1.0]))  # nothing to learn from each other
    array([2., 2.])
    """
    values, U = np.linalg.eigh(S)
    return _left_out(np.maximum(values, 0.0), U, U.T @ K @ U, ridges)


def _left_out(values: FloatArray, U: FloatArray, inner: FloatArray, ridges: FloatArray) -> FloatArray:
    """`left_out_errors` with S = U diag(values) U', inner = U'KU."""
    found = []
    for ridge in ridges:
        V = U / (values + ridge)
        found.append(float((((V @ inner) * V).sum(axis=1) / (U * V).sum(axis=1) ** 2).sum()))
    return np.array(found)


def best_ridge(S: FloatArray, K: FloatArray, unit: float) -> float:
    """The ridge of least `left_out_errors`: every third is tried first, then those around the best."""
    values, U = np.linalg.eigh(S)
    spectrum = np.maximum(values, 0.0), U, U.T @ K @ U
    coarse = np.arange(0, len(RIDGES), 3)
    near = coarse[int(np.argmin(_left_out(*spectrum, unit * RIDGES[coarse])))]
    fine = np.arange(max(near - 2, 0), min(near + 3, len(RIDGES)))
    return unit * float(RIDGES[fine[int(np.argmin(_left_out(*spectrum, unit * RIDGES[fine])))]])


def evenly(n: int) -> IntArray:
    """The samples, out of n, that choose a ridge."""
    return np.unique(np.linspace(0, n - 1, min(MOST_LEFT_OUT, n)).astype(int))


class Completion:
    """Embeddings of the samples that lack a view, as combinations of embeddings of samples that have it.

        A = S_rO (S_OO + lambda W^-1)^-1

    W holds the weights of the samples: a sample of weight w counts as w equal samples. Grunewalder et al.
    (2012); Song et al. (2009).

    Parameters
    ----------
    S : ndarray of shape (n_O, n_O)
        Kernels of the other views between samples that have this one; overwritten.
    rest : ndarray of shape (n_rest, n_O)
        The same between samples that lack it and samples that have it.
    K : ndarray
        The kernel of this view between some of the samples that have it, `evenly` spread; its leave-one-out
        error chooses lambda.
    weight : ndarray of shape (n_O,)

    Attributes
    ----------
    ridge : float
        lambda.
    rows : ndarray of shape (n_rest, n_O)
        A of the samples that lack the view.
    """

    def __init__(self, S: FloatArray, rest: FloatArray, K: FloatArray, weight: FloatArray) -> None:
        self.root = np.sqrt(weight)
        if (weight != 1.0).any():
            S = S * np.outer(self.root, self.root)
        unit = float(S.diagonal().mean())
        self.ridge = 1.0
        if unit > 0.0:
            some = evenly(len(S))
            root = self.root[some]
            self.ridge = best_ridge(S[np.ix_(some, some)], K * np.outer(root, root), unit)
        S.flat[:: len(S) + 1] += self.ridge
        self._factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        self.rows = self.solve(rest.T).T

    def solve(self, values: FloatArray) -> FloatArray:
        """(S_OO + lambda W^-1)^-1 values."""
        if values.shape[1] == 0:
            return values
        root = self.root[:, None]
        return np.asarray(root * cho_solve(self._factor, root * values, check_finite=False))

    def spread(self, K: FloatArray, own: IntArray, rest: IntArray) -> FloatArray:
        """The kernel on all samples, from K_OO: A K_OO and A K_OO A' with those that lack it."""
        n = len(own) + len(rest)
        cross, whole = self.rows @ K, np.empty((n, n))
        square = cross @ self.rows.T
        whole[np.ix_(own, own)] = K
        whole[np.ix_(rest, own)], whole[np.ix_(own, rest)] = cross, cross.T
        whole[np.ix_(rest, rest)] = 0.5 * (square + square.T)
        return whole
