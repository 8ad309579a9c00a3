"""The kernels of one fit: their training matrices, normalised, and predictions from them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .._typing import FloatArray, IntArray
from ..kernels import Normalization, check_gram, resolve_normalization
from .dense import DenseGram
from .sources import KernelSource

#: work spent on testing whether given matrices are positive semidefinite, for all kernels together
PSD_FLOPS = 1e8


class Dictionary:
    """M kernels normalised on the training samples.

    Parameters
    ----------
    source : KernelSource
    normalize : str or None
        Name of the normalisation.
    sample_weight : ndarray of shape (n,), optional
    memory_limit : int, optional
        Bytes that the matrices may take.
    check : bool, default=True
        Whether to check the matrices; parts of matrices checked before need not be.

    Attributes
    ----------
    gram : DenseGram
        The live kernels on the training samples.
    live : ndarray of int
        Kernels with variance; the others get weight 0 and a warning.
    """

    def __init__(
        self,
        source: KernelSource,
        normalize: str | None,
        sample_weight: FloatArray | None = None,
        memory_limit: int | None = None,
        check: bool = True,
    ) -> None:
        self.source = source
        self.names = source.names
        _check_memory(len(self.names), source.n_samples, memory_limit)
        self.normalizations: list[Normalization] = []
        matrices = []
        for m in range(len(self.names)):
            K = source.train(m)
            if check:
                check_kernel_matrix(K, f"kernel {self.names[m]!r}", PSD_FLOPS / len(self.names))
            self.normalizations.append(resolve_normalization(normalize).fit(K, sample_weight))
            matrices.append(self.normalizations[-1].train(K))
        scales = np.array([rule.scale_ for rule in self.normalizations])
        self.live = self._with_variance(scales)
        self.gram = DenseGram([matrices[m] for m in self.live], scales[self.live])

    def _with_variance(self, scales: FloatArray) -> IntArray:
        live = np.flatnonzero(scales > 0)
        if len(live) == 0:
            raise ValueError("kernels: none of them varies over the training samples; choose others.")
        if len(live) < len(scales):
            dead = ", ".join(self.names[m] for m in np.flatnonzero(scales <= 0)[:5])
            warnings.warn(
                f"kernels without variance on the training samples get weight 0: {dead}.", stacklevel=4
            )
        return live

    def all_weights(self, weights: FloatArray) -> FloatArray:
        """Weights of all kernels, from those of the live ones (..., n_live) -> (..., M)."""
        full = np.zeros((*weights.shape[:-1], len(self.names)))
        full[..., self.live] = weights
        return full

    def expansion(self, weights: FloatArray, alpha: FloatArray) -> Expansion:
        """The functions f_j = sum_m weights[j, m] K_m alpha[:, j], ready to evaluate on new data.

        Parameters
        ----------
        weights : ndarray of shape (J, M)
        alpha : ndarray of shape (n, J)
        """
        terms = []
        for m in np.flatnonzero(weights.any(axis=0)):
            coef, offset = self.normalizations[m].expand(alpha)
            factor = weights[:, m] * self.normalizations[m].scale_
            terms.append(_Term(int(m), self.normalizations[m], coef * factor, offset * factor))
        return Expansion(self.source, terms, alpha.shape[1])


class _Term:
    """One kernel's share of an expansion: row_scale(x) * (K(x, .) coef + offset)."""

    def __init__(self, m: int, rule: Normalization, coef: FloatArray, offset: FloatArray) -> None:
        self.m, self.rule, self.coef, self.offset = m, rule, coef, offset

    def __call__(self, source: KernelSource, X: Any) -> FloatArray:
        values = source.cross(self.m, X) @ self.coef + self.offset
        if self.rule.needs_diag:
            values *= np.reshape(self.rule.row_scale(source.diag(self.m, X)), (-1, 1))
        return values


class Expansion:
    """Functions sum_m d_m k_m(x, .) alpha on new data, by live kernels and support vectors only.

    Keeps the training samples with a non-zero coefficient, drops the others, and evaluates new
    data in blocks of rows whose kernel values take at most `block_bytes`.
    """

    block_bytes = 1 << 26

    def __init__(self, source: KernelSource, terms: list[_Term], n_functions: int) -> None:
        used = np.zeros(source.n_samples, dtype=bool)
        for term in terms:
            used |= term.coef.any(axis=1)
        self.support = np.flatnonzero(used) if used.any() else np.arange(1)
        for term in terms:
            term.coef = term.coef[self.support]
        source.restrict(self.support)
        self.source, self.terms, self.n_functions = source, terms, n_functions

    def __call__(self, X: Any) -> FloatArray:
        """Values of the functions on new data, shape (n_new, J)."""
        n = X.shape[0]
        step = max(1, self.block_bytes // (8 * len(self.support)))
        out = np.zeros((n, self.n_functions))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            block = self.source.rows(X, part)
            for term in self.terms:
                out[part] += term(self.source, block)
        return out


def check_kernel_matrix(K: FloatArray, name: str, flops: float) -> None:
    """Raise unless K is square, finite, symmetric and, as far as `flops` allow, positive semidefinite.

    Every principal part of a positive semidefinite matrix is one: the largest evenly spread part
    that can be afforded is factored. What slips through shows as alpha' K alpha < 0 in the fit.
    """
    check_gram(K, name)
    size = max(2, int((3.0 * flops) ** (1.0 / 3.0)))
    rows = np.unique(np.linspace(0, len(K) - 1, min(size, len(K))).astype(int))
    part = K[np.ix_(rows, rows)].astype(np.float64)
    slack = 10.0 * np.sqrt(np.finfo(K.dtype).eps) * max(float(part.diagonal().max()), 1e-300)
    part.flat[:: len(part) + 1] += slack
    if lapack.dpotrf(part, overwrite_a=True)[1] != 0:
        raise ValueError(
            f"{name} is not positive semidefinite: clip its negative eigenvalues "
            "(numpy.linalg.eigh), add a constant to its diagonal, or leave it out."
        )


def _check_memory(n_kernels: int, n_samples: int, limit: int | None) -> None:
    needed = (n_kernels + 2) * n_samples**2 * 8
    if limit is not None and needed > limit:
        raise MemoryError(
            f"{n_kernels} kernels on {n_samples} samples need {_size(needed)}, "
            f"memory_limit allows {_size(limit)}: raise it, or use fewer kernels or samples."
        )


def _size(count: float) -> str:
    """Bytes in the largest unit that shows them."""
    power = next((power for power in (4, 3, 2, 1) if count >= 1000**power), 0)
    return f"{count / 1000**power:.3g} {('B', 'KB', 'MB', 'GB', 'TB')[power]}"


def parse_memory(limit: int | float | str | None) -> int | None:
    """Bytes of a limit such as 2_000_000_000, "2GB" or "500 MB".

    Examples
    --------
    >>> parse_memory("1.5GB")
    1500000000
    """
    if limit is None:
        return None
    units = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "KB": 1e3, "B": 1.0}
    text = str(limit).strip().upper()
    unit = next((unit for unit in units if text.endswith(unit)), "")
    try:
        size = float(text.removesuffix(unit)) * units.get(unit, 1.0)
    except ValueError:
        size = -1.0
    if not 0 < size < np.inf:
        raise ValueError(f"memory_limit={limit!r}: expected bytes, or text such as '2GB'.")
    return int(size)
