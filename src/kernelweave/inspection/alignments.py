"""Alignments between the kernels of a model, or before a fit, and their heat map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from .._typing import FloatArray, IntArray
from ..gram import KernelStack, ParametricSource
from ..gram.stack import as_stack, default_names
from ..kernels import WeightedSum, as_views, resolve_kernels
from ..kernels.columns import as_table
from ..theory import pairwise_alignment
from ._matplotlib import axes_for, check_names, of_all, shown_kernels
from ._models import data_for, fitted_model, inputs_for, spread

#: bytes that the matrices of all kernels may take
MATRIX_BYTES = 1 << 29

#: most kernels compared with one another
MOST_KERNELS = 2000


def kernel_alignments(
    model_or_kernels: Any, X: Any, max_samples: int = 1000, kernels: Sequence[int] | IntArray | None = None
) -> FloatArray:
    """Centred alignments between kernels: 1 for kernels that say the same thing, 0 for unrelated ones.

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
                f"X has shape {stack.shape}: alignments need square matrices, the same samples on both axes."
            )
        return range(stack.shape[2]), stack
    table = as_table(as_views(X))
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
    return spread(n, size)


#: most kernels whose alignments are written into the map
MOST_WRITTEN = 12


class AlignmentDisplay:
    """Heat map of the centred alignments between kernels: dark squares are kernels that agree.

    Parameters
    ----------
    alignments : array-like of shape (n_kernels, n_kernels)
    kernel_names : sequence of str of length n_kernels
    n_kernels : int, optional
        How many kernels there are when only some were compared, for the label.

    Attributes
    ----------
    image_ : matplotlib AxesImage
    order_ : ndarray of int
        The kernels in the order in which they are drawn.
    texts_ : list of matplotlib Text
        The numbers, for at most 12 kernels.
    ax_, figure_

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.inspection import AlignmentDisplay
    >>> from kernelweave.kernels import Linear
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> display = AlignmentDisplay.from_kernels({"a": Linear(columns=[0]), "all": Linear()}, X)
    >>> display.image_.get_array().shape
    (2, 2)
    """

    def __init__(
        self, alignments: ArrayLike, kernel_names: Sequence[str], n_kernels: int | None = None
    ) -> None:
        self.alignments = alignments
        self.kernel_names = kernel_names
        self.n_kernels = n_kernels

    def plot(self, ax: Any = None, *, order: str = "cluster", **image_kw: Any) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        order : {"cluster", "given"}, default="cluster"
            Whether kernels that are alike stand side by side (average linkage of 1 - alignment).
        **image_kw
            Passed on to `matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : AlignmentDisplay
        """
        if order not in ("cluster", "given"):
            raise ValueError(f"order={order!r}: expected 'cluster' or 'given'.")
        A, names = np.asarray(self.alignments, dtype=float), list(self.kernel_names)
        check_names(names, len(A))
        self.order_ = clustered(A) if order == "cluster" else np.arange(len(A))
        size = min(2.5 + 0.3 * len(A), 14.0)
        ax = axes_for(self, ax, (size + 1.0, size))
        shown = A[np.ix_(self.order_, self.order_)]
        self.image_ = ax.imshow(shown, **{"vmin": 0.0, "vmax": 1.0, "cmap": "Blues", **image_kw})
        titles = [names[m] for m in self.order_]
        font = "small" if len(A) <= 30 else "xx-small"
        ax.set_xticks(np.arange(len(A)), titles, rotation=90, fontsize=font)
        ax.set_yticks(np.arange(len(A)), titles, fontsize=font)
        ax.set_title("centred alignment" + of_all(len(A), self.n_kernels or len(A)), fontsize="medium")
        ax.figure.colorbar(self.image_, ax=ax, shrink=0.7)
        self.texts_ = _write(ax, shown) if len(A) <= MOST_WRITTEN else []
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        max_samples: int = 1000,
        max_kernels: int | str | None = "auto",
        ax: Any = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the alignments of the kernels of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline or search
        X : array-like, sparse matrix or DataFrame, or square kernels
        max_samples : int, default=1000
            Rows to compare the kernels on.
        max_kernels : int, "auto" or None, default="auto"
            Compare only that many kernels, those of largest weight; "auto" compares all, or the 60 largest if
            there are more.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : AlignmentDisplay
        """
        model = fitted_model(estimator)
        names = model.model_.source.names
        weights = np.atleast_2d(model.weights_).max(axis=0)[: len(names)]
        chosen = shown_kernels(weights, max_kernels)
        A = kernel_alignments(estimator, X, max_samples, chosen)
        return cls(A, [names[m] for m in chosen], len(names)).plot(ax=ax, **plot_kw)

    @classmethod
    def from_kernels(
        cls, kernels: Any, X: Any, *, max_samples: int = 1000, ax: Any = None, **plot_kw: Any
    ) -> Self:
        """Draw the alignments of kernels before anything is fitted.

        Parameters
        ----------
        kernels : list, dict, kernel, family or str
            As the estimators take them; "precomputed" for square matrices in X.
        X : array-like, sparse matrix or DataFrame, or square kernels
        max_samples : int, default=1000
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : AlignmentDisplay
        """
        A = kernel_alignments(kernels, X, max_samples)
        return cls(A, _names(kernels, X, len(A))).plot(ax=ax, **plot_kw)


def _names(kernels: Any, X: Any, n_kernels: int) -> list[str]:
    if isinstance(kernels, str) and kernels == "precomputed":
        return getattr(X, "names", None) or default_names(n_kernels)
    return [name for name, _ in resolve_kernels(kernels, as_table(as_views(X)))]


def clustered(A: FloatArray, optimal_ordering: bool = False) -> IntArray:
    """An order in which like kernels are neighbours; `optimal_ordering` is slow for very many."""
    if len(A) < 3:
        return np.arange(len(A))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = np.clip(1.0 - (A + A.T) / 2.0, 0.0, None)
    np.fill_diagonal(distance, 0.0)
    links = linkage(squareform(distance, checks=False), "average", optimal_ordering=optimal_ordering)
    return np.asarray(leaves_list(links))


def _write(ax: Any, A: FloatArray) -> list[Any]:
    """The numbers, white on dark squares."""
    return [
        ax.text(j, i, f"{A[i, j]:.2f}", ha="center", va="center", color="white" if A[i, j] > 0.6 else "black")
        for i in range(len(A))
        for j in range(len(A))
    ]
