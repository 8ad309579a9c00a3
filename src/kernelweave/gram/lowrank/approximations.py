"""Ways to approximate a kernel by features, and how landmarks are chosen."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import _safe_indexing

from ..._registry import Registry
from ..._typing import FloatArray, IntArray
from ...kernels import Kernel, Manhattan, SquaredEuclidean
from ...kernels.base import base_of, form_of
from ..sharing import is_positive
from .maps import ExactMap, FeatureMap, FourierMap, NystroemMap

#: most samples among which k-means and leverage scores look for landmarks
CANDIDATES = {"kmeans": 20_000, "leverage": 10_000}


def uniform(kernel: Kernel, X: Any, count: int, rng: np.random.Generator) -> IntArray:
    """Samples drawn at random, all with the same probability.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> len(uniform(Linear(), np.zeros((10, 1)), 3, np.random.default_rng(0)))
    3
    """
    return np.sort(rng.choice(X.shape[0], min(count, X.shape[0]), replace=False))


def kmeans(kernel: Kernel, X: Any, count: int, rng: np.random.Generator) -> IntArray:
    """The samples nearest to the centres of k-means on the columns of the kernel. Zhang et al. (2008).

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> np.round(X[kmeans(Linear().fit(X), X, 2, np.random.default_rng(0))]).ravel()
    array([0., 5.])
    """
    some = uniform(kernel, X, CANDIDATES["kmeans"], rng)
    columns = kernel._view(_safe_indexing(X, some))
    if not (sparse.issparse(columns) or getattr(columns, "dtype", np.dtype(object)).kind == "f"):
        raise ValueError(
            f"landmarks='kmeans': {kernel!r} is not a kernel of numbers; use 'uniform' or 'leverage'."
        )
    if count >= len(some):
        return some
    seed = int(rng.integers(2**31))
    centers = KMeans(count, n_init=1, max_iter=20, random_state=seed).fit(columns).cluster_centers_
    return np.unique(some[pairwise_distances_argmin(centers, columns)])


def leverage(kernel: Kernel, X: Any, count: int, rng: np.random.Generator) -> IntArray:
    """Samples drawn in proportion to their ridge leverage scores. Musco & Musco (2017).

        l_i = (K (K + lam I)^-1)_ii,  with lam such that they sum to half the landmarks

    They are computed on a part of the samples, from an approximation by uniform landmarks, which is improved
    once by the landmarks it leads to.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> X = np.eye(4)
    >>> len(leverage(Linear().fit(X), X, 2, np.random.default_rng(0)))
    2
    """
    some = uniform(kernel, X, CANDIDATES["leverage"], rng)
    if count >= len(some):
        return some
    part = _safe_indexing(X, some)
    diagonal = np.asarray(kernel.diag(part), dtype=np.float64)
    chosen = pilot = uniform(kernel, part, 2 * count, rng)
    for _ in range(2):
        pilot = np.union1d(pilot, chosen)
        B = np.asarray(NystroemMap(kernel, _safe_indexing(part, pilot))(part), dtype=np.float64)
        scores = ridge_leverage(B, diagonal, count / 2.0)
        chosen = rng.choice(len(some), count, replace=False, p=scores / scores.sum())
    return np.sort(some[chosen])


def ridge_leverage(B: FloatArray, diagonal: FloatArray, total: float) -> FloatArray:
    """Scores from K ~ B B'; the part of the diagonal that B misses counts in full; lam by bisection.

    Examples
    --------
    >>> ridge_leverage(np.eye(4), np.ones(4), 2.0)
    array([0.5, 0.5, 0.5, 0.5])
    """
    values, vectors = np.linalg.eigh(B.T @ B)
    values = np.maximum(values, 0.0)
    squares, missed = (B @ vectors) ** 2, np.maximum(diagonal - np.einsum("ij,ij->i", B, B), 0.0)

    def scores(lam: float) -> FloatArray:
        return np.asarray(np.minimum(squares @ (1.0 / (values + lam)) + missed / lam, 1.0))

    low, high = 1e-12 * float(diagonal.mean()), float(diagonal.sum())
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if scores(middle).sum() > total else (low, middle)
    return np.round(np.maximum(scores(high), 1e-12), 12)


LANDMARKS = {"uniform": uniform, "kmeans": kmeans, "leverage": leverage}


class Approximation(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class: gives every kernel a feature map of a rank."""

    name: str

    def maps(self, kernels: list[Kernel], X: Any, rank: int, rng: np.random.Generator) -> list[FeatureMap]:
        """One map per kernel; an exact map where a kernel has no more than `rank` features.

        Parameters
        ----------
        kernels : list of Kernel
            Fitted on `X`.
        X : table of shape (n, n_features)
        rank : int
        rng : Generator
        """
        first = _safe_indexing(X, np.arange(1))
        found = (kernel.low_rank(first, rank) for kernel in kernels)
        widths = [None if phi is None else phi.shape[1] for phi in found]
        self._begin()
        return [
            self._map(kernel, X, rank, rng) if width is None else ExactMap(kernel, width)
            for kernel, width in zip(kernels, widths, strict=True)
        ]

    def _begin(self) -> None:
        """Forget what maps of an earlier fit shared."""

    @abstractmethod
    def _map(self, kernel: Kernel, X: Any, rank: int, rng: np.random.Generator) -> FeatureMap:
        """A map of at most `rank` features."""


