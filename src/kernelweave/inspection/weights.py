"""The learned kernel weights as a bar plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._matplotlib import import_pyplot


class KernelWeightsDisplay:
    """Bar plot of kernel weights, one bar a kernel (and a model, where there are several).

    It is best made with `from_estimator`. The data are stored, so a plot can be drawn again.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,) or (n_models, n_kernels)
        Kernel weights.
    kernel_names : sequence of str of length n_kernels
        Names of the kernels.
    model_names : sequence of str of length n_models, optional
        Names of the models (classes, pairs of classes, outputs), for the legend.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        The bars, one container a model; set by `plot`.
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from kernelweave.inspection import KernelWeightsDisplay
    >>> display = KernelWeightsDisplay([0.8, 0.6], ["rna", "protein"]).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['rna', 'protein']
    """

    def __init__(
        self, weights: ArrayLike, kernel_names: Sequence[str], model_names: Sequence[str] | None = None
    ) -> None:
        self.weights = weights
        self.kernel_names = kernel_names
        self.model_names = model_names

    def plot(self, ax: Any = None, *, max_kernels: int | None = None, **bar_kw: Any) -> Self:
        """Draw the weights.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        max_kernels : int, optional
            Show only that many kernels, those of largest weight, in decreasing order.
            By default all are shown, in the order of the estimator.
        **bar_kw
            Passed on to `matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : KernelWeightsDisplay
            The object itself.
        """
        weights, names = self._shown(max_kernels)
        plt = import_pyplot("KernelWeightsDisplay")
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.3 * len(names)), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_ = _draw_bars(ax, weights, self.model_names, bar_kw)
        ax.set_yticks(np.arange(len(names)), names)
        ax.invert_yaxis()  # the first kernel on top
        ax.set_xlabel("kernel weight")
        if self.model_names is not None:
            ax.legend()
        return self

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **plot_kw: Any) -> Self:
        """Draw the weights of a fitted estimator, or of the last step of a fitted pipeline.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
            Anything with `weights_` and `kernel_names_`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : KernelWeightsDisplay
            The display, drawn.
        """
        model = estimator[-1] if hasattr(estimator, "steps") else estimator
        if not hasattr(model, "weights_"):
            raise ValueError(f"{type(model).__name__} has no `weights_`: fit an MKL estimator first.")
        names = list(model.kernel_names_)
        return cls(model.weights_, names, _model_names(model)).plot(ax=ax, **plot_kw)

    def _shown(self, max_kernels: int | None) -> tuple[np.ndarray, list[str]]:
        weights, names = np.atleast_2d(self.weights), list(self.kernel_names)
        if weights.shape[1] != len(names):
            raise ValueError(f"kernel_names has {len(names)} names for {weights.shape[1]} kernels.")
        if max_kernels is None:
            return weights, names
        order = np.argsort(-weights.max(axis=0), kind="stable")[:max_kernels]
        return weights[:, order], [names[m] for m in order]


def _draw_bars(
    ax: Any, weights: np.ndarray, labels: Sequence[str] | None, bar_kw: dict[str, Any]
) -> list[Any]:
    """Bars of the models side by side within the unit height of their kernel."""
    n_models, n_kernels = weights.shape
    height = 0.8 / n_models
    offsets = (np.arange(n_models) - (n_models - 1) / 2) * height
    labels = [None] * n_models if labels is None else labels  # type: ignore[list-item]
    return [
        ax.barh(np.arange(n_kernels) + offset, row, **{"height": height, "label": label, **bar_kw})
        for offset, row, label in zip(offsets, weights, labels, strict=True)
    ]


def _model_names(model: Any) -> list[str] | None:
    """Legend of an estimator with one row of weights a model: its classes where they match."""
    weights = np.asarray(model.weights_)
    if weights.ndim == 1:
        return None
    classes = getattr(model, "classes_", ())
    return [str(name) for name in (classes if len(classes) == len(weights) else range(len(weights)))]
