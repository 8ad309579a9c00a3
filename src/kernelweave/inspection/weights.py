"""The learned kernel weights as a bar plot, with intervals where there are several fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ._matplotlib import axes_for, check_names, model_names, of_all, shown_kernels
from ._models import fitted_model
from .stability import StabilityResult


class KernelWeightsDisplay:
    """Bar plot of kernel weights, one bar per kernel (and model, where there are several).

    It is best made with `from_estimator`, `from_cv_results` or `from_stability`. The data are stored,
    so a plot can be drawn again.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,) or (n_models, n_kernels)
        Kernel weights.
    kernel_names : sequence of str of length n_kernels
        Names of the kernels.
    model_names : sequence of str of length n_models, optional
        Names of the models (classes, pairs of classes, outputs), for the legend.
    intervals : array-like of shape (2, n_kernels) or (2, n_models, n_kernels), optional
        Lower and upper ends, drawn as a line over each bar.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        The bars, one container per model; set by `plot`.
    intervals_ : list of matplotlib LineCollection
        The intervals, one collection per model; empty without intervals.
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

    ax_: Any
    figure_: Any

    _label = "kernel weight"

    def __init__(
        self,
        weights: ArrayLike,
        kernel_names: Sequence[str],
        model_names: Sequence[str] | None = None,
        intervals: ArrayLike | None = None,
    ) -> None:
        self.weights = weights
        self.kernel_names = kernel_names
        self.model_names = model_names
        self.intervals = intervals

    def plot(self, ax: Any = None, *, max_kernels: int | str | None = "auto", **bar_kw: Any) -> Self:
        """Draw the weights.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        max_kernels : int, "auto" or None, default="auto"
            Show only that many kernels, those of largest weight, in decreasing order. "auto" shows
            all in the order of the estimator, or the 60 largest if there are more; None always shows all.
        **bar_kw
            Passed on to `matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : KernelWeightsDisplay
            The object itself.
        """
        weights, names = np.atleast_2d(np.asarray(self.weights)), list(self.kernel_names)
        check_names(names, weights.shape[1])
        order = shown_kernels(weights.max(axis=0), max_kernels)
        ax = axes_for(self, ax, (6.4, 1.2 + 0.3 * len(order)))
        self.bars_ = _draw_bars(ax, weights[:, order], self.model_names, bar_kw)
        self.intervals_ = [] if self.intervals is None else self._draw_intervals(ax, order)
        ax.set_yticks(np.arange(len(order)), [names[m] for m in order])
        ax.set_ylim(len(order) - 0.4, -0.6)  # the first kernel on top
        ax.set_xlabel(self._label + of_all(len(order), len(names)))
        if self.model_names is not None:
            ax.legend()
        return self

    def _draw_intervals(self, ax: Any, order: Any) -> list[Any]:
        shape = (2, len(self.bars_), len(self.kernel_names))
        ends = np.asarray(self.intervals, dtype=float).reshape(shape)[:, :, order]
        places = [[bar.get_y() + bar.get_height() / 2 for bar in bars] for bars in self.bars_]
        return [
            ax.hlines(y, low, high, color="0.2", linewidth=1.5)
            for y, low, high in zip(places, *ends, strict=True)
        ]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **plot_kw: Any) -> Self:
        """Draw the weights of a fitted estimator, or of the last step of a fitted pipeline.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline or search
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
        model = fitted_model(estimator)
        return cls(model.weights_, list(model.kernel_names_), model_names(model)).plot(ax=ax, **plot_kw)

    @classmethod
    def from_cv_results(cls, cv_results: Any, *, ax: Any = None, **plot_kw: Any) -> Self:
        """Draw mean weights over the fits of a cross-validation, with intervals from least to largest.

        Parameters
        ----------
        cv_results : dict or sequence of fitted estimators
            What ``cross_validate(..., return_estimator=True)`` returns, for any estimator, pipeline or
            search that learns kernel weights; or such estimators fitted on different samples.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : KernelWeightsDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import cross_validate
        >>> import kernelweave as kw
        >>> from kernelweave.kernels import RBF, per_feature
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = kw.MKLClassifier(per_feature(RBF()), multiclass="shared")
        >>> results = cross_validate(clf, X, y, return_estimator=True)
        >>> display = KernelWeightsDisplay.from_cv_results(results)
        >>> display.weights.shape
        (4,)
        """
        models = _fold_models(cv_results)
        weights = np.array([model.weights_ for model in models])
        ends = np.array([weights.min(axis=0), weights.max(axis=0)])
        names = list(models[0].kernel_names_)
        return cls(weights.mean(axis=0), names, model_names(models[0]), ends).plot(ax=ax, **plot_kw)

    @classmethod
    def from_stability(cls, result: StabilityResult, *, ax: Any = None, **plot_kw: Any) -> Self:
        """Draw the shares of the weights with their intervals over sub-samples.

        The bars show the fit on all samples; the number beside a name says how often the kernel is used.

        Parameters
        ----------
        result : StabilityResult
            What `stability_selection` returns.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : KernelWeightsDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave.inspection import StabilityResult
        >>> weights = np.array([[0.9, 0.1], [0.7, 0.3]])
        >>> result = StabilityResult(["rna", "protein"], weights, np.array([0.8, 0.2]), 0.9, 0.25)
        >>> display = KernelWeightsDisplay.from_stability(result)
        >>> [text.get_text() for text in display.ax_.get_yticklabels()]
        ['rna (100 %)', 'protein (50 %)']
        """
        pairs = zip(result.kernel_names, result.frequency, strict=True)
        names = [f"{name} ({100 * frequency:.0f} %)" for name, frequency in pairs]
        display = cls(result.full_weights, names, intervals=np.array([result.low, result.high]))
        display._label = "share of the kernel weights"
        return display.plot(ax=ax, **plot_kw)


def _fold_models(cv_results: Any) -> list[Any]:
    if isinstance(cv_results, dict) and "estimator" not in cv_results:
        raise ValueError(
            "cv_results holds no fitted estimators: call cross_validate(..., return_estimator=True)."
        )
    fits = cv_results["estimator"] if isinstance(cv_results, dict) else cv_results
    models = [fitted_model(estimator) for estimator in fits]
    if not models:
        raise ValueError("cv_results holds no estimators: pass at least one.")
    if len({np.shape(model.weights_) for model in models}) > 1:
        raise ValueError("cv_results: the fits have different kernels or classes; they cannot be compared.")
    return models


def _draw_bars(
    ax: Any, weights: FloatArray, labels: Sequence[str] | None, bar_kw: dict[str, Any]
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
