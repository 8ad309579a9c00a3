"""Feature maps made comparable: the normalisations of kernels, on their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...kernels import resolve_normalization
from ...kernels.base import in_double
from .maps import FeatureMap

#: variance below this share of the mean square is rounding
ROUNDING = 1e-9


@dataclass
class Features:
    """z(x) of one kernel: its features, on the sphere or centred where that is asked for.

    z(x) = phi(x) / sqrt(k(x, x)) - mean,  k'(x, z) = scale z(x)'z(z)

    Attributes
    ----------
    map : FeatureMap
    spherical : bool
    mean : ndarray of shape (rank,), or None
    scale : float
        0.0 for a kernel without variance on the training samples.
    error : float
        Mean over the training samples of what is missing on the diagonal: k(x, x) - phi(x)'phi(x), of
        kernels on the sphere.
    size : float
        Mean of k(x, x) of the same.
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
        """k(x, x) of every row, of the kernel on the sphere where that is asked for."""
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


def settle(features: Features, normalize: Any, moments: Moments) -> None:
    """Set the constants of a normalisation from the moments of the training samples."""
    name = resolve_normalization(normalize).name
    spread = moments.square - float(moments.first @ moments.first)
    moves = spread > ROUNDING * moments.square
    features.mean = moments.first if name == "center" else None
    features.scale = {
        "none": float(moments.square > 0),
        "trace": 1.0 / moments.square if moments.square > 0 else 0.0,
        "spherical": float(moves),
    }.get(name, 1.0 / spread if moves else 0.0)
    features.size = moments.diagonal
    features.error = 0.0 if features.map.exact else max(moments.diagonal - moments.square, 0.0)


def check_rule(normalize: Any) -> str:
    """The name of a normalisation that features can follow."""
    rule = resolve_normalization(normalize)
    if rule.name not in ("none", "trace", "variance", "spherical", "center"):
        raise ValueError(f"normalize={normalize!r} is not known to low-rank kernels: use 'variance'.")
    return rule.name
