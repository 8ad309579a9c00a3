"""What the kernels add to predictions, over many samples or for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..estimators._base import function_names
from ._matplotlib import axes_for, check_names, of_all, shown_kernels
from ._models import fitted_model
from .components import contributions

#: a deviation below this share of the values is that of equal values
ROUNDING = 1e-14

#: widths and labels of the bars, and what they are
Bars = tuple[FloatArray, list[str], str]


class ContributionDisplay:
    """Bars of the components f_m of f(x) = b + sum_m f_m(x).

    Over all samples a bar is the share of a kernel in the variation of the prediction,

        share_m = std f_m / sum_l std f_l

    (standard deviations over the samples, which constants do not change). For one sample, and where the
    samples do not vary, the bars are b, the f_m of that sample and their sum f, which makes up its decision
    value or prediction.

    Parameters
    ----------
    parts : array-like of shape (n, n_kernels), or (n_functions, n, n_kernels)
        What `contributions` returns.
    intercept : float, or array-like of shape (n_functions,)
    kernel_names : sequence of str of length n_kernels
    function_names : sequence of str of length n_functions, optional
        Names of the functions (classes, pairs of classes, outputs), for the label.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
    ax_, figure_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import ContributionDisplay
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF())).fit(X, y == 1)
    >>> display = ContributionDisplay.from_estimator(clf, X, sample=3)
    >>> bool(abs(display.bars_[-1].get_width() - clf.decision_function(X[3:4])[0]) < 1e-9)
    True
    """

    def __init__(
        self,
        parts: ArrayLike,
        intercept: ArrayLike,
        kernel_names: Sequence[str],
        function_names: Sequence[Any] | None = None,
    ) -> None:
        self.parts = parts
        self.intercept = intercept
        self.kernel_names = kernel_names
        self.function_names = function_names

    @property
    def shares(self) -> FloatArray:
        """Share of every kernel in the variation of the prediction, of sum 1; the mean over functions."""
        parts = self._functions()
        deviations = parts.std(axis=1)
        deviations[deviations <= ROUNDING * np.abs(parts).max(axis=1)] = 0.0
        totals = deviations.sum(axis=1, keepdims=True)
        return np.asarray((deviations / np.where(totals > 0, totals, 1.0)).mean(axis=0))

    def _functions(self) -> FloatArray:
        parts = np.asarray(self.parts, dtype=float)
        return parts[None] if parts.ndim == 2 else parts

    def plot(
        self,
        ax: Any = None,
        *,
        sample: int | None = None,
        function: int | None = None,
        max_kernels: int | str | None = "auto",
        **bar_kw: Any,
    ) -> Self:
        """Draw the shares, or the components of one sample.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        sample : int, optional
            Row of the sample to take apart; by default the shares over all are drawn, or the first sample
            where the prediction does not vary.
        function : int, optional
            Which function of a sample, where there are several (class, pair of classes, output); by
            default the one of largest value.
        max_kernels : int, "auto" or None, default="auto"
            Show only that many kernels, the largest; "auto" shows all, or the 60 largest of more. For
            one sample the others are summed in a bar of their own.
        **bar_kw
            Passed on to `matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : ContributionDisplay
        """
        check_names(list(self.kernel_names), np.shape(self.parts)[-1])
        if sample is None and not self.shares.any():
            sample = 0
        bars = self._shares_bars(max_kernels) if sample is None else self._bars(sample, function, max_kernels)
        widths, labels, title = bars
        ax = axes_for(self, ax, (6.4, 1.2 + 0.3 * len(labels)))
        self.bars_ = ax.barh(np.arange(len(labels)), widths, **{"color": _colors(widths, sample), **bar_kw})
        ax.set_yticks(np.arange(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)  # the first on top
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        ax.set_xlabel(title)
        return self

    def _shares_bars(self, max_kernels: int | str | None) -> Bars:
        shares = self.shares
        order = shown_kernels(shares, max_kernels)
        title = "share of the variation" + of_all(len(order), len(shares))
        return shares[order], [self.kernel_names[m] for m in order], title

    def _bars(self, sample: int, function: int | None, max_kernels: int | str | None) -> Bars:
        """Intercept, components of one sample, what is left over, and the sum."""
        parts, intercepts = self._functions(), np.ravel(self.intercept)
        if not -parts.shape[1] <= sample < parts.shape[1]:
            raise ValueError(f"sample={sample!r}: there are {parts.shape[1]} samples.")
        sums = parts[:, sample].sum(axis=1) + intercepts
        j = int(sums.argmax()) if function is None else function
        row = parts[j, sample]
        order = shown_kernels(np.abs(row), max_kernels)
        widths, labels = [intercepts[j], *row[order]], ["intercept", *(self.kernel_names[m] for m in order)]
        if len(order) < len(row):
            widths.append(row.sum() - row[order].sum())
            labels.append(f"{len(row) - len(order)} other kernels")
        names = range(len(parts)) if self.function_names is None else self.function_names
        of = f", function {names[j]}" if len(parts) > 1 else ""
        return np.array([*widths, sums[j]]), [*labels, "sum"], f"part of the value of sample {sample}{of}"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sample: int | None = None,
        function: int | None = None,
        ax: Any = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the components of a fitted estimator on samples.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline or search
        X : array-like, sparse matrix or DataFrame, or kernels
        sample, function
            As in `plot`.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : ContributionDisplay
        """
        model = fitted_model(estimator)
        parts, b, names = contributions(estimator, X), model.model_.intercept, model.model_.source.names
        display = cls(parts, b[0] if len(b) == 1 else b, names, function_names(model))
        return display.plot(ax=ax, sample=sample, function=function, **plot_kw)


def _colors(widths: FloatArray, sample: int | None) -> Any:
    """For one sample, what pulls up and what pulls down; intercept and sum in grey."""
    if sample is None:
        return "C0"
    colors = ["C0" if width >= 0 else "C3" for width in widths]
    colors[0] = colors[-1] = "0.5"
    return colors
