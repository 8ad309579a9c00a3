"""Alignments between kernels as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, IntArray
from ._matplotlib import axes_for, check_names, of_all, shown_kernels
from ._models import fitted_model
from .alignments import kernel_alignments

#: most kernels whose alignments are written into the map
MOST_WRITTEN = 12


class AlignmentDisplay:
    """Heat map of the centred alignments between kernels: dark squares are kernels that say the same.

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
            Compare only that many kernels, those of largest weight; "auto" compares all, or the 60
            largest of more.
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
    from ..kernels import resolve_kernels
    from ..kernels.columns import as_table

    if isinstance(kernels, str) and kernels == "precomputed":
        return getattr(X, "names", None) or [f"kernel {m}" for m in range(n_kernels)]
    return [name for name, _ in resolve_kernels(kernels, as_table(X))]


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
