"""How kernels become feature maps: Nystroem's method and random Fourier features."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from ..._registry import Registry
from ...kernels import RBF, Kernel, Laplacian
from .landmarks import LANDMARKS
from .maps import ExactMap, FeatureMap, FourierMap, NystroemMap


class Approximation(BaseEstimator):
    """Base class: gives every kernel a feature map of a rank."""

    name: str

    def maps(self, kernels: list[Kernel], X: Any, rank: int, rng: np.random.Generator) -> list[FeatureMap]:
        """One map a kernel, exact ones where a kernel has no more than `rank` features.

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
        """What kernels must agree in to share landmarks: nothing, their columns, everything."""
        if self.landmarks == "leverage":
            return id(kernel)
        columns = getattr(kernel, "columns_", None)
        return None if self.landmarks == "uniform" or columns is None else columns.tobytes()


class RandomFourier(Approximation):
    """Random frequencies for Gaussian and Laplacian kernels, landmarks for the others. Rahimi & Recht (2007).

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
        shape = (kernel._view(_safe_indexing(X, np.arange(1))).shape[1], max(rank // 2, 1))
        if type(kernel) is RBF:
            return FourierMap(kernel, (2.0 * kernel.gamma_) ** 0.5 * rng.normal(size=shape))
        if type(kernel) is Laplacian:
            return FourierMap(kernel, kernel.gamma_ * rng.standard_cauchy(shape))
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
