"""Low-rank kernels of samples that lack views: features masked, or regressed on those of other views.

Let Z_m be the features of kernel m, centred on the samples O_m that have it and 0 for the others, and Z_S the
features of the other views side by side. Then the completion of `gram.missing` is a ridge regression of
features:

    S_rO (S_OO + lambda W^-1)^-1 Z_m = Z_S,r (Z_S,O' W Z_S,O + lambda I)^-1 Z_S,O' W Z_m,O

for S = Z_S Z_S'. It needs memory for the features, and n R^2 operations for R features of other views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._typing import BoolArray, FloatArray, IntArray
from ..blocks import tiles
from ..missing import RIDGES, GapFactorTerm, GapSource
from ..predictor import Predictor
from ..terms import FactorTerm
from .dictionary import LowRankDictionary, factors_of, one_pass
from .factors import Factors, StoredFactors
from .maps import FeatureMap, looked_at, settle

#: samples of a view whose leave-one-out error chooses its ridge
MOST_LEFT_OUT = 2000

#: rows at a time
ROWS = 1 << 14


class GapLowRankDictionary(LowRankDictionary):
    """M kernels as features, on samples some of which lack some of the views.

    Parameters
    ----------
    missing : {"mask", "complete"}
    source, approximation, rank, normalize, sample_weight, memory_limit, random_state
        As in `LowRankDictionary`.
    """

    def __init__(self, missing: str, source: Any, *args: Any, **kwargs: Any) -> None:
        self.how, self.gaps = missing, source.gaps
        super().__init__(source, *args, **kwargs)

    def _maps(self, approximation: Any, rank: int, rng: Any) -> list[FeatureMap]:
        """The maps of each view, from the samples that have it; its landmarks are among these."""
        found: dict[int, FeatureMap] = {}
        for members, own in self._views():
            kernels = [self.source.kernels[m] for m in members]
            X = self.source.X[np.flatnonzero(own)]
            found |= dict(zip(members, approximation.maps(kernels, X, rank, rng), strict=True))
        return [found[m] for m in range(len(self.names))]

    def _views(self) -> Iterator[tuple[list[int], BoolArray]]:
        """Kernels of every view, and which samples have it."""
        for view in dict.fromkeys(self.gaps.views):
            members = [m for m, own in enumerate(self.gaps.views) if own == view]
            yield members, self.gaps.observed[:, members[0]]

    def _factors(self, normalize: Any, weight: FloatArray | None, memory_limit: int | None) -> Factors:
        n, X = self.source.n_samples, self.source.X
        dtype, stored = self._plan(memory_limit)
        if not stored:
            raise MemoryError(
                "features of samples that lack views are kept in memory, and memory_limit has no room for "
                "them: raise it, or lower rank."
            )
        weight = np.ones(n) if weight is None else weight
        shares = [weight * own / float(weight @ own) for own in self.gaps.observed.T]
        arrays, moments = one_pass(self.features, X, shares, dtype, True)
        assert arrays is not None
        spreads = np.array([found.square - float(found.first @ found.first) for found in moments])
        sizes = np.maximum(spreads, 0.0) * [self.gaps.views.count(view) for view in self.gaps.views]
        self.shares = np.divide(1.0, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        pairs = list(zip(self.features, moments, strict=True))
        for (one, found), there in zip(pairs, self.gaps.observed.T, strict=True):
            settle(one, normalize, found, looked_at(normalize, X, weight * there))
        self.centred = [replace(one, mean=found.first) for one, found in pairs]
        self.regressions: dict[int, list[FloatArray]] = {}
        means = [found.first.astype(dtype) for found in moments]
        if self.gaps.observed.all():  # the fit is as without gaps, but new samples may have some
            if self.how == "complete":
                self._complete([Z - mean for Z, mean in zip(arrays, means, strict=True)], weight)
            return factors_of(self.features, X, dtype, arrays)
        if self.features[0].spherical:
            raise ValueError(
                f"normalize={normalize!r}: kernels with missing views are centred on the samples that have "
                "them, and those on the sphere cannot be; pass normalize='variance'."
            )
        self.features = self.centred
        for Z, mean, there in zip(arrays, means, self.gaps.observed.T, strict=True):
            Z -= mean
            Z[~there] = 0.0
        if self.how == "complete":
            self._complete(arrays, weight)
        return StoredFactors(arrays)

    def _complete(self, arrays: list[FloatArray], weight: FloatArray) -> None:
        """Regressions of every view on the others, and the features they complete."""
        filled = []
        for members, own in self._views():
            others = [m for m, view in enumerate(self.gaps.views) if view != self.gaps.views[members[0]]]
            roots = [float(np.sqrt(self.shares[m])) for m in others]
            ZS = _Joined([arrays[m] for m in others], roots)
            ZT = _Joined([arrays[m] for m in members], [float(np.sqrt(self.shares[m])) for m in members])
            B = regression(ZS, ZT, np.flatnonzero(own), weight)
            rest = np.flatnonzero(~own)
            for m, part in zip(members, ZT.split(B), strict=True):
                part = part / max(float(np.sqrt(self.shares[m])), 1e-300)
                blocks = [root * block for root, block in zip(roots, ZS.split(part.T), strict=True)]
                self.regressions[m] = [block.T for block in blocks]
                filled.append((m, rest, ZS.times(rest, part)))
        for m, rest, values in filled:
            arrays[m][rest] = values

    def _fine_factors(self) -> Factors:
        factors = self.gram.factors
        return StoredFactors([Z.astype(np.float64) for Z in factors.arrays])  # type: ignore[attr-defined]

    def missing(self, alpha: FloatArray) -> FloatArray:
        """With samples that lack views, nothing is known about what the features miss."""
        return super().missing(alpha) if self.gaps.observed.all() else np.full(len(self.live), np.inf)

    def predictor(self, models: Sequence[list[FloatArray]], intercept: FloatArray) -> Predictor:
        joined = [np.hstack(parts) for parts in zip(*models, strict=True)]
        terms = [self._term(int(m), c) for m, c in zip(self.live, joined, strict=True) if c.any()]
        alpha = np.zeros((self.source.n_samples, len(intercept)))
        return Predictor.of(GapSource.around(self.source, self.how == "complete"), terms, alpha, intercept)

    def _term(self, m: int, coef: FloatArray) -> GapFactorTerm:
        own, level = self.features[m], coef.T @ np.asarray(self.centred[m].mean)
        level -= 0.0 if own.mean is None else coef.T @ own.mean
        others = [k for k, view in enumerate(self.gaps.views) if view != self.gaps.views[m]]
        parts = zip(others, self.regressions.get(m, ()), strict=False)
        terms = [FactorTerm(k, self.centred[k], B @ coef) for k, B in parts]
        return GapFactorTerm(FactorTerm(m, own, coef), level, terms)


class _Joined:
    """Several arrays of features side by side, each times a number."""

    def __init__(self, arrays: list[FloatArray], factors: list[float]) -> None:
        self.arrays, self.factors = arrays, factors
        self.places = np.cumsum([0, *(Z.shape[1] for Z in arrays)])

    def rows(self, rows: IntArray) -> FloatArray:
        """Some rows, in double precision."""
        pairs = zip(self.arrays, self.factors, strict=True)
        parts = [factor * Z[rows].astype(np.float64) for Z, factor in pairs]
        return np.hstack(parts) if parts else np.zeros((len(rows), 0))

    def times(self, rows: IntArray, B: FloatArray) -> FloatArray:
        """Some rows times a matrix."""
        found = [self.rows(rows[some]) @ B for some in tiles(len(rows), ROWS)]
        return np.vstack(found) if found else np.zeros((0, B.shape[1]))

    def split(self, B: FloatArray) -> list[FloatArray]:
        """Columns of a matrix that belong to each array."""
        return [B[:, a:b] for a, b in zip(self.places[:-1], self.places[1:], strict=True)]


def regression(ZS: _Joined, ZT: _Joined, rows: IntArray, weight: FloatArray) -> FloatArray:
    """B of the ridge regression of ZT on ZS over some rows; the leave-one-out error chooses the ridge.

    With P = (ZS' W ZS + lambda I)^-1 and h_i = w_i z_i' P z_i, the error at a row that is left out is
    (t_i - z_i' B) / (1 - h_i).
    """
    R, r = int(ZS.places[-1]), int(ZT.places[-1])
    G, cross = np.zeros((R, R)), np.zeros((R, r))
    for some in tiles(len(rows), ROWS):
        A, w = ZS.rows(rows[some]), weight[rows[some], None]
        G += (w * A).T @ A
        cross += (w * A).T @ ZT.rows(rows[some])
    values, U = np.linalg.eigh(G)
    values, cross = np.maximum(values, 0.0), U.T @ cross
    unit = float(values.sum()) / max(len(rows), 1)
    if unit == 0.0:
        return np.zeros((R, r))
    chosen = rows[np.unique(np.linspace(0, len(rows) - 1, min(MOST_LEFT_OUT, len(rows))).astype(int))]
    A, T, w = ZS.rows(chosen) @ U, ZT.rows(chosen), weight[chosen]
    errors = []
    for ridge in unit * RIDGES:
        left = T - A @ (cross / (values + ridge)[:, None])
        h = w * (A**2 @ (1.0 / (values + ridge)))
        errors.append(float(w @ ((left**2).sum(axis=1) / np.maximum(1.0 - h, 1e-12) ** 2)))
    ridge = unit * float(RIDGES[int(np.argmin(errors))])
    return np.asarray(U @ (cross / (values + ridge)[:, None]))
