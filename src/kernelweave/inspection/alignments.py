"""How alike the kernels of a model are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from .._typing import FloatArray, IntArray
from ..gram import KernelStack, ParametricSource
from ..gram.stack import as_stack
from ..kernels import WeightedSum, resolve_kernels
from ..kernels.columns import as_table
from ..theory import pairwise_alignment
from ._models import data_for, fitted_model, inputs_for

#: bytes that the matrices of all kernels may take
MATRIX_BYTES = 1 << 29

#: most kernels compared with one another
MOST_KERNELS = 2000


def kernel_alignments(
    model_or_kernels: Any, X: Any, max_samples: int = 1000, kernels: Sequence[int] | IntArray | None = None
) -> FloatArray:
    """Centred alignments between kernels: 1 for kernels that say the same, 0 for unrelated ones.

        A_ml = <H K_m H, H K_l H> / (||H K_m H|| ||H K_l H||),   H = I - 11'/n

    on at most `max_samples` rows, evenly spread over X (fewer for very many kernels). Cortes, Mohri
    & Rostamizadeh (2012); see `kernelweave.theory.pairwise_alignment`.

    Parameters
    ----------
    model_or_kernels : fitted estimator, Pipeline or search; or kernels as the estimators take them
        The kernels of a fitted model keep the parameters they took from its training data.
    X : array-like, sparse matrix or DataFrame of shape (n, n_features), or square kernels
    max_samples : int, default=1000
    kernels : sequence of int, optional
        Compare only these.

    Returns
    -------
    A : ndarray of shape (M, M)
        Zeros for kernels that do not vary over the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.inspection import kernel_alignments
    >>> from kernelweave.kernels import Linear
    >>> X = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> kernel_alignments([Linear(columns=0), Linear(columns=1), Linear()], X).round(3)
    array([[1.   , 0.   , 0.707],
           [0.   , 1.   , 0.707],
           [0.707, 0.707, 1.   ]])
    """
    parts, table = _kernels(model_or_kernels, X)
    chosen = np.arange(len(parts)) if kernels is None else np.asarray(kernels, dtype=int)
    if len(chosen) > MOST_KERNELS:
        raise ValueError(
            f"{len(chosen)} kernels have {len(chosen)}^2 alignments: pass kernels=[...] with at most "
            f"{MOST_KERNELS} of them, such as those of largest weight."
        )
    rows = _spread(table.shape[0], len(chosen), max_samples)
    if isinstance(table, KernelStack):
        square = table[np.ix_(rows, rows)]
        matrices = [square.matrix(int(m)) for m in chosen]
    else:
        block = _safe_indexing(table, rows)
        matrices = [np.asarray(parts[m](block)) for m in chosen]
    return np.asarray(pairwise_alignment("precomputed", KernelStack(matrices)).value)


def _kernels(model_or_kernels: Any, X: Any) -> tuple[Any, Any]:
    """Kernels to call (or numbers of matrices), and the data they take."""
    if not _is_estimator(model_or_kernels):
        return _unfitted(model_or_kernels, X)
    source = fitted_model(model_or_kernels).model_.source
    if isinstance(source, ParametricSource):
        return _children(source), np.asarray(data_for(model_or_kernels, X))
    if source.given:
        return _unfitted("precomputed", data_for(model_or_kernels, X))
    return source.kernels, inputs_for(model_or_kernels, X)


def _is_estimator(spec: Any) -> bool:
    return hasattr(spec, "predict") or hasattr(spec, "steps")


def _unfitted(kernels: Any, X: Any) -> tuple[Any, Any]:
    if isinstance(kernels, str) and kernels == "precomputed":
        stack = as_stack(X)
        if stack.shape[0] != stack.shape[1]:
            raise ValueError(
                f"X has shape {stack.shape}: alignments need square matrices, all samples twice."
            )
        return range(stack.shape[2]), stack
    table = as_table(X)
    return [kernel.fit(table) for _, kernel in resolve_kernels(kernels, table)], table


def _children(source: ParametricSource) -> list[Any]:
    """The summands of a kernel at their learned parameters, the mean over the models."""
    if not isinstance(source.kernel, WeightedSum):
        raise ValueError(
            f"{type(source.kernel).__name__} is one kernel, not a sum of several: there is nothing to align."
        )
    mean = ParametricSource(source.kernel, source.parameters.mean(axis=0, keepdims=True), source.X)
    return [partial(mean.square, m) for m in range(mean.n_kernels)]


def _spread(n: int, n_kernels: int, max_samples: int) -> IntArray:
    """Rows evenly spread over the samples, as many as fit."""
    if max_samples < 2 or n < 2:
        raise ValueError(f"alignments need at least 2 samples: X has {n}, max_samples={max_samples}.")
    size = min(n, max_samples, max(50, int((MATRIX_BYTES / (8 * max(n_kernels, 1))) ** 0.5)))
    return np.unique(np.linspace(0, n - 1, size).astype(int))
