"""Plots of explanations: one sample as a waterfall, all samples as a swarm, a curve over wavelengths."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, IntArray
from ._matplotlib import axes_for
from .explanation import Explanation


class WaterfallDisplay:
    """How the value of one sample comes about: from the mean of the background, step by step.

    Bars start where those above end: kernels, or features, the largest first and the others together.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    bars_ : matplotlib BarContainer
    ax_, figure_

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import WaterfallDisplay
    >>> from kernelweave.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> reg = kw.MKLRegressor(RBF()).fit(X, X[:, 0])
    >>> display = WaterfallDisplay(kw.explain(reg, X[:5], X)).plot(sample=2)
    >>> last = display.bars_[-1]
    >>> bool(abs(last.get_x() + last.get_width() - reg.predict(X[2:3])[0]) < 1e-9)
    True
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def plot(
        self,
        ax: Any = None,
        *,
        sample: int = 0,
        by: str = "feature",
        kernel: str | None = None,
        function: int | None = None,
        max_bars: int = 12,
        **bar_kw: Any,
    ) -> Self:
        """Draw the steps.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        sample : int, default=0
            Its row.
        by : {"feature", "kernel"}, default="feature"
        kernel : str, optional
            The features of one kernel alone; the steps then start at 0.
        function : int, optional
            Which function, where a model has several.
        max_bars : int, default=12
        **bar_kw
            Passed on to `matplotlib.axes.Axes.barh`.
        """
        own = self.explanation
        values, names = own.parts_by(by)
        if kernel is not None:
            values = np.reshape(own.within(kernel), values.shape)
        own.function(function)  # says which there are
        row = values[function or 0, sample]
        order = np.argsort(-np.abs(row), kind="stable")[:max_bars]
        steps, labels = row[order].tolist(), [names[f] for f in order]
        if len(order) < len(row):
            steps.append(row.sum() - row[order].sum())
            labels.append(f"{len(row) - len(order)} others")
        start = 0.0 if kernel is not None else float(np.ravel(own.base_value)[function or 0])
        starts = start + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
        ax = axes_for(self, ax, (6.4, 1.2 + 0.3 * len(labels)))
        ax.use_sticky_edges = False  # room beside the first bar
        colors = ["C0" if step >= 0 else "C3" for step in steps]
        self.bars_ = ax.barh(np.arange(len(steps)), steps, left=starts, **{"color": colors, **bar_kw})
        ax.set_yticks(np.arange(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)  # the first on top
        ax.axvline(start, color="0.3", linewidth=0.8, linestyle=":")
        ax.set_xlabel(f"value of sample {own.sample_names[sample]}")
        return self


class BeeswarmDisplay:
    """Attributions of all samples: a row of points for each feature, coloured by its value.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    points_ : list of matplotlib PathCollection
    shown_ : ndarray of int
        Features from top to bottom, of largest mean size first.
    ax_, figure_

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import BeeswarmDisplay
    >>> from kernelweave.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> reg = kw.MKLRegressor(RBF()).fit(X, X[:, 1])
    >>> int(BeeswarmDisplay(kw.explain(reg, X)).plot().shown_[0])
    1
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def plot(
        self, ax: Any = None, *, function: int | None = None, max_features: int = 15, **scatter_kw: Any
    ) -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        function : int, optional
            Which function, where a model has several.
        max_features : int, default=15
        **scatter_kw
            Passed on to `matplotlib.axes.Axes.scatter`.
        """
        values = self.explanation.function(function)
        self.shown_: IntArray = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:max_features]
        ax = axes_for(self, ax, (6.4, 1.2 + 0.35 * len(self.shown_)))
        self.points_ = []
        for row, f in enumerate(self.shown_):
            style = {"s": 10, "c": _ranks(self.explanation.data[:, f]), "cmap": "coolwarm", **scatter_kw}
            self.points_.append(ax.scatter(values[:, f], row + _offsets(values[:, f]), **style))
        ax.set_yticks(np.arange(len(self.shown_)), [self.explanation.feature_names[f] for f in self.shown_])
        ax.set_ylim(len(self.shown_) - 0.5, -0.5)
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        ax.set_xlabel("attribution (colour: low to high value of the feature)")
        return self


def _ranks(data: FloatArray) -> FloatArray:
    """Ranks of the values in [0, 1]; 0.5 for what has none."""
    if np.isnan(data).any():
        return np.full(len(data), 0.5)
    distinct, ranks = np.unique(data, return_inverse=True)
    return np.asarray(ranks / max(len(distinct) - 1, 1))


def _offsets(values: FloatArray) -> FloatArray:
    """Where points of about the same value stand beside one another, within 0.35 of the middle."""
    span = np.ptp(values) or 1.0
    bins = np.round(40 * (values - values.min()) / span).astype(int)
    offsets = np.zeros(len(values))
    for own in (np.flatnonzero(bins == b) for b in np.unique(bins)):
        places = np.arange(len(own))
        offsets[own] = (-1.0) ** places * ((places + 1) // 2)
    most = np.abs(offsets).max()
    return offsets * (0.35 / most if most > 0 else 0.0)


class AttributionCurveDisplay:
    """Mean size of attributions over channels, such as wavelengths, with its interval.

    Parameters
    ----------
    explanation : Explanation
        Whose features are the channels, in order.
    positions : array-like of shape (n_channels,), optional
        Wavelengths (or wave numbers); channel numbers by default.

    Attributes
    ----------
    line_ : matplotlib Line2D
    ax_, figure_

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import AttributionCurveDisplay
    >>> from kernelweave.kernels import bands
    >>> X = np.random.default_rng(0).normal(size=(40, 12))
    >>> reg = kw.MKLRegressor(bands(4)).fit(X, X[:, 4])
    >>> display = AttributionCurveDisplay(kw.explain(reg, X), np.linspace(400, 510, 12)).plot()
    >>> int(np.argmax(display.line_.get_ydata()))
    4
    """

    def __init__(self, explanation: Explanation, positions: ArrayLike | None = None) -> None:
        self.explanation = explanation
        self.positions = positions

    def plot(self, ax: Any = None, *, level: float = 0.95, **line_kw: Any) -> Self:
        """Draw the curve, and the band of its intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        level : float, default=0.95
        **line_kw
            Passed on to `matplotlib.axes.Axes.plot`.
        """
        found = self.explanation.importance(level)
        count = len(found.mean) - len(self.explanation.whole)
        places = np.arange(count) if self.positions is None else np.asarray(self.positions)
        if places.shape != (count,):
            raise ValueError(f"positions has shape {places.shape}: there are {count} channels.")
        ax = axes_for(self, ax, (8.0, 3.5))
        (self.line_,) = ax.plot(places, found.mean[:count], **line_kw)
        ax.fill_between(places, found.low[:count], found.high[:count], alpha=0.3)
        ax.set_xlabel("channel" if self.positions is None else "wavelength")
        ax.set_ylabel("mean |attribution|")
        return self
