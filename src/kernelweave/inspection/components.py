"""What each kernel adds to a prediction, f(x) = b + sum_m f_m(x), as numbers and as bars."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring

from .._typing import FloatArray
from ..estimators._base import function_names
from ._matplotlib import axes_for, check_names, of_all, shown_kernels
from ._models import data_for, fitted_model, inputs_for


def contributions(model: Any, X: Any) -> FloatArray:
    """What each kernel adds to the value of every sample.

        f(x) = b + sum_m f_m(x),    f_m(x) = d_m sum_i alpha_i k_m(x, x_i)

    with the normalised kernels k_m, the intercept b = `intercept_` and f the decision value (for a regressor,
    the prediction). A centred kernel (``normalize="center"``) has components of mean zero over the training
    samples; without centring they may differ by constants that cancel in the sum. Where every kernel is
    linear, `intercept_` belongs to `coef_` and holds such constants too.

    Parameters
    ----------
    model : fitted estimator, Pipeline ending in one, or search
        Anything that learns kernel weights. For empirical Bayes f is the posterior mean of the latent
        function, before a classifier moderates it; for `GMKLClassifier` and `GMKLRegressor` the kernel
        must be a `WeightedSum`.
    X : array-like, sparse matrix or DataFrame of shape (n, n_features), or kernels
        As in the model's ``predict``.

    Returns
    -------
    parts : ndarray of shape (n, M), or (n_functions, n, M)
        The latter for models of several functions: classes, pairs of classes (one-vs-one), outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import contributions
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF())).fit(X, y == 1)
    >>> parts = contributions(clf, X)
    >>> parts.shape
    (150, 4)
    >>> bool(np.allclose(parts.sum(axis=1) + clf.intercept_, clf.decision_function(X)))
    True
    """
    parts = fitted_model(model).model_.components(inputs_for(model, X))
    result: FloatArray = parts[0] if len(parts) == 1 else parts
    return result


#: a deviation below this share of the values is that of equal values
ROUNDING = 1e-14

#: widths and labels of the bars, and what they are
Bars = tuple[FloatArray, list[str], str]


class ContributionDisplay:
    """Bars of the components f_m of f(x) = b + sum_m f_m(x).

    Over all samples a bar is the share of a kernel in the variation of the prediction,

        share_m = std f_m / sum_l std f_l

    (standard deviations over the samples, which constants do not change). For one sample, and where the
    samples do not vary, the bars are b, the f_m of that sample and their sum f, which is its decision value
    or prediction.

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
        """Share of every kernel in the variation of the prediction, with sum 1; the mean over functions."""
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
            Which function of a sample, where there are several (class, pair of classes, output); by default
            the one with the largest value.
        max_kernels : int, "auto" or None, default="auto"
            Show only that many kernels, the largest; "auto" shows all, or the 60 largest if there are more.
            For one sample the others are summed in a bar of their own.
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


@dataclass(frozen=True)
class DropOneResult:
    """Scores of a model without each of its kernels.

    Attributes
    ----------
    kernel_names : list of str
    full_score : float
        With all kernels.
    scores : ndarray of shape (M,)
        Without kernel m.
    """

    kernel_names: list[str]
    full_score: float
    scores: FloatArray

    @property
    def effects(self) -> FloatArray:
        """full_score - scores: what the score loses without kernel m."""
        return np.asarray(self.full_score - self.scores)

    def frame(self) -> Any:
        """Kernel, score without it and effect as a pandas DataFrame, the largest effect first."""
        import pandas as pd

        table = {"kernel": self.kernel_names, "score_without": self.scores, "effect": self.effects}
        return pd.DataFrame(table).sort_values("effect", ascending=False, kind="stable", ignore_index=True)


def drop_one(model: Any, X: Any, y: Any, scoring: Any = None) -> DropOneResult:
    """Score of a model with the component f_m of one kernel removed, for each kernel.

    The other components, the intercept and whatever turns decision values into probabilities stay as
    they are: nothing is fitted again. The effect is what the model at hand owes to a kernel on these
    samples. If two kernels say the same thing, each may have a small effect; in a fit without one, the other
    would take its place.

    Parameters
    ----------
    model : fitted estimator, Pipeline ending in one, or search
    X, y
        Samples to score, preferably ones that the model was not trained on.
    scoring : str or callable, optional
        The model's own ``score`` by default.

    Returns
    -------
    result : DropOneResult
        `scores`, `full_score`, `effects` and `frame()`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import drop_one
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF())).fit(X[::2], y[::2])
    >>> result = drop_one(clf, X[1::2], y[1::2])
    >>> result.kernel_names[int(result.effects.argmax())]
    'x2'
    """
    inner, data = fitted_model(model), data_for(model, X)
    parts, values = _taken_apart(inner.model_, inputs_for(model, X))
    scorer = check_scoring(inner, scoring)
    full = float(scorer(_answering(inner, values), data, y))
    scores = np.full(parts.shape[2], full)
    for m in np.flatnonzero(parts.any(axis=(0, 1))):
        scores[m] = scorer(_answering(inner, values.without(parts[:, :, m])), data, y)
    return DropOneResult(list(inner.model_.source.names), full, scores)


@dataclass(frozen=True)
class _Values:
    """Stands in for a predictor: answers with given values (n, n_functions), whatever it is asked."""

    values: FloatArray
    variances: FloatArray | None
    link: Any
    posterior: Any
    source: Any

    def __call__(self, X: Any) -> FloatArray:
        return self.values

    def staged(self, X: Any, stages: Any) -> FloatArray:
        return self.values[:, None]

    def moments(self, X: Any) -> Any:
        return self.values, self.variances

    def without(self, part: FloatArray) -> _Values:
        """Without the share (n_functions, n) of a kernel; probabilities are moderated as with all kernels."""
        return replace(self, values=self.values - part.T)


def _taken_apart(predictor: Any, X: Any) -> tuple[FloatArray, _Values]:
    """The components, and their sum."""
    parts = predictor.components(X)
    values = parts.sum(axis=2).T + predictor.intercept
    # precomputed test matrices have no k(x, x), hence no variances
    known = predictor.posterior and not predictor.source.given
    variances = predictor.variance(X) if known else None
    return parts, _Values(values, variances, predictor.link, predictor.posterior, predictor.source)


def _answering(model: Any, values: _Values) -> Any:
    """A copy of the model whose functions have these values."""
    frozen = copy(model)
    frozen.model_ = values
    return frozen
