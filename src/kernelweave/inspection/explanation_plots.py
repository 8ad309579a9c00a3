"""Plots of explanations: one sample as a waterfall, all samples as a swarm, a curve over wavelengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, IntArray
from ._matplotlib import axes_for
from .explanation import Explanation


class WaterfallDisplay:
    """How the value of one sample comes about: from the mean of the background, step by step.

    Each bar starts where the one above ends: kernels, or features, the largest first and the others together;
    or kernels with the features of each below it, which fill the bar of their kernel.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    bars_ : matplotlib BarContainer
    labels_ : list of str
        Labels of the bars, from top to bottom.
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
        sample: Any = 0,
        by: str = "feature",
        kernel: str | None = None,
        function: Any = None,
        max_bars: int = 12,
        **bar_kw: Any,
    ) -> Self:
        """Draw the steps.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        sample : int or str, default=0
            Its ID, or its row.
        by : {"feature", "kernel", "both"}, default="feature"
            "both": every kernel, and below it its features.
        kernel : str, optional
            The features of one kernel alone; the steps then start at 0.
        function : int or str, optional
            Which function, by number or name, where a model has several.
        max_bars : int, default=12
            Most bars, not counting "others"; with "both", at least three for each of the largest kernels.
        **bar_kw
            Passed on to `matplotlib.axes.Axes.barh`.
        """
        own = self.explanation
        which, row = own.place_of_function(function), own.place_of_sample(sample)
        if by not in ("feature", "kernel", "both"):
            raise ValueError(f"by={by!r}: expected 'feature', 'kernel' or 'both'.")
        start = 0.0 if kernel is not None else float(np.ravel(own.base_value)[which])
        if by == "both" and kernel is None:
            bars = self._nested(start, row, which, max_bars)
        else:
            values, names = own.parts_by("feature" if by == "both" else by)
            if kernel is not None:
                values = np.reshape(own.within(kernel), values.shape)
            bars = _steps(values[which, row], names, start, max_bars)
        self.labels_ = [bar.label for bar in bars]
        ax = axes_for(self, ax, (6.4, 1.2 + 0.3 * len(bars)))
        self._draw(ax, bars, bar_kw)
        end = start + sum(bar.step for bar in bars if not bar.inner)
        for value in (start, end):
            ax.axvline(value, color="0.3", linewidth=0.8, linestyle=":", zorder=0)
        base = "0" if kernel is not None else f"{start:.4g}, the mean of the background,"
        what = "value" if kernel is None else f"kernel {kernel}"
        of = f" of {own.function_names[which]}" if len(own.function_names) > 1 else ""
        ax.set_xlabel(f"{what}{of}, sample {own.sample_names[row]}\nfrom {base} to {end:.4g}")
        return self

    def _nested(self, start: float, sample: int, which: int, most: int) -> list[_Bar]:
        """Kernels, each followed by its features."""
        values, names = self.explanation.parts_by("kernel")
        outer = _steps(values[which, sample], names, start, max(1, most // 3))
        found = []
        for bar in outer:
            found.append(bar)
            if bar.label not in self.explanation.parts:
                continue
            inside = np.reshape(self.explanation.within(bar.label), (len(values), values.shape[1], -1))
            steps = _steps(
                inside[which, sample],
                self.explanation.feature_names,
                bar.start,
                max(2, most // len(outer) - 1),
            )
            found.extend(one._replace(inner=True) for one in steps)
        return found

    def _draw(self, ax: Any, bars: list[_Bar], bar_kw: dict[str, Any]) -> None:
        """Bars with what each adds written beside it."""
        places, steps = np.arange(len(bars)), [bar.step for bar in bars]
        style: dict[str, Any] = {"color": ["C0" if step >= 0 else "C1" for step in steps]}
        nested = any(bar.inner for bar in bars)
        if nested:
            style["height"] = [0.45 if bar.inner else 0.8 for bar in bars]
        self.bars_ = ax.barh(places, steps, left=[bar.start for bar in bars], **{**style, **bar_kw})
        ax.bar_label(
            self.bars_, [f"{step:+.3g}" for step in steps], padding=2, fontsize="x-small", color="0.3"
        )
        ax.use_sticky_edges = False  # room beside the first bar
        ax.margins(x=0.12)  # and for the numbers
        for tick, bar in zip(ax.set_yticks(places, self.labels_), bars, strict=True):
            tick.label1.set_fontweight("bold" if nested and not bar.inner else "normal")
        ax.set_ylim(len(bars) - 0.4, -0.6)  # the first on top


class _Bar(NamedTuple):
    """A step of a waterfall; inner steps are parts of the last step that is not inner."""

    label: str
    start: float
    step: float
    inner: bool = False


def _steps(row: FloatArray, names: Sequence[str], start: float, most: int) -> list[_Bar]:
    """The largest parts of a sum one after another, and the others together; parts of 0 are left out."""
    order = np.argsort(-np.abs(row), kind="stable")
    live = order[: max(1, np.count_nonzero(row))]
    shown = live[:most]
    labels, steps = [str(names[f]) for f in shown], row[shown].tolist()
    if len(shown) < len(live):
        labels.append(f"{len(live) - len(shown)} others")
        steps.append(float(row[live[most:]].sum()))
    starts = start + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    return [_Bar(*one) for one in zip(labels, starts.tolist(), steps, strict=True)]


class BeeswarmDisplay:
    """Attributions of all samples: a row of points for each feature, coloured by its value.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    points_ : list of matplotlib PathCollection
    shown_ : ndarray of int
        Features from top to bottom, the largest mean size first.
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
        self, ax: Any = None, *, function: Any = None, max_features: int = 15, **scatter_kw: Any
    ) -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        function : int or str, optional
            Which function, by number or name, where a model has several.
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
    """Ranks of the values in [0, 1]; 0.5 for values that have no rank."""
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
        Its features are the channels, in order.
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
