"""Feature maps: functions phi with k(x, z) near phi(x)'phi(z), and the features of normalised kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..._typing import FloatArray
from ...kernels import Dimension, Kernel, resolve_normalization
from ...kernels.base import in_double
from ...kernels.columns import as_table

#: eigenvalues of a landmark matrix below this share of the largest are rounding
CUTOFF = 1e-12


class FeatureMap(ABC):
    """phi of one kernel, on rows of data.

    Attributes
    ----------
    kernel : Kernel
        Fitted on the training rows.
    rank : int
        Number of features.
    exact : bool
        Whether phi(x)'phi(z) is k(x, z) itself.
    below : bool
        Whether k(x, z) - phi(x)'phi(z) is a kernel too, so that a bound on its trace bounds all of it.
    """

    kernel: Kernel
    rank: int
    exact = False
    below = True

    @abstractmethod
    def __call__(self, X: Any) -> FloatArray:
        """phi of every row, shape (n_rows, rank)."""


class ExactMap(FeatureMap):
    """The features of a kernel with few of them: columns (linear kernel) or monomials (polynomial kernel).

    Parameters
    ----------
    kernel : Kernel
        Fitted, with `low_rank`.
    rank : int

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> X = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> ExactMap(Linear(columns=[1]).fit(X), 1)(X).ravel()
    array([2., 3.])
    """

    exact = True

    def __init__(self, kernel: Kernel, rank: int) -> None:
        self.kernel, self.rank = kernel, rank

    def __call__(self, X: Any) -> FloatArray:
        found = self.kernel.low_rank(X, self.rank)
        if found is None:
            raise ValueError(f"{self.kernel!r} has more than {self.rank} features on these columns.")
        return found


class NystroemMap(FeatureMap):
    """phi(x) = W^(-1/2) k(L, x) with landmarks L and W = k(L, L): K is approximated from below.

    Williams & Seeger (2001). Directions in which W vanishes are left out.

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    landmarks : table of shape (r, n_features)

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> kernel = RBF(gamma=1.0).fit(X)
    >>> Z = NystroemMap(kernel, X)(X)
    >>> bool(np.allclose(Z @ Z.T, kernel(X)))
    True
    """

    def __init__(self, kernel: Kernel, landmarks: Any) -> None:
        self.kernel, self.landmarks = kernel, as_table(landmarks)
        W = np.asarray(kernel(self.landmarks), dtype=np.float64)
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        kept = values > CUTOFF * len(values) * max(float(values[-1]), 0.0)
        self.root = vectors[:, kept] / np.sqrt(values[kept])
        self.rank = int(kept.sum())

    def __call__(self, X: Any) -> FloatArray:
        K = self.kernel(X, self.landmarks)
        return np.asarray(K @ self.root.astype(K.dtype, copy=False))


class FourierMap(FeatureMap):
    """phi(x) = sqrt(1 / q) (cos(Wx), sin(Wx)) with q random frequencies, for kernels of x - z.

    k(x, z) = E cos(w'(x - z)), with w normal for the Gaussian kernel and Cauchy for the Laplacian.
    Rahimi & Recht (2007). The error of an entry falls like 1 / sqrt(q), whatever the data.

    Parameters
    ----------
    kernel : Kernel
        Fitted, exp(-gamma b) of a squared or city-block distance b.
    frequencies : ndarray of shape (n_columns, q)

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> kernel = RBF(gamma=0.5).fit(X)
    >>> Z = FourierMap(kernel, np.random.default_rng(0).normal(size=(1, 10_000)))(X)
    >>> bool(abs(Z @ Z.T - kernel(X)).max() < 0.01)
    True
    """

    below = False

    def __init__(self, kernel: Kernel, frequencies: FloatArray) -> None:
        self.kernel, self.frequencies = kernel, frequencies
        self.rank = 2 * frequencies.shape[1]

    def __call__(self, X: Any) -> FloatArray:
        table = as_table(X)
        columns = self.kernel.base_view(table)
        angles = columns @ self.frequencies.astype(columns.dtype, copy=False)
        found = np.hstack([np.cos(angles), np.sin(angles)])
        found *= (2.0 / self.rank) ** 0.5
        return np.asarray(found)


#: variance below this share of the mean square is rounding
ROUNDING = 1e-9


@dataclass
class Features:
    """z(x) of one kernel: its features, put on the sphere or centred where that is asked for.

    z(x) = phi(x) / sqrt(k(x, x)) - mean,  k'(x, z) = scale z(x)'z(z)

    Attributes
    ----------
    map : FeatureMap
    spherical : bool
    mean : ndarray of shape (rank,), or None
    scale : float
        0.0 for a kernel without variance on the training samples.
    error : float
        Mean over the training samples of what is missing on the diagonal, k(x, x) - phi(x)'phi(x); for
        `spherical`, of the kernel on the sphere.
    size : float
        Mean of k(x, x) over the same samples.
    """

    map: FeatureMap
    spherical: bool = False
    mean: FloatArray | None = None
    scale: float = 1.0
    error: float = 0.0
    size: float = 1.0

    def __call__(self, X: Any) -> FloatArray:
        """z of every row, shape (n_rows, rank)."""
        found = self.raw(X)
        return found if self.mean is None else found - self.mean.astype(found.dtype)

    def raw(self, X: Any) -> FloatArray:
        """z before it is centred."""
        X = in_double(X)
        found = self.map(X)
        if not self.spherical:
            return found
        diagonal = np.maximum(self.map.kernel.diag(X), 0.0)
        root = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
        return np.asarray(found * root[:, None])

    def diagonal(self, X: Any) -> FloatArray:
        """k(x, x) of every row; of the kernel on the sphere where that is asked for."""
        found = np.asarray(self.map.kernel.diag(X), dtype=np.float64)
        return (found > 0).astype(np.float64) if self.spherical else found


@dataclass
class Moments:
    """Weighted sums over training samples: of z, of its square, of k(x, x)."""

    first: FloatArray
    square: float = 0.0
    diagonal: float = 0.0

    def add(self, Z: FloatArray, diagonal: FloatArray, share: FloatArray) -> None:
        """Take in some rows."""
        values = Z.astype(np.float64, copy=False)
        self.first += share @ values
        self.square += float(share @ np.einsum("ij,ij->i", values, values))
        self.diagonal += float(share @ diagonal)


Seen = tuple[Any, FloatArray]


def looked_at(normalize: Any, X: Any, weight: FloatArray | None) -> Seen | None:
    """The samples that a normalisation looks at, and how many each stands for; None if it looks at none.

    Parameters
    ----------
    normalize : str, Normalization or None
    X : table of shape (n, n_features)
    weight : ndarray of shape (n,), or None
    """
    rule = resolve_normalization(normalize)
    if not isinstance(rule, Dimension):
        return None
    rows, counts = rule.look(np.ones(X.shape[0]) if weight is None else weight)
    return _safe_indexing(X, rows), counts


def settle(features: Features, normalize: Any, moments: Moments, seen: Seen | None = None) -> None:
    """Set the constants of a normalisation from the moments of the training samples.

    Parameters
    ----------
    features : Features
    normalize : str, Normalization or None
    moments : Moments
    seen : tuple, optional
        What `looked_at` returns.
    """
    rule = resolve_normalization(normalize)
    name = rule.name
    spread = moments.square - float(moments.first @ moments.first)
    moves = spread > ROUNDING * moments.square
    features.mean = moments.first if name == "center" else None
    features.scale = {
        "none": float(moments.square > 0),
        "trace": 1.0 / moments.square if moments.square > 0 else 0.0,
        "spherical": float(moves),
    }.get(name, 1.0 / spread if moves else 0.0)
    if isinstance(rule, Dimension) and seen is not None and moves:
        Z, means = features.raw(seen[0]).astype(np.float64), (moments.square, moments.square - spread)
        features.scale = rule.scale_of(Z @ Z.T, seen[1], *means, Z.dtype)
    features.size = moments.diagonal
    features.error = 0.0 if features.map.exact else max(moments.diagonal - moments.square, 0.0)


def check_rule(normalize: Any) -> str:
    """The name of a normalisation that features can follow."""
    rule = resolve_normalization(normalize)
    if rule.name not in ("none", "trace", "variance", "dimension", "spherical", "center"):
        raise ValueError(f"normalize={normalize!r} is not known to low-rank kernels: use 'variance'.")
    return rule.name
