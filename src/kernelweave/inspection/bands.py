"""Kernel weights over the channels that the kernels see, for spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ._matplotlib import axes_for
from ._models import fitted_model


class BandsDisplay:
    """Kernel weights over a spectrum: a bar from the first to the last channel of each band.

    Kernels on the same channels (several bandwidths per band) are one bar, the sum of their weights.

    Parameters
    ----------
    bands : array-like of shape (n_bands, 2)
        First and last channel of every band.
    weights : array-like of shape (n_bands,)
    positions : array-like of shape (n_channels,), optional
        Wavelengths (or wave numbers) of the channels, in order; channel numbers by default.
    spectrum : array-like of shape (n_channels,), optional
        A spectrum to draw behind the bars, such as the mean.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
    line_ : matplotlib Line2D or None
        The spectrum.
    ax_, figure_

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import BandsDisplay
    >>> from kernelweave.kernels import bands
    >>> X = np.random.default_rng(0).normal(size=(60, 12))
    >>> reg = kw.MKLRegressor(bands(4)).fit(X, X[:, 4] + X[:, 5])
    >>> display = BandsDisplay.from_estimator(reg, positions=np.linspace(400, 510, 12))
    >>> [float(bar.get_x()) for bar in display.bars_]
    [395.0, 425.0, 455.0, 485.0]
    >>> int(np.argmax([bar.get_height() for bar in display.bars_]))
    1
    """

    def __init__(
        self,
        bands: ArrayLike,
        weights: ArrayLike,
        positions: ArrayLike | None = None,
        spectrum: ArrayLike | None = None,
    ) -> None:
        self.bands = bands
        self.weights = weights
        self.positions = positions
        self.spectrum = spectrum

    def plot(self, ax: Any = None, **bar_kw: Any) -> Self:
        """Draw the bands.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **bar_kw
            Passed on to `matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : BandsDisplay
        """
        bands, weights = np.asarray(self.bands, dtype=int), np.asarray(self.weights, dtype=float)
        edges = self._edges(int(bands.max()) + 1)
        ax = axes_for(self, ax, (8.0, 3.5))
        left, right = edges[bands[:, 0]], edges[bands[:, 1] + 1]
        style = {"align": "edge", "edgecolor": "white", "linewidth": 0.5, **bar_kw}
        self.bars_ = ax.bar(np.minimum(left, right), weights, np.abs(right - left), **style)
        ax.set_xlabel("channel" if self.positions is None else "wavelength")
        ax.set_ylabel("kernel weight")
        self.line_ = None if self.spectrum is None else self._draw_spectrum(ax)
        return self

    def _edges(self, n_channels: int) -> FloatArray:
        """Borders of the channels, half way between them; n_channels + 1 numbers."""
        places = np.arange(n_channels) if self.positions is None else np.asarray(self.positions)
        if len(places) < n_channels or places.ndim != 1:
            raise ValueError(f"positions has shape {places.shape}: the bands need {n_channels} channels.")
        steps = np.diff(places)
        if len(steps) and not ((steps > 0).all() or (steps < 0).all()):
            raise ValueError("positions must rise or fall from channel to channel: sort the columns first.")
        if len(places) == 1:
            return np.array([places[0] - 0.5, places[0] + 0.5])
        middles = places[:-1] + steps / 2.0
        return np.concatenate([[places[0] - steps[0] / 2], middles, [places[-1] + steps[-1] / 2]])

    def _draw_spectrum(self, ax: Any) -> Any:
        spectrum = np.asarray(self.spectrum, dtype=float)
        places = np.arange(len(spectrum)) if self.positions is None else np.asarray(self.positions)
        if len(places) != len(spectrum):
            raise ValueError(f"spectrum has {len(spectrum)} channels, positions has {len(places)}.")
        twin = ax.twinx()
        twin.set_yticks([])
        return twin.plot(places, spectrum, color="0.4", linewidth=1)[0]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        positions: ArrayLike | None = None,
        spectrum: ArrayLike | None = None,
        model: int | None = None,
        ax: Any = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the weights of a fitted estimator whose kernels see contiguous columns.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline or search
            With kernels such as those of ``kernels.bands``; kernels on all or on scattered columns are
            refused.
        positions, spectrum
            As in the class.
        model : int, optional
            Which row of weights, where there are several; by default their mean.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : BandsDisplay
        """
        fitted = fitted_model(estimator)
        weights = np.atleast_2d(fitted.weights_)
        row = weights.mean(axis=0) if model is None else weights[model]
        bands = _bands(fitted)
        distinct, where = np.unique(bands, axis=0, return_inverse=True)
        summed = np.bincount(where.ravel(), row, minlength=len(distinct))
        return cls(distinct, summed, positions, spectrum).plot(ax=ax, **plot_kw)


def _bands(model: Any) -> FloatArray:
    """First and last column of every kernel."""
    kernels: Sequence[Any] = getattr(model.model_.source, "kernels", ())
    bands = []
    for name, kernel in zip(model.kernel_names_, kernels, strict=bool(len(kernels))):
        columns = getattr(kernel, "columns_", None)
        if columns is None or len(columns) == 0 or (np.diff(np.sort(columns)) != 1).any():
            raise ValueError(f"kernel {name!r} does not see one band of columns: use kernels.bands.")
        bands.append((int(np.min(columns)), int(np.max(columns))))
    if not bands:
        raise ValueError(f"{type(model).__name__} has no kernels on columns: use kernels.bands.")
    return np.array(bands)
