"""Where the parameters of a kernel may lie, so that it is positive semidefinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..._typing import FloatArray, IntArray


class Box(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """lower <= d <= upper, with one bound per parameter or one for all.

    ``Box()`` is d >= 0, the domain of most kernels; ``Box(lower=-numpy.inf)`` leaves d free.

    Parameters
    ----------
    lower : float or array-like, default=0.0
        Below 0 only where the kernel allows either sign.
    upper : float or array-like, optional
        Unbounded by default.

    Examples
    --------
    >>> import numpy as np
    >>> Box(upper=[1.0, 2.0]).project(np.array([3.0, -1.0]))
    array([1., 0.])
    """

    #: every parameter is projected on its own
    separable = True

    def __init__(self, lower: Any = 0.0, upper: Any = None) -> None:
        self.lower = lower
        self.upper = upper

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        lower, upper = self.bounds(len(d))
        return np.clip(d, lower, upper)

    def bounds(self, n_parameters: int) -> tuple[FloatArray, FloatArray]:
        """Both bounds, one per parameter."""
        upper = np.inf if self.upper is None else self.upper
        try:
            low, high = (
                np.broadcast_to(np.asarray(side, dtype=np.float64), n_parameters)
                for side in (self.lower, upper)
            )
        except ValueError:
            raise ValueError(
                f"Box: bounds must be numbers, or one for each of the {n_parameters} parameters."
            ) from None
        if not (low <= high).all():
            raise ValueError(
                "Box: bounds must satisfy 0 <= lower <= upper, or lower <= upper where the kernel allows "
                "either sign."
            )
        return low, high


class Semidefinite:
    """The cone of positive semidefinite matrices A of size p x p, d = (A_kk; sqrt(2) A_kl for k < l).

    The norm of d is the Frobenius norm of A, so the nearest point has the negative eigenvalues set to zero.

    Parameters
    ----------
    size : int

    Examples
    --------
    >>> import numpy as np
    >>> cone = Semidefinite(2)
    >>> cone.matrix(cone.project(np.array([1.0, 1.0, 2.0 * np.sqrt(2.0)]))).round(4)  # eigenvalues 3 and -1
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """

    separable = False

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Rows and columns of the entries above the diagonal, in the order of d."""
        return np.triu_indices(self.size, k=1)

    def matrix(self, d: FloatArray) -> FloatArray:
        """A of d."""
        A = np.zeros((self.size, self.size))
        A[self.pairs] = d[self.size :] / np.sqrt(2.0)
        A += A.T
        np.fill_diagonal(A, d[: self.size])
        return A

    def vector(self, A: FloatArray) -> FloatArray:
        """d of A; of a gradient in A, that in d."""
        return np.concatenate([A.diagonal(), np.sqrt(2.0) * A[self.pairs]])

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        values, vectors = np.linalg.eigh(self.matrix(d))
        return d if values[0] >= 0.0 else self.vector((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def bounds(self, n_parameters: int) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold in the cone: entries of the diagonal are not negative."""
        lower = np.where(np.arange(n_parameters) < self.size, 0.0, -np.inf)
        return lower, np.full(n_parameters, np.inf)


class Joined:
    """Domains of vectors that stand one after another.

    Parameters
    ----------
    domains : list of Box, Semidefinite or Joined
    sizes : list of int
        How many parameters each has.

    Examples
    --------
    >>> import numpy as np
    >>> Joined([Box(), Box(lower=-np.inf)], [1, 2]).project(np.array([-1.0, -2.0, 3.0]))
    array([ 0., -2.,  3.])
    """

    def __init__(self, domains: Sequence[Any], sizes: Sequence[int]) -> None:
        self.domains, self.sizes = domains, sizes

    @property
    def separable(self) -> bool:
        """Whether every parameter is projected on its own."""
        return all(domain.separable for domain in self.domains)

    def project(self, d: FloatArray) -> FloatArray:
        """The nearest point of the set."""
        parts = np.split(d, np.cumsum(self.sizes)[:-1])
        return np.concatenate([one.project(part) for one, part in zip(self.domains, parts, strict=True)])

    def bounds(self, n_parameters: int) -> tuple[FloatArray, FloatArray]:
        """Bounds that hold in the set."""
        found = [one.bounds(size) for one, size in zip(self.domains, self.sizes, strict=True)]
        lower, upper = zip(*found, strict=True)
        return np.concatenate(lower), np.concatenate(upper)