class Nystroem(Approximation):
    """Kernels seen from landmarks: K ~ K_nL K_LL^-1 K_Ln, never above K. Williams & Seeger (2001).

    Parameters
    ----------
    landmarks : {"uniform", "kmeans", "leverage"}, default="uniform"
        Samples drawn at random; those nearest to the centres of k-means on the columns of each
        kernel (Zhang et al. 2008); or those drawn by ridge leverage scores (Musco & Musco 2017).

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> (phi,) = Nystroem().maps([RBF().fit(X)], X, 20, np.random.default_rng(0))
    >>> Z = phi(X)
    >>> bool(abs(Z @ Z.T - RBF()(X)).max() < 1e-5)
    True
    """

    name = "nystroem"

    def __init__(self, landmarks: str = "uniform") -> None:
        self.landmarks = landmarks

    def _begin(self) -> None:
        if self.landmarks not in LANDMARKS:
            known = ", ".join(map(repr, LANDMARKS))
            raise ValueError(f"landmarks={self.landmarks!r}: expected one of {known}.")
        self._chosen: dict[Any, Any] = {}

    def _map(self, kernel: Kernel, X: Any, rank: int, rng: np.random.Generator) -> FeatureMap:
        key = self._shared_by(kernel)
        if key not in self._chosen:
            self._chosen[key] = LANDMARKS[self.landmarks](kernel, X, rank, rng)
        return NystroemMap(kernel, _safe_indexing(X, self._chosen[key]))

    def _shared_by(self, kernel: Kernel) -> Any:
        """What two kernels must have in common to share landmarks: nothing, their columns, or everything."""
        if self.landmarks == "leverage":
            return id(kernel)
        columns = getattr(kernel, "columns_", None)
        return None if self.landmarks == "uniform" or columns is None else columns.tobytes()


class RandomFourier(Approximation):
    """Random frequencies for exp(-gamma b), b = ||x - z||^2 or ||x - z||_1, landmarks for the others.

    These are the Gaussian and the Laplacian kernel, and whatever equals them. Rahimi & Recht (2007).

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> (phi,) = RandomFourier().maps([RBF().fit(X)], X, 200, np.random.default_rng(0))
    >>> Z = phi(X)
    >>> bool(abs(Z @ Z.T - RBF()(X)).max() < 0.2)
    True
    """

    name = "rff"

    def _map(self, kernel: Kernel, X: Any, rank: int, rng: np.random.Generator) -> FeatureMap:
        if is_positive(kernel) and base_of(kernel) in (SquaredEuclidean(), Manhattan()):
            gamma, view = -form_of(kernel)[1], kernel.base_view(_safe_indexing(X, np.arange(1)))  # type: ignore[index]
            shape = (view.shape[1], max(rank // 2, 1))
            if base_of(kernel) == Manhattan():
                return FourierMap(kernel, gamma * rng.standard_cauchy(shape))
            return FourierMap(kernel, (2.0 * gamma) ** 0.5 * rng.normal(size=shape))
        rows = LANDMARKS["uniform"](kernel, X, rank, rng)
        return NystroemMap(kernel, _safe_indexing(X, rows))


APPROXIMATIONS = Registry("approximation", (Nystroem, RandomFourier))


def resolve_approximation(spec: Any) -> Approximation:
    """An approximation: `spec` is a name or an `Approximation`.

    Examples
    --------
    >>> resolve_approximation("nystroem")
    Nystroem()
    """
    found: Approximation = clone(APPROXIMATIONS.resolve(spec, Approximation, "approximation"))
    return found
