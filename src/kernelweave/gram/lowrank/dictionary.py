"""Kernels of one fit as low-rank factors, and how much of them the factors miss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state

from ..._typing import FloatArray
from .._workers import map_tiles
from ..blocks import tiles
from ..choice import free_share, show_bytes
from ..dictionary import all_kernels, with_variance
from ..predictor import Predictor
from ..sources import FeatureSource
from ..terms import FactorTerm
from .approximations import resolve_approximation
from .engine import LowRankGram
from .factors import BLOCK_BYTES, ComputedFactors, Factors, StoredFactors
from .maps import FeatureMap, Features, Moments, check_rule, looked_at, settle

#: most kernel values computed to know an error exactly, for all kernels together
MOST_PAIRS = 2e8

#: values of one kernel computed at a time
BLOCK_PAIRS = 1 << 22

#: `diagonal_sums` of features and alpha
DiagonalSums = Callable[..., FloatArray]

#: samples on whose pairs the error of random features is estimated
SAMPLE = 500


def relative_errors(features: list[Features], X: Any) -> FloatArray:
    """How much of each kernel is missing, roughly between 0 and 1.

    For kernels approximated from below (Nystroem) this is tr(K - Z Z') / tr(K) over the training samples,
    which also bounds the largest eigenvalue of the difference. For random features it is an estimate, ||K - Z
    Z'|| / ||K|| (Frobenius) on some of the samples.
    """
    return np.array([_share(one, X) for one in features])


def _share(one: Features, X: Any) -> float:
    if one.map.exact or one.map.below:
        return one.error / one.size if one.size > 0 else 0.0
    some = _safe_indexing(X, np.unique(np.linspace(0, X.shape[0] - 1, SAMPLE).astype(int)))
    root = _sphere(one, some)
    K, Z = root[:, None] * one.map.kernel(some) * root, one.raw(some)
    return float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))


def missing_energy(
    features: list[Features], X: Any, alpha: FloatArray, sums: DiagonalSums | None = None
) -> FloatArray:
    """Upper bounds of scale alpha' E alpha, E = K - Z Z', for several kernels.

    Exact where the samples with a dual variable have few enough pairs to compute. Otherwise, since E is
    positive semidefinite, its diagonal e on these samples gives a bound:

        alpha' E alpha <= min((sum_i |alpha_i| sqrt(e_i))^2, ||alpha||^2 sum_i e_i)

    Infinite where no bound is known: for random features, and for centred features when alpha does not sum to
    0.

    Parameters
    ----------
    features : list of Features
    X : table of shape (n, n_features)
        The training samples.
    alpha : ndarray of shape (n, c)
    sums : callable, optional
        `diagonal_sums` over all samples, if other processes have them.
    """
    support = np.flatnonzero(alpha.any(axis=1))
    few = len(support) ** 2 * len(features) <= MOST_PAIRS
    off = np.abs(alpha.sum(axis=0)) > 1e-9 * np.abs(alpha).sum(axis=0)
    found = np.full(len(features), np.inf)
    found[[one.map.exact for one in features]] = 0.0
    known = [one.map.below and (one.mean is None or not off.any()) for one in features]
    open_ = np.flatnonzero(np.array(known, dtype=bool) & (found > 0))
    if few:
        rows = _safe_indexing(X, support)
        energies = [_from_pairs(features[m], rows, alpha[support]) for m in open_]
    else:
        totals = (sums or partial(diagonal_sums, X=X))([features[m] for m in open_], alpha=alpha)
        whole = float((alpha**2).sum())
        energies = [min(float((total[:-1] ** 2).sum()), whole * float(total[-1])) for total in totals]
    found[open_] = [features[m].scale * max(e, 0.0) for m, e in zip(open_, energies, strict=True)]
    return found


def _from_pairs(one: Features, rows: Any, alpha: FloatArray) -> float:
    """alpha' E alpha itself."""
    weighted, total = _sphere(one, rows)[:, None] * alpha, 0.0
    for some in tiles(len(alpha), max(1, BLOCK_PAIRS // len(alpha))):
        total += float((weighted[some] * (one.map.kernel(_safe_indexing(rows, some), rows) @ weighted)).sum())
    return total - float(((one.raw(rows).astype(np.float64).T @ alpha) ** 2).sum())


def diagonal_sums(features: list[Features], alpha: FloatArray, X: Any) -> FloatArray:
    """sum_i |alpha_i| sqrt(e_i) of every column, then sum_i e_i, over the rows with a dual variable.

    The rows are read in blocks; sums over parts of the rows can be added.

    Returns
    -------
    sums : ndarray of shape (number of features, c + 1)
    """
    support, found = np.flatnonzero(alpha.any(axis=1)), np.zeros((len(features), alpha.shape[1] + 1))
    widest = max([X.shape[1], *(one.map.rank for one in features)])
    for some in tiles(len(support), max(1, BLOCK_PAIRS // widest)):
        block, a = _safe_indexing(X, support[some]), np.abs(alpha[support[some]])
        for one, total in zip(features, found, strict=True):
            Z = one.raw(block).astype(np.float64)
            e = np.maximum(one.diagonal(block) - np.einsum("ij,ij->i", Z, Z), 0.0)
            total += np.append(np.sqrt(e) @ a, e.sum())
    return found


def _sphere(one: Features, rows: Any) -> FloatArray:
    diagonal = np.asarray(one.map.kernel.diag(rows), dtype=np.float64)
    if not one.spherical:
        return np.ones(len(diagonal))
    return np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)


#: bytes of factors from which they are stored in single precision
SINGLE_FROM = 1 << 30

#: bytes per sample that a solver takes besides the factors
SOLVER_BYTES = 200


class LowRankDictionary:
    """M kernels as features, normalised on the training samples.

    Parameters
    ----------
    source : FeatureSource
    approximation : str or Approximation
    rank : int
        Most features per kernel.
    normalize : str or None
    sample_weight : ndarray of shape (n,), optional
    memory_limit : int, optional
        Bytes that the factors and a solver may take.
    random_state : int, RandomState or None

    Attributes
    ----------
    gram : LowRankGram
        The live kernels on the training samples.
    features : list of Features
        Of all kernels.
    """

    def __init__(
        self,
        source: FeatureSource,
        approximation: Any,
        rank: int,
        normalize: str | None,
        sample_weight: FloatArray | None = None,
        memory_limit: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.source, self.names = source, source.names
        spherical = check_rule(normalize) == "spherical"
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        maps = self._maps(resolve_approximation(approximation), rank, rng)
        self.features = [Features(phi, spherical) for phi in maps]
        factors = self._factors(normalize, sample_weight, memory_limit)
        scales = np.array([one.scale for one in self.features])
        self.live = with_variance(scales, self.names)
        fine = None if factors.dtype == np.float64 else self._fine_factors
        self.gram = LowRankGram(factors.take(None, self.live.tolist()), scales[self.live], fine)

    def _maps(self, approximation: Any, rank: int, rng: Any) -> list[FeatureMap]:
        """Feature maps of all kernels."""
        found: list[FeatureMap] = approximation.maps(list(self.source.kernels), self.source.X, rank, rng)
        return found

    def _plan(self, memory_limit: int | None) -> tuple[Any, bool]:
        """Precision of the factors, and whether they are kept."""
        n, width = self.source.n_samples, sum(one.map.rank for one in self.features)
        limit = free_share() if memory_limit is None else memory_limit
        room = np.inf if limit is None else limit - SOLVER_BYTES * n - 32 * width**2
        what = f"{len(self.names)} kernels of rank up to {max(one.map.rank for one in self.features)}"
        for dtype, most in ((np.float64, min(room, SINGLE_FROM)), (np.float32, room)):
            needed = np.dtype(dtype).itemsize * n * width
            if needed <= most:
                self.gram_reason = (
                    f"{what}: factors of {show_bytes(needed)} are in memory as {dtype.__name__}."
                )
                return dtype, True
        self.gram_reason = f"{what}: factors of {show_bytes(4 * n * width)} are computed again in every pass."
        return np.float32, False

    def _factors(self, normalize: Any, weight: FloatArray | None, memory_limit: int | None) -> Factors:
        """One pass over the data: the factors, if they are kept, and the constants of the normalisation."""
        n, X = self.source.n_samples, self.source.X
        dtype, stored = self._plan(memory_limit)
        share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        arrays, moments = one_pass(self.features, X, [share] * len(self.features), dtype, stored)
        seen = looked_at(normalize, X, weight)
        for one, found in zip(self.features, moments, strict=True):
            settle(one, normalize, found, seen)
        return factors_of(self.features, X, dtype, arrays)

    def _fine_factors(self) -> Factors:
        """Factors of the live kernels in double precision, computed again in every pass."""
        return ComputedFactors([self.features[m] for m in self.live], self.source.X, np.float64)

    def all_weights(self, weights: FloatArray) -> FloatArray:
        """Weights of all kernels, from those of the live ones (..., n_live) -> (..., M)."""
        return all_kernels(weights, self.live, len(self.names))

    def errors(self) -> FloatArray:
        """How much of each kernel its features miss."""
        return relative_errors(self.features, self.source.X)

    def missing(self, alpha: FloatArray) -> FloatArray:
        """Upper bounds of what the features of the live kernels miss of alpha' K_m alpha."""
        live = [self.features[m] for m in self.live]
        return missing_energy(live, self.source.X, alpha, self.diagonal_sums)

    def diagonal_sums(self, features: list[Features], alpha: FloatArray) -> FloatArray:
        """`diagonal_sums` over all rows."""
        return diagonal_sums(features, alpha, self.source.X)

    def coefficients(
        self, weights: FloatArray, alpha: FloatArray, known: dict[int, FloatArray] | None
    ) -> list[FloatArray]:
        """w_m of every live kernel, shape (rank, c): the known one, or d_m scale_m Z_m' alpha.

        Parameters
        ----------
        weights : ndarray of shape (n_live,)
        alpha : ndarray of shape (n, c)
        known : dict or None
            Known coefficients, by position among the live kernels.
        """
        ranks = self.gram.factors.ranks
        if known is not None:
            return [known.get(k, np.zeros((rank, alpha.shape[1]))) for k, rank in enumerate(ranks)]
        found = self.gram.factors.adjoint(alpha, range(len(ranks)))
        return [d * part for d, part in zip(weights * self.gram.scales, found, strict=True)]

    def predictor(self, models: Sequence[list[FloatArray]], intercept: FloatArray) -> Predictor:
        """The functions of several models, from the coefficients of each, to evaluate on new data."""
        joined = [np.hstack(parts) for parts in zip(*models, strict=True)]
        terms = [
            FactorTerm(int(m), self.features[m], coef)
            for m, coef in zip(self.live, joined, strict=True)
            if coef.any()
        ]
        # landmarks are in the features: no training rows are needed
        alpha = np.zeros((self.source.n_samples, len(intercept)))
        return Predictor.of(self.source, terms, alpha, intercept)


def one_pass(
    features: list[Features], X: Any, shares: Sequence[FloatArray], dtype: Any, stored: bool
) -> tuple[list[FloatArray] | None, list[Moments]]:
    """Features of all rows before they are centred, if these are to be `stored`, and their moments.

    Parameters
    ----------
    features : list of Features
    X : table of shape (n, n_features)
    shares : sequence of ndarray of shape (n,)
        Weights of the rows in the moments of each kernel.
    dtype : dtype
    stored : bool
    """
    n = X.shape[0]
    arrays = [np.empty((n if stored else 0, one.map.rank), dtype) for one in features]
    widest = max(one.map.rank for one in features)
    blocks = tiles(n, max(1, BLOCK_BYTES // (32 * max(widest, X.shape[1]))))

    def fill(rows: slice) -> list[Moments]:
        block, found = _safe_indexing(X, rows), []
        for one, Z, share in zip(features, arrays, shares, strict=True):
            values, moments = one.raw(block), Moments(np.zeros(one.map.rank))
            moments.add(values, one.diagonal(block), share[rows])
            if stored:
                Z[rows] = values
            found.append(moments)
        return found

    found = [sum_of(several) for several in zip(*map_tiles(fill, blocks), strict=True)]
    return (arrays if stored else None), found


def factors_of(features: list[Features], X: Any, dtype: Any, arrays: list[FloatArray] | None) -> Factors:
    """Factors from stored features, centred where that is asked for; or factors that are computed."""
    if arrays is None:
        return ComputedFactors(features, X, dtype)
    for one, Z in zip(features, arrays, strict=True):
        if one.mean is not None:
            Z -= one.mean.astype(dtype)
    return StoredFactors(arrays)


def sum_of(moments: Sequence[Moments]) -> Moments:
    """Moments of several parts, added up."""
    first = np.sum([part.first for part in moments], axis=0)
    return Moments(first, sum(part.square for part in moments), sum(part.diagonal for part in moments))
