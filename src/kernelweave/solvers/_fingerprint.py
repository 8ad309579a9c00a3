"""What tells one learning problem from another, cheaply."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._typing import FloatArray
from ..gram import Gram

#: kernel rows that are looked at, and relative difference of their values that is rounding
PROBE_ROWS, ROUNDING = 4, 1e-5


def describe(value: Any) -> str:
    """A text that is the same in every process: class and parameters of parts, digest of arrays.

    >>> from kernelweave.regularizers import LpNorm
    >>> describe(LpNorm(p=2))
    "LpNorm(costs=None, form='constraint', p=2)"
    """
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False).items()
        listed = ", ".join(f"{name}={describe(part)}" for name, part in sorted(parameters))
        return f"{type(value).__name__}({listed})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe, value))}]"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return digest(value)
    text = repr(value)
    # an address differs from process to process
    return text if " at 0x" not in text else getattr(value, "__qualname__", type(value).__qualname__)


def digest(*arrays: Any) -> str:
    """A checksum of types, shapes and values."""
    total = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()[:32]


def probe(gram: Gram) -> FloatArray:
    """A number for each sample that changes with its data and with the kernels; shape (n,).

    Some rows and the diagonal of sum_m d_m K_m at uneven weights d, so that kernels cannot be
    exchanged unnoticed. Costs a few rows of all the kernels.
    """
    passes = gram.n_passes
    weights = 1.0 + np.modf(np.arange(gram.n_kernels) * 0.6180339887498949)[0]
    rows = np.unique(np.linspace(0, gram.n_samples - 1, PROBE_ROWS).astype(int))
    mix = np.sqrt(1.0 + np.arange(len(rows)))
    values = mix @ gram.rows(rows, weights) + np.pi * gram.diag(weights)
    gram.n_passes = passes  # the history tells what solving costs
    return np.asarray(values, dtype=np.float64)


def same_probe(first: FloatArray, second: FloatArray) -> bool:
    """Whether two probes agree but for rounding, which differs from one Gram engine to another."""
    if first.shape != second.shape:
        return False
    largest = float(max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0)))
    return bool((np.abs(first - second) <= ROUNDING * largest).all())
