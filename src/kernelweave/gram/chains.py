"""Gaussian kernels that are powers of one another."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray

#: largest power of one step: a larger one costs as much as an exponential
MAX_STEP = 16


def power_chains(gammas: FloatArray, most: int) -> tuple[IntArray, IntArray]:
    """An order of Gaussian kernels in which many are a small power of the one before.

    exp(-p gamma d) = exp(-gamma d)^p takes log2(p) products instead of an exponential.

    Parameters
    ----------
    gammas : ndarray of shape (K,)
    most : int
        Largest power of the first kernel of a chain.

    Returns
    -------
    order : ndarray of int, shape (K,)
    powers : ndarray of int, shape (K,)
        The power of the kernel before, or 0 where an exponential is to be computed.

    Examples
    --------
    >>> power_chains(np.array([0.5, 0.3, 1.0, 2.0]), most=100)
    (array([1, 0, 2, 3]), array([0, 0, 2, 2]))
    """
    left = [int(k) for k in np.argsort(gammas, kind="stable")]
    order: list[int] = []
    powers: list[int] = []
    while left:
        power, first = 0, left[0]
        last: int | None = first
        while last is not None:
            left.remove(last)
            order.append(last)
            powers.append(power)
            last, power = _next_power(gammas, left, last, most * gammas[first])
    return np.array(order, dtype=int), np.array(powers, dtype=int)


def _next_power(gammas: FloatArray, left: list[int], last: int, bound: float) -> tuple[int | None, int]:
    """The first kernel left whose gamma is a small multiple of that of `last`, and the multiple."""
    for k in left:
        ratio = gammas[k] / gammas[last]
        power = round(ratio)
        if power <= MAX_STEP and gammas[k] <= bound and abs(ratio - power) <= 1e-14 * power:
            return k, power
    return None, 0
