"""Kernel weights or scores along a path as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ._matplotlib import MOST_NAMED, axes_for, of_all, shown_kernels


class PathDisplay:
    """Lines over the values of a parameter: weights, errors or held-out scores.

    It is best made with `from_path` (regularisation and greedy paths) or `from_estimator` (searches
    and greedy estimators).

    Parameters
    ----------
    values : sequence of length n_values
        Places on the axis: numbers, or names.
    curves : array-like of shape (n_values, n_curves)
    labels : sequence of str of length n_curves
    x_label, y_label : str
    errors : array-like of shape (n_values, n_curves), optional
        Half-width of a band around each curve.
    chosen : int, optional
        Position in `values` of what was chosen, marked by a vertical line.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
    bands_ : list of matplotlib PolyCollection
    ax_, figure_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import PathDisplay
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF()), regularizer=kw.LpNorm(p=1))
    >>> path = kw.mkl_path(clf, X, y == 1, values=[0.1, 1.0, 10.0])
    >>> len(PathDisplay.from_path(path).lines_)
    4
    """

    def __init__(
        self,
        values: Sequence[Any],
        curves: ArrayLike,
        labels: Sequence[str],
        x_label: str = "",
        y_label: str = "",
        errors: ArrayLike | None = None,
        chosen: int | None = None,
    ) -> None:
        self.values = values
        self.curves = curves
        self.labels = labels
        self.x_label = x_label
        self.y_label = y_label
        self.errors = errors
        self.chosen = chosen

    def plot(self, ax: Any = None, *, max_kernels: int | str | None = "auto", **line_kw: Any) -> Self:
        """Draw the lines; the legend names the ten that go highest.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_kernels : int, "auto" or None, default="auto"
            Draw only that many lines, those that go highest; "auto" draws all, or 60 if there are more.
        **line_kw
            Passed on to `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : PathDisplay
        """
        curves = np.asarray(self.curves, dtype=float)
        heights = np.nanmax(np.abs(curves), axis=0)
        shown = shown_kernels(heights, max_kernels)
        ax = axes_for(self, ax, (6.4, 4.0))
        x = self._places(ax)
        named = set(shown[np.argsort(-heights[shown], kind="stable")[:MOST_NAMED]].tolist())
        self.lines_ = [self._line(ax, x, m, m in named, line_kw) for m in shown.tolist()]
        self.bands_ = [] if self.errors is None else self._draw_bands(ax, x, shown.tolist())
        if self.chosen is not None:
            ax.axvline(x[self.chosen], color="0.5", linestyle="--", linewidth=1)
        ax.set_xlabel(self.x_label)
        ax.set_ylabel(self.y_label + of_all(len(shown), curves.shape[1]))
        ax.legend(fontsize="small")
        return self

    def _places(self, ax: Any) -> FloatArray:
        """The values themselves, on a log scale where they span decades; or one after another."""
        if not all(isinstance(value, int | float | np.number) for value in self.values):
            x = np.arange(len(self.values), dtype=float)
            ax.set_xticks(x, [str(value) for value in self.values], rotation=45, ha="right")
            return x
        x = np.asarray(self.values, dtype=float)
        if len(x) and x.min() > 0 and x.max() >= 30 * x.min():
            ax.set_xscale("log")
        return x

    def _line(self, ax: Any, x: FloatArray, m: int, named: bool, line_kw: dict[str, Any]) -> Any:
        style = {"label": str(self.labels[m])} if named else {"color": "0.8", "zorder": 1}
        marker = "o" if len(x) <= 30 else None
        y = np.asarray(self.curves, dtype=float)[:, m]
        return ax.plot(x, y, **{"marker": marker, "markersize": 3, **style, **line_kw})[0]

    def _draw_bands(self, ax: Any, x: FloatArray, shown: list[int]) -> list[Any]:
        curves, errors = np.asarray(self.curves, dtype=float), np.asarray(self.errors, dtype=float)
        return [
            ax.fill_between(
                x,
                curves[:, m] - errors[:, m],
                curves[:, m] + errors[:, m],
                color=line.get_color(),
                alpha=0.15,
            )
            for m, line in zip(shown, self.lines_, strict=True)
        ]

    @classmethod
    def from_path(cls, path: Any, *, quantity: str = "weights", ax: Any = None, **plot_kw: Any) -> Self:
        """Draw what `mkl_path` returns, or the `path_` of a greedy estimator.

        Parameters
        ----------
        path : Path or GreedyPath
            A `Path` shows one line per kernel, the mean over its models; a `GreedyPath` its training and,
            where it has them, validation errors over the number of kernels, each number labelled with the
            kernel that came in.
        quantity : {"weights", "norms"}, default="weights"
            What to draw of a `Path`.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : PathDisplay
        """
        if hasattr(path, "sets"):
            return cls(**_greedy(path)).plot(ax=ax, **plot_kw)
        if quantity not in ("weights", "norms"):
            raise ValueError(f"quantity={quantity!r}: expected 'weights' or 'norms'.")
        table = np.asarray(getattr(path, quantity))
        table = table.mean(axis=1) if table.ndim == 3 else table
        label = {"weights": "kernel weight", "norms": "norm of the component"}[quantity]
        name = path.param.rpartition("__")[2]
        return cls(path.values, table, path.kernel_names, name, label).plot(ax=ax, **plot_kw)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **plot_kw: Any) -> Self:
        """Draw the path of a greedy estimator, or the scores of a cross-validated search.

        Parameters
        ----------
        estimator : fitted estimator
            `MKLClassifierCV` and `MKLRegressorCV` show their held-out scores over C, one line per
            regulariser; `GroupOMPClassifierCV` and `GroupOMPRegressorCV` over the number of kernels, one
            line per ridge; `GroupOMPClassifier` and `GroupOMPRegressor` their errors.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : PathDisplay
        """
        if hasattr(estimator, "cv_results_"):
            return cls(**_scores(estimator)).plot(ax=ax, **plot_kw)
        if hasattr(estimator, "path_"):
            return cls.from_path(estimator.path_, ax=ax, **plot_kw)
        raise ValueError(
            f"{type(estimator).__name__} has neither `path_` nor `cv_results_`: pass what mkl_path returns "
            "to PathDisplay.from_path."
        )


def _greedy(path: Any) -> dict[str, Any]:
    """Errors of a greedy path, one value per model."""
    curves = {"training": path.train_error}
    if path.validation_error is not None:
        curves["validation"] = path.validation_error
    return {
        "values": [f"{size}: {names}" for size, names in enumerate(path.entered, 1)],
        "curves": np.column_stack(list(curves.values())),
        "labels": list(curves),
        "x_label": "kernels, in the order in which they came in",
        "y_label": "error",
        "chosen": path.n_selected - 1 if path.n_selected else None,
    }


def _scores(search: Any) -> dict[str, Any]:
    """Mean held-out scores of a search over two parameters, one along the axis and one per line."""
    results = search.cv_results_
    along, apart = _searched(results["params"][0])
    values = sorted({point[along] for point in results["params"]})
    names = list(dict.fromkeys(_written(point[apart]) for point in results["params"]))
    curves, errors = np.full((2, len(values), len(names)), np.nan)
    for k, point in enumerate(results["params"]):
        place = values.index(point[along]), names.index(_written(point[apart]))
        curves[place], errors[place] = results["mean_test_score"][k], results["std_test_score"][k]
    return {
        "values": values,
        "curves": curves,
        "labels": names,
        "x_label": {"C": "C", "n_kernels": "number of kernels"}[along],
        "y_label": "held-out score",
        "errors": errors,
        "chosen": values.index(search.best_params_[along]),
    }


def _searched(point: dict[str, Any]) -> tuple[str, str]:
    """The two parameters of a search."""
    for pair in (("C", "regularizer"), ("n_kernels", "alpha")):
        if set(pair) <= set(point):
            return pair
    raise ValueError(
        f"cv_results_ is of a search over {', '.join(point)}: only those over C and regularizer, or over "
        "n_kernels and alpha, have a path."
    )


def _written(value: Any) -> str:
    return f"alpha = {value:g}" if isinstance(value, float) else str(value)
