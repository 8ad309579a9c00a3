"""Kernel normalisations, so that the weights of different kernels can be compared.

A normalisation is fitted on one training Gram matrix K and gives k'(x, z) = scale_ * (...): constants come
from the training samples, weighted (a row of weight w is w equal rows), and are reused at prediction. The
scale is kept apart, since it can join the kernel's weight, so that K is copied by no rule that only scales.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from sklearn.base import BaseEstimator, clone

from .._linalg import product
from .._registry import Registry

#: values below have lost digits to underflow, and next to nothing is their inverse
SMALLEST = 1e-300


class Normalization(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of normalisations, and of those that only scale: k' = scale_ * k.

    Attributes
    ----------
    scale_ : float
        0.0 when the kernel cannot be normalised: it is 0, or has no variance on the training samples.
    """

    name = ""

    #: fitted arrays with an entry for every training sample, which `expand` reads
    per_sample: tuple[str, ...] = ()

    #: whether `row_scale`, `cross` and `diag` need the values k(x, x) of new samples
    needs_diag = False

    #: whether entries stay, and their scale is a mean over samples: then some of the samples tell it nearly
    is_mean = False

    scale_: float

    def fit(self, K: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        """Take the constants from the training Gram matrix, in one pass at most.

        Of K only `shape`, `dtype`, `diagonal()`, one product ``K @ v`` and one small square part
        ``K[np.ix_(rows, rows)]`` are asked for.
        """
        K = K if K.dtype.kind == "f" else K.astype(np.float64)
        self.scale_ = self._fit(K, _shares(K.shape[0], sample_weight))
        return self

    def _fit(self, K: np.ndarray, share: np.ndarray) -> float:
        """Keep what is needed and return the scale; `share` are the weights, of sum 1."""
        raise NotImplementedError

    def train(self, K: np.ndarray) -> np.ndarray:
        """K' / scale_ on the training samples: K itself, not a copy, for rules that only scale."""
        return K

    def entries(self) -> tuple[np.ndarray | None, np.ndarray | None, float]:
        """`train` entry by entry: r, u and c of k'_ij / scale_ = r_i r_j k_ij - u_i - u_j + c.

        None stands for ones in r and for zeros in u.
        """
        return None, None, 0.0

    def train_factor(self, Phi: np.ndarray) -> np.ndarray:
        """Phi' with K' / scale_ = Phi' Phi'^T on the training samples, from K = Phi Phi^T."""
        return Phi

    def expand(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """`coef` and `offset` that evaluate an expansion from raw kernel values.

        sum_i alpha_i k'(x, x_i) = scale_ * row_scale(k(x, x)) * (sum_i coef_i k(x, x_i) + offset)

        Under centring `coef` is non-zero outside the support of `alpha`, unless alpha sums to 0.

        Parameters
        ----------
        alpha : ndarray of shape (n,) or (n, c)

        Returns
        -------
        coef : ndarray of the shape of `alpha`
        offset : float, or ndarray of shape (c,)
        """
        return alpha, 0.0

    def __copy__(self) -> Self:  # there is one for every kernel, and estimators are slow to copy
        rule = type(self).__new__(type(self))
        rule.__dict__.update(self.__dict__)
        return rule

    def take(self, samples: np.ndarray) -> Self:
        """The rule for `expand` where only these training samples have coefficients."""
        if not self.per_sample:
            return self
        rule = copy(self)
        for name in self.per_sample:
            setattr(rule, name, getattr(self, name)[samples])
        return rule

    def row_scale(self, diag_x: np.ndarray | None = None) -> np.ndarray | float:
        """The factor of each new sample in `expand`; 1.0 where `needs_diag` is False."""
        return 1.0

    def cross(self, K: np.ndarray, diag_x: np.ndarray | None = None) -> np.ndarray:
        """k'(x, x_i) / scale_ from K = k(x, x_i), new samples in rows."""
        return K

    def diag(self, diag_x: np.ndarray, K: np.ndarray | None = None) -> np.ndarray:
        """k'(x, x) / scale_ of new samples; centring also needs K = k(x, x_i)."""
        return diag_x


class NoNormalization(Normalization):
    """k' = k, for ``normalize=None``.

    Examples
    --------
    >>> NoNormalization().fit(2.0 * np.eye(3)).scale_
    1.0
    """

    name = "none"
    is_mean = True

    def _fit(self, K: np.ndarray, share: np.ndarray) -> float:
        return 1.0 if share @ K.diagonal() > 0 else 0.0


class Trace(Normalization):
    """k' = k / mean of k(x_i, x_i): the training Gram matrix has trace n.

    Examples
    --------
    >>> Trace().fit(2.0 * np.eye(3)).scale_
    0.5
    """

    name = "trace"
    is_mean = True

    def _fit(self, K: np.ndarray, share: np.ndarray) -> float:
        return _inverse(share @ K.diagonal(), 0.0)


class Variance(Normalization):
    """k' = k / (mean of the diagonal - mean of all entries): variance 1 in feature space.

    Examples
    --------
    >>> Variance().fit(np.array([[2.0, 0.0], [0.0, 2.0]])).scale_
    1.0
    """

    name = "variance"
    is_mean = True

    def _fit(self, K: np.ndarray, share: np.ndarray) -> float:
        mean = (share * _fine_product(K, share)).sum()  # the pass that this takes brings the diagonal along
        return _inverse_variance((share * K.diagonal()).sum(), mean, K.dtype)


class Spherical(Normalization):
    """k'(x, z) = k(x, z) / sqrt(k(x, x) k(z, z)): every sample on the unit sphere; 0 where k(x, x) = 0.

    Examples
    --------
    >>> Spherical().fit(np.diag([4.0, 9.0])).train(np.diag([4.0, 9.0]))
    array([[1., 0.],
           [0., 1.]])
    """

    name = "spherical"
    needs_diag = True
    per_sample = ("inverse_root_",)

    def _fit(self, K: np.ndarray, share: np.ndarray) -> float:
        self.inverse_root_ = _inverse_root(K.diagonal())
        weighted = share * self.inverse_root_
        total = float(share @ (self.inverse_root_ > 0))
        return 1.0 if _inverse_variance(total, weighted @ _product(K, weighted), K.dtype) > 0 else 0.0

    def train(self, K: np.ndarray) -> np.ndarray:
        scaled: np.ndarray = np.multiply.outer(self.inverse_root_, self.inverse_root_)
        scaled *= K
        return scaled

    def entries(self) -> tuple[np.ndarray | None, np.ndarray | None, float]:
        return self.inverse_root_, None, 0.0

    def train_factor(self, Phi: np.ndarray) -> np.ndarray:
        result: np.ndarray = Phi * self.inverse_root_[:, None]
        return result

    def expand(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        return (alpha.T * self.inverse_root_).T, 0.0

    def row_scale(self, diag_x: np.ndarray | None = None) -> np.ndarray | float:
        return _inverse_root(_needed(diag_x, "diag_x"))

    def cross(self, K: np.ndarray, diag_x: np.ndarray | None = None) -> np.ndarray:
        result: np.ndarray = K * self.inverse_root_ * _inverse_root(_needed(diag_x, "diag_x"))[:, None]
        return result

    def diag(self, diag_x: np.ndarray, K: np.ndarray | None = None) -> np.ndarray:
        return (diag_x > 0).astype(diag_x.dtype)


class Center(Normalization):
    """Training samples centred in feature space, then scaled to variance 1.

    k'(x, z) = scale_ * (k(x, z) - kbar(x) - kbar(z) + kbarbar), kbar(x) the mean of k(x, x_i) and
    kbarbar the mean of all entries; scale_ is that of `Variance`.

    Examples
    --------
    >>> K = np.array([[4.0, 0.0], [0.0, 0.0]])
    >>> rule = Center().fit(K)
    >>> rule.scale_ * rule.train(K)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    name = "center"
    per_sample = ("share_", "mean_")

    def _fit(self, K: np.ndarray, share: np.ndarray) -> float:
        self.share_ = share.astype(K.dtype)
        self.mean_ = _product(K, share)
        self.grand_mean_ = float(share @ self.mean_)
        return _inverse_variance(share @ K.diagonal(), self.grand_mean_, K.dtype)

    def train(self, K: np.ndarray) -> np.ndarray:
        # kbar_i + kbar_j first: the result is symmetric to the last bit
        centred: np.ndarray = np.add.outer(self.mean_, self.mean_)
        np.subtract(K, centred, out=centred)
        centred += self.grand_mean_
        return centred

    def entries(self) -> tuple[np.ndarray | None, np.ndarray | None, float]:
        return None, self.mean_, self.grand_mean_

    def train_factor(self, Phi: np.ndarray) -> np.ndarray:
        result: np.ndarray = Phi - self.share_ @ Phi
        return result

    def expand(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        total = alpha.sum(axis=0)
        # a sum that is zero but for rounding must not spread over all samples
        total = np.where(np.abs(total) <= 1e-12 * np.abs(alpha).sum(axis=0), 0.0, total)
        coef = alpha - np.multiply.outer(self.share_, total)
        return coef, -(self.mean_ @ coef)

    def cross(self, K: np.ndarray, diag_x: np.ndarray | None = None) -> np.ndarray:
        result: np.ndarray = K - (K @ self.share_)[:, None] - self.mean_ + self.grand_mean_
        return result

    def diag(self, diag_x: np.ndarray, K: np.ndarray | None = None) -> np.ndarray:
        result: np.ndarray = diag_x - 2.0 * (_needed(K, "K") @ self.share_) + self.grand_mean_
        return result


#: most samples whose part of a Gram matrix is looked at for its eigenvalues
MOST_ROWS = 200


class Dimension(Normalization):
    """k' = scale_ * k with a fixed effective dimension: all kernels have one capacity at the noise level.

        d(s) = sum_j s lambda_j / (s lambda_j + 1),    scale_ = the s with d(s) = min(dimension, rank / 2)

    with lambda_j the eigenvalues of the centred training Gram matrix, and its rank counted above rounding.
    "variance" gives every kernel the same sum of eigenvalues: a narrow Gaussian kernel spreads it over all
    samples and fits anything at a small norm, a linear kernel of smooth curves has nearly all of it in one
    or two directions and pays for every further one. Here both have about `dimension` directions in which a
    function of squared norm 1 is as large as noise of variance 1. d(C) is the degrees of freedom of kernel
    ridge regression with K and C, so that C counts from there: at C = 1, a kernel of weight 1 has `dimension`
    of them, whatever the number of samples.

    With more than 200 samples (or weights of a larger sum), 200 at even quantiles of the weights stand for
    all, and their eigenvalues are multiplied by n / 200.

    Parameters
    ----------
    dimension : float, default=10.0

    References
    ----------
    Caponnetto & De Vito (2007), Optimal rates for the regularized least-squares algorithm.
    Bartlett, Bousquet & Mendelson (2005), Local Rademacher complexities.
    Kloft & Blanchard (2012), On the convergence rate of lp-norm multiple kernel learning.

    Examples
    --------
    Centring leaves three eigenvalues of the identity, and half of their number is the dimension:

    >>> round(Dimension().fit(2.0 * np.eye(4)).scale_, 10)
    0.5
    """

    name = "dimension"

    def __init__(self, dimension: float = 10.0) -> None:
        self.dimension = dimension

    def fit(self, K: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        # unlike a mean, eigenvalues know how many samples there are: shares are not enough
        K, share = K if K.dtype.kind == "f" else K.astype(np.float64), _shares(K.shape[0], sample_weight)
        mean = share @ _fine_product(K, share)
        means = share @ K.diagonal(), mean
        rows, counts = self.look(_weights(K.shape[0], sample_weight))
        self.scale_ = self.scale_of(K[np.ix_(rows, rows)], counts, *means, K.dtype)
        return self

    @staticmethod
    def look(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The samples to look at, and how many each stands for: numbers of the sum of the weights.

        A row of weight w gives what w equal rows do, also where a few stand for all.
        """
        positive, total = np.flatnonzero(weight), float(weight.sum())
        if max(len(positive), total) <= MOST_ROWS:
            return positive, weight[positive]
        middles = (np.arange(MOST_ROWS) + 0.5) * (total / MOST_ROWS)
        taken = np.minimum(np.searchsorted(np.cumsum(weight), middles), positive[-1])
        rows, counts = np.unique(taken, return_counts=True)
        return rows, counts * (total / MOST_ROWS)

    def scale_of(
        self, part: np.ndarray, counts: np.ndarray, mean_diag: float, mean_all: float, dtype: np.dtype
    ) -> float:
        """The scale, from the square part of K on the samples of `look`, and the means of all of K."""
        if not (np.isfinite(self.dimension) and self.dimension > 0):
            raise ValueError(f"dimension={self.dimension!r}: expected a positive number.")
        inverse, eps = _inverse_variance(mean_diag, mean_all, dtype), float(np.finfo(dtype).eps)
        if inverse == 0.0:
            return 0.0
        total, values = float(counts.sum()), _centred_eigenvalues(part, counts)
        if (
            values.sum() <= 1e3 * eps * total * mean_diag
        ):  # these samples are alike: one direction of them all
            values = np.array([total / inverse])
        # an eigenvalue counts fully from ten times the rounding of the largest, or of the entries, on: a rank
        # that jumped from one number to the next would make rounding decide the scale
        floor = min(max(eps ** (2 / 3) * values.max(), 1e2 * eps * total * mean_diag), 0.1 * values.max())
        rank = float(np.clip(np.log10(np.maximum(values, floor) / floor), 0.0, 1.0).sum())
        found = _scale_of_dimension(values / values.max(), min(self.dimension, 0.5 * rank))
        return found / float(values.max())


NORMALIZATIONS = Registry("normalization", (Variance, Dimension, Spherical, Trace, Center, NoNormalization))


def resolve_normalization(spec: Any) -> Normalization:
    """An unfitted normalisation: `spec` is a name, None (no normalisation) or a `Normalization`.

    Examples
    --------
    >>> resolve_normalization("trace")
    Trace()
    """
    if spec is None:
        return NoNormalization()
    result: Normalization = clone(NORMALIZATIONS.resolve(spec, Normalization, "normalize"))
    return result


def _shares(n: int, sample_weight: np.ndarray | None) -> np.ndarray:
    """Weights of sum 1."""
    if sample_weight is None:
        return _equal_shares(n)
    weight = _weights(n, sample_weight)
    result: np.ndarray = weight / weight.sum()
    return result


@lru_cache(maxsize=1)
def _equal_shares(n: int) -> np.ndarray:
    """1 / n for every sample: the same array, which nobody may change, for all kernels."""
    share = np.full(n, 1.0 / n)
    share.flags.writeable = False
    return share


def _weights(n: int, sample_weight: np.ndarray | None) -> np.ndarray:
    return np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)


def _product(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """K v in the precision of K: a float64 vector would turn a float32 matrix into a float64 copy."""
    result: np.ndarray = K @ v.astype(K.dtype, copy=False)
    return result


def _fine_product(K: np.ndarray, v: np.ndarray) -> np.ndarray:
    """K v in the precision of v, for a mean that is subtracted from one that may be nearly the same.

    What is no array, such as a matrix that is checked in this product, sees to its precision itself.
    """
    return product(K, v) if isinstance(K, np.ndarray) else np.asarray(K @ v)


def _inverse_variance(mean_diag: float, mean_all: float, dtype: np.dtype) -> float:
    """1 / (mean diagonal - mean of all entries), or 0.0 where the difference is only rounding."""
    return _inverse(mean_diag - mean_all, 1e3 * float(np.finfo(dtype).eps) * abs(mean_diag))


def _inverse(value: float, rounding: float) -> float:
    return 1.0 / float(value) if value > max(rounding, SMALLEST) else 0.0


def _centred_eigenvalues(part: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Eigenvalues of a Gram matrix, centred, of which row i is there counts[i] times; none below 0."""
    K, share, root = part.astype(np.float64), counts / counts.sum(), np.sqrt(counts)
    mean = K @ share
    K -= np.add.outer(mean, mean)
    K += share @ mean
    K *= np.multiply.outer(root, root)
    result: np.ndarray = np.maximum(np.linalg.eigvalsh(K), 0.0)
    return result


def _scale_of_dimension(values: np.ndarray, dimension: float) -> float:
    """s > 0 with sum_j s values_j / (s values_j + 1) = dimension, for less than the number of values."""

    def excess(log: float) -> float:
        scaled = np.exp(log) * values
        return float((scaled / (scaled + 1.0)).sum()) - dimension

    low = high = float(np.log(dimension / values.sum())) - 1.0  # d(s) < s * sum(values)
    while excess(high) < 0.0:
        high += 2.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-15)))


def _inverse_root(diag: np.ndarray) -> np.ndarray:
    """1 / sqrt(k(x, x)); k(x, x) = 0 means that x is 0 in feature space, and stays there."""
    diag = diag if diag.dtype.kind == "f" else diag.astype(np.float64)
    result: np.ndarray = np.divide(1.0, np.sqrt(np.maximum(diag, 0)), out=np.zeros_like(diag), where=diag > 0)
    return result


def _needed(values: np.ndarray | None, argument: str) -> np.ndarray:
    if values is None:
        raise ValueError(f"this normalisation needs {argument} at prediction.")
    return values
