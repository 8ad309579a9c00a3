"""When greedy selection finds the right kernels (Sindhwani & Lozano 2011, Theorem 2, corrected)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray
from ..solvers.greedy.dictionary import FactorDictionary, LowRank
from ._statements import (
    Assumption,
    all_hold,
    check_number,
    kernel_source,
    positions,
    target_matrix,
    with_assumptions,
)

#: eigenvalues of a kernel, and singular values of all good ones, below this share of the largest are zero
EIGEN_TOL, RANK_TOL = 1e-12, 1e-10

#: steps of the ascent to sup_v sum_i ||B_i v||, and the relative gain at which it ends
ASCENT_STEPS, ASCENT_TOL = 200, 1e-12


@dataclass(frozen=True, repr=False)
class Recovery:
    """Bounds on the recovery coefficient mu of a set of kernels, and what follows from them.

    Attributes
    ----------
    upper, lower : float
        lower <= mu <= upper; they usually agree.
    verdict : {"certified", "refuted", "undecided"}
        mu < 1, mu >= 1, or neither proved.
    worst : str or None
        The kernel outside the set that comes nearest to being taken by mistake.
    good : list of str
    per_kernel : dict
        name -> (lower, upper) of every kernel outside the set.
    assumptions : tuple of Assumption
    norms : dict
        name -> ||Q_j K_G||_2 of every kernel outside the set: how well its functions follow those of the set.
    threshold : float
        What all of them have to stay below for the stronger condition, `norms_small`.
    """

    upper: float
    lower: float
    verdict: str
    worst: str | None
    good: list[str]
    per_kernel: dict[str, tuple[float, float]]
    assumptions: tuple[Assumption, ...]
    norms: dict[str, float] = field(default_factory=dict)
    threshold: float = 0.0

    @property
    def norms_small(self) -> bool:
        """Whether every ||Q_j K_G||_2 is below the threshold: a stronger condition, which implies mu < 1."""
        return max(self.norms.values(), default=0.0) < self.threshold

    @property
    def guaranteed(self) -> bool:
        """Whether greedy selection is proved to take the good kernels, all of them, before any other."""
        return self.verdict == "certified" and all_hold(self.assumptions) is True

    def __repr__(self) -> str:
        meaning = {
            "certified": "no other kernel gains as much as the best good one",
            "refuted": "there is no guarantee; selection may still succeed",
            "undecided": "the bounds are on both sides of 1",
        }
        head = (
            f"recovery coefficient of {len(self.good)} kernels in [{self.lower:.4g}, {self.upper:.4g}], "
            f"{self.verdict}: {meaning[self.verdict]}; worst kernel outside: {self.worst}"
        )
        return with_assumptions(head, self.assumptions)


def recovery_coefficient(
    kernels: Any,
    X: Any,
    good: Any,
    alpha: float = 1e-3,
    y: Any = None,
    normalize: str | None = "variance",
    fit_intercept: bool = True,
) -> Recovery:
    """Whether greedy selection is bound to find the kernels `good`.

    With lambda = `alpha`, l samples and Q_m = (K_m (K_m + lambda l I)^-1)^(1/2), the gain of a kernel is
    ||Q_m r||^2 / l. A residual r that the good kernels can express satisfies, for every other kernel j,

        Q_j r = sum_i C_ij' Q_i r,    C_ij = Q_i ( sum_{k good} Q_k^2 )^+ Q_j

        ||Q_j r|| <= mu max_i ||Q_i r||,    mu = max_j sup_{||v||=1} sum_i ||C_ij v||

    so that mu < 1 keeps every other kernel from having the largest gain. The supremum is bounded from
    below by ascent over v, and from above for any t > 0 by

        (sum_i ||C_ij v||)^2 <= (sum_i t_i) lambda_max( sum_i C_ij' C_ij / t_i )

    at the t_i = ||C_ij v|| of the ascent, where both agree unless the ascent missed the maximum, and by
    sum_i ||C_ij||_2.

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices. Kernels with a thin
        factor, such as linear ones on few columns, are never expanded to n x n matrices.
    good : sequence of str or int
        The kernels that carry the target, by name or position.
    alpha : float, default=1e-3
        The ridge lambda of `GroupOMPRegressor`.
    y : array-like of shape (n,) or (n, c), optional
        Targets; with them the assumptions about targets are checked.
    normalize, fit_intercept
        As in `GroupOMPRegressor`.

    Returns
    -------
    result : Recovery

    Notes
    -----
    Theorem 2 of Sindhwani & Lozano (2011) prints K_G Q_i (sum_k Q_k K_G^2 Q_k)^-1 Q_j K_G for C_ij, with
    K_G = sum_{k good} K_k. Its proof needs the factors in the order Q_i K_G, and then K_G cancels on its
    range, which is also the range of sum_k Q_k^2. The two agree only if Q_i and K_G commute.

    The theorem also lets the best good kernel be one that is selected already. Without ridge that
    cannot happen (the residual is orthogonal to it); with one it can, if what is left of a strong
    component outweighs a weak component not yet selected, and then another kernel may come in first.
    With `y` this is checked along the path: assumption "selected kernels are used up".

    mu >= 1 says that the argument fails for some residual, not that selection does.

    The paper goes on: a stronger condition is that ||Q_j K_G||_2 be sufficiently small for every other
    kernel. How small follows from S = sum_k Q_k^2 over the s good kernels and sigma, the smallest positive
    singular value of S^(1/2) K_G:

        sum_i ||C_ij v|| <= sqrt(s) ||S^(+1/2) Q_j v||,    ||S^(+1/2) Q_j|| <= ||Q_j K_G|| / sigma

    (Cauchy-Schwarz, and r = K_G u for the residuals in question), so that mu < 1 where ||Q_j K_G||_2 is below
    sigma / sqrt(s) for all j: `norms`, `threshold` and `norms_small` of the result. This condition is easier
    to read, and mu is sharper.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Linear
    >>> X = np.random.default_rng(0).normal(size=(300, 12))
    >>> kernels = {f"group {g}": Linear(columns=[3 * g, 3 * g + 1, 3 * g + 2]) for g in range(4)}
    >>> y = X[:, 0] - 2 * X[:, 4]
    >>> found = recovery_coefficient(kernels, X, ["group 0", "group 1"], alpha=1e-6, y=y)
    >>> found.verdict, found.guaranteed, round(found.upper, 2)
    ('certified', True, 0.29)
    """
    ridge = check_number("alpha", alpha, 0.0)
    source = kernel_source(kernels, X)
    chosen = positions(source.names, good, "good")
    if not 0 < len(chosen) < len(source.names):
        raise ValueError(f"good holds {len(chosen)} of {len(source.names)} kernels: give some, and not all.")
    n, shift = source.n_samples, ridge * source.n_samples
    found = FactorDictionary(source, normalize, np.ones(n), fit_intercept, shift)
    spectra = {int(m): _spectrum(found, int(m)) for m in found.live}
    inside = [int(m) for m in chosen if m in spectra]
    if not inside:
        raise ValueError("good: none of these kernels varies over the samples; choose others.")
    roots = {m: spectrum.root(shift) for m, spectrum in spectra.items()}
    Y = None if y is None else target_matrix(y, n, centered=fit_intercept)
    good_ones = [spectra[m] for m in inside]
    needed = _about_targets(good_ones, Y, shift)
    found_norms = _norms_of_products(good_ones, roots, inside)
    return _judged(_coefficients(roots, inside), inside, source.names, needed, *found_norms)


class _Spectrum(NamedTuple):
    """K = U diag(values) U' of one kernel, positive eigenvalues only."""

    values: FloatArray
    U: FloatArray

    def root(self, shift: float) -> FloatArray:
        """H of shape (n, r) with H H' = K (K + shift I)^-1 = Q^2."""
        return np.asarray(self.U * np.sqrt(self.values / (self.values + shift)))

    @property
    def factor(self) -> FloatArray:
        """Phi with K = Phi Phi'."""
        return np.asarray(self.U * np.sqrt(self.values))


def _spectrum(found: FactorDictionary, m: int) -> _Spectrum:
    block = found.block(m)
    if isinstance(block, LowRank):
        U, roots, _ = np.linalg.svd(block.Phi, full_matrices=False)
        values = roots**2
    else:
        K = np.zeros((found.n_samples, found.n_samples), order="F")
        block.add_to(K)
        values, U = np.linalg.eigh(K)  # reads the lower triangle, the one that `add_to` fills
    keep = values > EIGEN_TOL * values.max(initial=0.0)
    return _Spectrum(values[keep], U[:, keep])


def _judged(
    bounds: dict[int, tuple[float, float]],
    inside: Sequence[int],
    names: list[str],
    needed: tuple[Assumption, ...],
    norms: dict[int, float],
    threshold: float,
) -> Recovery:
    lower = max((low for low, _ in bounds.values()), default=0.0)
    upper = max((high for _, high in bounds.values()), default=0.0)
    verdict = "certified" if upper < 1.0 else "refuted" if lower >= 1.0 else "undecided"
    worst = names[max(bounds, key=lambda m: bounds[m])] if bounds else None
    per_kernel = {names[m]: pair for m, pair in bounds.items()}
    named = {names[m]: norm for m, norm in norms.items()}
    good = [names[m] for m in inside]
    return Recovery(upper, lower, verdict, worst, good, per_kernel, needed, named, threshold)


def _coefficients(roots: dict[int, FloatArray], inside: Sequence[int]) -> dict[int, tuple[float, float]]:
    """(lower, upper) bound on sup_v sum_i ||C_ij v|| for every kernel j outside."""
    left, sizes, right = _svd(np.hstack([roots[m] for m in inside]))  # F = [H_1 .. H_s], F F' = sum Q_k^2
    whiten = left / sizes  # (F F')^+ = whiten whiten'
    ends = np.cumsum([roots[m].shape[1] for m in inside])[:-1]
    parts = np.split(right, ends, axis=1)  # whiten' H_i
    outside = [m for m in roots if m not in inside]
    # Q_i and H_i' differ by an isometry: ||C_ij v|| = ||H_i' (F F')^+ H_j w||
    return {j: sum_of_norms([part.T @ (whiten.T @ roots[j]) for part in parts]) for j in outside}


def _norms_of_products(
    good: Sequence[_Spectrum], roots: dict[int, FloatArray], inside: Sequence[int]
) -> tuple[dict[int, float], float]:
    """||Q_j K_G||_2 of every kernel j outside, and sigma / sqrt(s) with sigma the least of S^(1/2) K_G."""
    left, sizes, _ = _svd(np.hstack([kernel.factor for kernel in good]))  # K_G = left diag(sizes^2) left'
    K_G = left * sizes**2
    # Q_j and H_j' differ by an isometry, and so do S^(1/2) and [H_1 .. H_s]'
    norms = {j: float(np.linalg.norm(H.T @ K_G, 2)) for j, H in roots.items() if j not in inside}
    values = np.linalg.svd(np.vstack([roots[m].T @ K_G for m in inside]), compute_uv=False)
    least = float(values[-1]) if values[-1] > EIGEN_TOL * values[0] else 0.0
    return norms, least / len(good) ** 0.5


def _svd(F: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The thin singular value decomposition without values that are zero but for rounding."""
    left, sizes, right = np.linalg.svd(F, full_matrices=False)
    keep = sizes > RANK_TOL * sizes.max(initial=0.0)
    return left[:, keep], sizes[keep], right[keep]


def _about_targets(
    good: Sequence[_Spectrum], Y: FloatArray | None, shift: float
) -> tuple[Assumption, Assumption]:
    clean, used = "noiseless targets", "selected kernels are used up"
    if Y is None:
        return Assumption(clean, None, "give y to check it"), Assumption(used, None, "give y to check it")
    span = _svd(np.hstack([kernel.U for kernel in good]))[0]
    noise = float(np.linalg.norm(Y - span @ (span.T @ Y)) / np.linalg.norm(Y))
    ratio = _leftover(good, Y, shift)
    said = f"gain of a selected kernel over that of the best good one left: at most {ratio:.2g}"
    return (
        Assumption(clean, noise <= 1e-6, f"share of y that the good kernels cannot express: {noise:.2g}"),
        Assumption(used, ratio < 1.0, said),
    )


def _leftover(good: Sequence[_Spectrum], Y: FloatArray, shift: float) -> float:
    """Largest gain of a selected kernel over that of the best other, when only good kernels compete."""
    selected: list[int] = []
    R, worst = Y, 0.0
    while len(selected) < len(good):
        gains = np.array([np.linalg.norm(kernel.root(shift).T @ R) ** 2 for kernel in good])
        open_gains = np.where(np.isin(np.arange(len(good)), selected), -1.0, gains)
        best = int(open_gains.argmax())
        kept = float(gains[selected].max(initial=0.0))
        worst = max(worst, kept / gains[best] if gains[best] > 0 else np.inf)
        selected.append(best)
        left, sizes, _ = _svd(np.hstack([good[m].factor for m in selected]))
        # Y - K (K + shift I)^-1 Y with K the sum of the selected kernels
        R = Y - (left * (sizes**2 / (sizes**2 + shift))) @ (left.T @ Y)
    return worst


def sum_of_norms(blocks: Sequence[FloatArray]) -> tuple[float, float]:
    """Lower and upper bound on sup_{||v||=1} sum_i ||B_i v||.

    The lower bound is the value reached by ascent from the leading singular vectors. The upper bound
    is the smaller of sum_i ||B_i||_2 and, for t_i = ||B_i v|| at the v found,

        ( (sum_i t_i) lambda_max( sum_i B_i' B_i / t_i ) )^(1/2)

    which holds for every t > 0 (Cauchy-Schwarz), and meets the lower one if v is the maximum and
    leads the matrix in brackets.

    Parameters
    ----------
    blocks : sequence of ndarray of shape (r_i, r)

    Examples
    --------
    >>> import numpy as np
    >>> low, high = sum_of_norms([np.eye(2), np.diag([1.0, 0.0])])
    >>> round(low, 6), round(high, 6)
    (2.0, 2.0)
    """
    tops = [np.linalg.svd(B, full_matrices=False)[1:] for B in (*blocks, np.vstack(blocks))]
    starts = [vectors[0] for _, vectors in tops if len(vectors)]
    if not starts:
        return 0.0, 0.0
    best = max((_ascend(blocks, v) for v in starts), key=lambda v: _norms(blocks, v).sum())
    norms = _norms(blocks, best)
    simple = sum(float(sizes.max(initial=0.0)) for sizes, _ in tops[:-1])
    t = norms + 1e-6 * norms.max(initial=0.0)  # any t > 0 will do
    if not t.any():
        return float(norms.sum()), simple
    stacked = np.vstack([B / np.sqrt(size) for B, size in zip(blocks, t, strict=True)])
    return float(norms.sum()), min(simple, float(np.sqrt(t.sum()) * np.linalg.norm(stacked, 2)))


def _ascend(blocks: Sequence[FloatArray], v: FloatArray) -> FloatArray:
    """The gradient of the convex sum, normalised, is a point where the sum is no smaller."""
    value = float(_norms(blocks, v).sum())
    for _ in range(ASCENT_STEPS):
        norms = np.maximum(_norms(blocks, v), 1e-300)
        slope = np.sum([B.T @ (B @ v) / size for B, size in zip(blocks, norms, strict=True)], axis=0)
        length = float(np.linalg.norm(slope))
        if length == 0.0:
            return v
        v, before = slope / length, value
        value = float(_norms(blocks, v).sum())
        if value <= before * (1.0 + ASCENT_TOL):
            return v
    return v


def _norms(blocks: Sequence[FloatArray], v: FloatArray) -> FloatArray:
    return np.array([np.linalg.norm(B @ v) for B in blocks])
