"""One kernel on the training samples, in the form cheapest to score: a thin factor, or a Cholesky factor."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from ..._typing import FloatArray
from ...gram._workers import mirror_lower

#: what a thin factor may leave out, as a share of the ridge: gains change by less than that share
LEFT_OUT = 1e-10

#: pivots after which the decay of the trace is first extrapolated
FIRST_LOOK = 8


class LowRank:
    """A kernel K = Phi Phi'.

    Parameters
    ----------
    Phi : ndarray of shape (n, r)
    mean : ndarray of shape (n,)
        Mean of the kernel, before centring, between each sample and all training samples.
    """

    def __init__(self, Phi: FloatArray, mean: FloatArray) -> None:
        self.Phi, self.mean = Phi, mean

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return 8 * (self.Phi.size + self.mean.size)

    def captured(self, R: FloatArray, shift: float) -> float:
        """tr(R' K (K + shift I)^-1 R) = tr(P' (Phi'Phi + shift I)^-1 P) with P = Phi'R."""
        return float(captured_by_factors(self.Phi.T[None], inverse_roots(self.Phi.T[None], shift), R)[0])

    def add_to(self, total: FloatArray, weight: float = 1.0) -> None:
        """total += weight K."""
        total += weight * (self.Phi @ self.Phi.T)

    def quad(self, A: FloatArray) -> float:
        """tr(A' K A)."""
        return float(((self.Phi.T @ A) ** 2).sum())


class Full:
    """A kernel of high rank, with the Cholesky factor of K + shift I in the same memory.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Overwritten: its lower triangle (in column order) stays, the factor goes above.
    mean : ndarray of shape (n,)
        As for `LowRank`.
    name : str
        For error messages.
    """

    def __init__(self, K: FloatArray, mean: FloatArray, name: str) -> None:
        # a symmetric matrix in row order is the same matrix in column order
        self.packed = K if K.flags.f_contiguous else K.T if K.flags.c_contiguous else np.asfortranarray(K)
        self.diagonal = self.packed.diagonal().copy()
        self.mean, self.name = mean, name
        self.shift: float | None = None

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return 8 * (self.packed.size + 2 * self.mean.size)

    def factor(self, shift: float) -> None:
        """Write U with U'U = K + shift I onto the upper triangle."""
        if self.shift is not None:
            mirror_lower(self.packed)
        np.fill_diagonal(self.packed, self.diagonal + shift)
        self.packed, info = lapack.dpotrf(self.packed, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            raise ValueError(
                f"{self.name} is not positive semidefinite, or alpha is too small for it: clip its negative "
                "eigenvalues (numpy.linalg.eigh), leave it out, or raise alpha."
            )
        self.shift = shift

    def captured(self, R: FloatArray, shift: float) -> float:
        """tr(R' K (K + shift I)^-1 R) = ||R||^2 - shift ||U'^-1 R||^2."""
        if self.shift != shift:
            self.factor(shift)
        solved = blas.dtrsm(1.0, self.packed, R, lower=0, trans_a=1)
        return max(float((R**2).sum()) - shift * float((solved**2).sum()), 0.0)

    def add_to(self, total: FloatArray, weight: float = 1.0) -> None:
        """total += weight K on and below the diagonal; what comes above it has no meaning."""
        total += self.packed if weight == 1.0 else weight * self.packed
        total.flat[:: len(total) + 1] += weight * (self.diagonal - self.packed.diagonal())

    def quad(self, A: FloatArray) -> float:
        """tr(A' K A)."""
        product = blas.dsymm(1.0, self.packed, A, lower=1)
        product += (self.diagonal - self.packed.diagonal())[:, None] * A
        return float((A * product).sum())


Block = LowRank | Full


def cholesky(A: FloatArray) -> FloatArray:
    """Lower Cholesky factors of matrices that are positive definite but for rounding."""
    try:
        return np.linalg.cholesky(A)
    except np.linalg.LinAlgError as error:
        raise ValueError("alpha is too small: its ridge drowns in rounding; raise it.") from error


def inverse_roots(stack: FloatArray, shift: float) -> FloatArray:
    """L^-1 with L L' = Phi'Phi + shift I, for factors Phi' of shape (m, r, n); shape (m, r, r)."""
    products = stack @ stack.transpose(0, 2, 1)
    products[:, np.arange(stack.shape[1]), np.arange(stack.shape[1])] += shift
    return np.linalg.inv(cholesky(products))


def captured_by_factors(stack: FloatArray, roots: FloatArray, R: FloatArray) -> FloatArray:
    """||L^-1 Phi'R||^2 of every factor, by one product for all of them; shape (m,)."""
    m, r, n = stack.shape
    projected = (stack.reshape(m * r, n) @ R).reshape(m, r, -1)
    return ((roots @ projected) ** 2).sum(axis=(1, 2))


def thin_factor(K: FloatArray, shift: float, max_rank: int) -> FloatArray | None:
    """Phi (n, r) with K - Phi Phi' positive semidefinite of trace <= 1e-10 shift, or None if r > `max_rank`.

    Cholesky factorization, largest pivot first, of a matrix whose eigenvalues decay fast: n r^2
    operations. It gives up as soon as the trace left falls too slowly to get there.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    shift : float
        The smallest ridge lambda l the factor will be used with.
    max_rank : int
    """
    left = K.diagonal().copy()
    start, target = float(left.sum()), LEFT_OUT * shift
    if target < 10.0 * np.finfo(K.dtype).eps * len(K) * float(left.max(initial=0.0)):
        return None  # rounding would hide what is left
    Phi = np.empty((len(K), max_rank), order="F")
    for k in range(max_rank + 1):
        trace = float(left.sum())
        if trace <= target:
            return Phi[:, :k].copy(order="F")
        if k == max_rank or (k >= FIRST_LOOK and _too_slow(start, trace, target, k / max_rank)):
            break
        pivot = int(left.argmax())
        column = (K[:, pivot] - Phi[:, :k] @ Phi[pivot, :k]) / np.sqrt(left[pivot])
        Phi[:, k] = column
        left = np.maximum(left - column**2, 0.0)
    return None


def _too_slow(start: float, trace: float, target: float, share: float) -> bool:
    """Whether the trace, falling geometrically, misses its target when all pivots are used."""
    return np.log(start / trace) < share * np.log(start / target)
