"""The kernels of one fit as factors: landmarks chosen, features normalised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state

from ..._typing import FloatArray
from .._workers import map_tiles
from ..choice import free_share
from ..dictionary import all_kernels, with_variance
from ..memory import show_bytes
from ..predictor import Predictor
from ..sources import FeatureSource
from ..terms import FactorTerm
from .approximations import resolve_approximation
from .engine import LowRankGram
from .error import diagonal_sums, missing_energy, relative_errors
from .factors import BLOCK_BYTES, ComputedFactors, Factors, StoredFactors, parts
from .features import Features, Moments, check_rule, settle

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
        maps = resolve_approximation(approximation).maps(list(source.kernels), source.X, rank, rng)
        self.features = [Features(phi, spherical) for phi in maps]
        factors = self._factors(normalize, sample_weight, memory_limit)
        scales = np.array([one.scale for one in self.features])
        self.live = with_variance(scales, self.names)
        fine = None if factors.dtype == np.float64 else self._fine_factors
        self.gram = LowRankGram(factors.take(None, self.live.tolist()), scales[self.live], fine)

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
        self.gram_reason = f"{what}: factors of {show_bytes(4 * n * width)} are computed anew in every pass."
        return np.float32, False

    def _factors(self, normalize: Any, weight: FloatArray | None, memory_limit: int | None) -> Factors:
        """One pass over the data: the factors, if they are kept, and the constants of the normalisation."""
        n, X = self.source.n_samples, self.source.X
        dtype, stored = self._plan(memory_limit)
        share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        arrays, moments = one_pass(self.features, X, share, dtype, stored)
        for one, found in zip(self.features, moments, strict=True):
            settle(one, normalize, found)
        return factors_of(self.features, X, dtype, arrays)

    def _fine_factors(self) -> Factors:
        """Factors of the live kernels in double precision, computed anew in every pass."""
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
        """`error.diagonal_sums` over all rows."""
        return diagonal_sums(features, alpha, self.source.X)

    def coefficients(
        self, weights: FloatArray, alpha: FloatArray, known: dict[int, FloatArray] | None
    ) -> list[FloatArray]:
        """w_m of every live kernel, shape (rank, c): those known, or d_m scale_m Z_m' alpha.

        Parameters
        ----------
        weights : ndarray of shape (n_live,)
        alpha : ndarray of shape (n, c)
        known : dict or None
            By position among the live kernels.
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
        # landmarks are in the features: of the training rows none is needed
        alpha = np.zeros((self.source.n_samples, len(intercept)))
        return Predictor.of(self.source, terms, alpha, intercept)


def one_pass(
    features: list[Features], X: Any, share: FloatArray, dtype: Any, stored: bool
) -> tuple[list[FloatArray] | None, list[Moments]]:
    """Features of all rows before they are centred, if they are to be `stored`, and their moments.

    Parameters
    ----------
    features : list of Features
    X : table of shape (n, n_features)
    share : ndarray of shape (n,)
        Weights of the rows in the moments.
    dtype : dtype
    stored : bool
    """
    n = X.shape[0]
    arrays = [np.empty((n if stored else 0, one.map.rank), dtype) for one in features]
    widest = max(one.map.rank for one in features)
    blocks = parts(n, max(1, BLOCK_BYTES // (32 * max(widest, X.shape[1]))))

    def fill(rows: slice) -> list[Moments]:
        block, found = _safe_indexing(X, rows), []
        for one, Z in zip(features, arrays, strict=True):
            values, moments = one.raw(block), Moments(np.zeros(one.map.rank))
            moments.add(values, one.diagonal(block), share[rows])
            if stored:
                Z[rows] = values
            found.append(moments)
        return found

    found = [sum_of(several) for several in zip(*map_tiles(fill, blocks), strict=True)]
    return (arrays if stored else None), found


def factors_of(features: list[Features], X: Any, dtype: Any, arrays: list[FloatArray] | None) -> Factors:
    """Factors from features that were stored, which are centred where that is asked for, or computed ones."""
    if arrays is None:
        return ComputedFactors(features, X, dtype)
    for one, Z in zip(features, arrays, strict=True):
        if one.mean is not None:
            Z -= one.mean.astype(dtype)
    return StoredFactors(arrays)


def sum_of(moments: Sequence[Moments]) -> Moments:
    """Moments of parts, together."""
    first = np.sum([part.first for part in moments], axis=0)
    return Moments(first, sum(part.square for part in moments), sum(part.diagonal for part in moments))
