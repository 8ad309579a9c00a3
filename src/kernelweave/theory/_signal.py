"""How strongly, and by how many kernels, the target is carried; free of the bias of small samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import FloatArray
from ..gram import Gram
from ..regularizers.structured import alignments
from .complexity import quad_columns


class Signal(NamedTuple):
    """Statistics of M centred kernels of trace n against a target T of trace n, one entry per kernel.

    Attributes
    ----------
    sizes : ndarray of shape (M,)
        ||K_m||.
    alignment, by_chance : ndarray of shape (M,)
        Cosine with T, and its mean over permutations of T.
    strength : ndarray of shape (M,)
        (<K_m, T> - its mean over permutations) / n^2; r^2 of the target for a kernel of one feature.
    square : ndarray of shape (M,)
        An estimate of strength^2 from products over four different samples, so without the square of
        the noise in it.
    cosines : ndarray of shape (M, M)
        Between the kernels, less the identity's share; 0 on average for unrelated kernels.
    z : float
        Sum of strengths, in standard deviations of what chance gives.
    peak, chance_peak : float
        Largest strength, each in its own standard deviation, and what only one in twenty random
        targets exceeds.
    quads : ndarray of shape (n_draws, M)
        sigma' K_m sigma for random signs.
    """

    sizes: FloatArray
    alignment: FloatArray
    by_chance: FloatArray
    strength: FloatArray
    square: FloatArray
    cosines: FloatArray
    z: float
    peak: float
    chance_peak: float
    quads: FloatArray


def measure(gram: Gram, Y: FloatArray, n_draws: int = 100, seed: int = 0) -> Signal:
    """Statistics of the kernels of `gram`, centred and of trace n, against centred targets Y."""
    n, T = gram.n_samples, Y @ Y.T
    T *= n / np.trace(T)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, n_draws))
    total = np.zeros((n, n))
    rows, quads = [], []
    for unit in np.eye(gram.n_kernels):
        K = gram.combine(unit)
        total += K
        rows.append((np.linalg.norm(K), np.vdot(K, T), _squared_mean(K * T)))
        quads.append(quad_columns(K, signs))
    size, product, square = np.array(rows).T
    chance = n * n / (n - 1.0)  # tr(K) tr(T) / (n - 1)
    reach = size * float(np.linalg.norm(T))
    drawn = np.column_stack(quads)
    # sigma sigma' is a random target of trace n and norm n
    peaks = ((drawn - n) / chance_spread(size, float(n), n)).max(axis=1)
    return Signal(
        sizes=size,
        alignment=product / reach,
        by_chance=chance / reach,
        strength=(product - chance) / n**2,
        square=square,
        cosines=_without_identity(alignments(gram), size, n),
        z=_standardised(total, T),
        peak=float(((product - chance) / chance_spread(size, float(np.linalg.norm(T)), n)).max()),
        chance_peak=float(np.quantile(peaks, 0.95)),
        quads=drawn,
    )


def _squared_mean(h: FloatArray) -> float:
    """Mean of h_ij h_kl over different i, j, k, l, times (1 - 1/n)^2: (sum h)^2 less what shares a sample."""
    n = len(h)
    np.fill_diagonal(h, 0.0)
    rows = h.sum(axis=1)
    apart = float(rows.sum()) ** 2 - 4.0 * float(rows @ rows) + 2.0 * float(np.vdot(h, h))
    return apart * (n - 1.0) / ((n - 2.0) * (n - 3.0)) / n**3


def _standardised(K: FloatArray, T: FloatArray) -> float:
    """<K, T> less its mean by chance, in standard deviations, for a sum K of kernels of trace n."""
    n = len(K)
    scale = np.trace(K) / n  # the number of kernels
    spread = chance_spread(np.array([np.linalg.norm(K) / scale]), float(np.linalg.norm(T)), n)
    return float((np.vdot(K, T) / scale - n * n / (n - 1.0)) / spread[0])


def chance_spread(sizes: FloatArray, target_size: float, n: int) -> FloatArray:
    """Standard deviation of <K, O T O'> over rotations O of the n - 1 centred dimensions.

    For K and T of trace n, from their norms: 2 ||K_0||^2 ||T_0||^2 / ((N - 1)(N + 2)) with N = n - 1 and
    ||K_0||^2 = ||K||^2 - n^2 / N.
    """
    N = n - 1.0
    left, right = (np.maximum(np.square(size) - n * n / N, 1e-12 * n) for size in (sizes, target_size))
    return np.asarray(np.sqrt(2.0 * left * right / ((N - 1.0) * (N + 2.0))))


def _without_identity(A: FloatArray, sizes: FloatArray, n: int) -> FloatArray:
    """Cosines of K - tr(K)/(n-1) H, from those of K."""
    share = n * n / (n - 1.0)  # tr(K_m) tr(K_l) / (n - 1)
    products = A * np.outer(sizes, sizes) - share
    left = np.sqrt(np.maximum(products.diagonal(), 1e-300))
    return np.asarray(products / np.outer(left, left))
