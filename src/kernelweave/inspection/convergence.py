"""How fits converged: gaps, objectives and residuals over the work done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from .._typing import FloatArray
from ..estimators._base import model_names
from ._matplotlib import axes_for
from ._models import fitted_model

#: what to draw, the first that a history has: its name on the axis
RESIDUALS = {
    "gap": "relative duality gap",
    "stationarity": "stationarity residual",
    "share": "relative gain",
    "gain": "gain",
}
OBJECTIVES = {"primal": "objective", "objective": "objective", "log_evidence": "log evidence"}

WORK = {"machines": "single-kernel fits", "passes": "passes over all kernel matrices"}


class ConvergenceDisplay:
    """Residuals or objectives of one or several fits over the work they did.

    Parameters
    ----------
    histories : dict of name -> history
        A history is the `history_` of a fitted model: a dict of lists.
    tols : dict of name -> float, optional
        Tolerances, drawn as horizontal lines.

    Attributes
    ----------
    lines_ : dict of name -> list of matplotlib Line2D
        One line per fit, or two where the objective has a lower bound (primal, dual).
    ax_, figure_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import ConvergenceDisplay
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF())).fit(X, y == 1)
    >>> display = ConvergenceDisplay.from_estimator(clf)
    >>> bool((display.lines_["MKLClassifier"][0].get_ydata() == clf.history_["gap"]).all())
    True
    """

    def __init__(
        self, histories: Mapping[str, Mapping[str, Any]], tols: Mapping[str, float] | None = None
    ) -> None:
        self.histories = histories
        self.tols = tols

    def plot(
        self, ax: Any = None, *, quantity: str = "residual", x: str = "machines", **line_kw: Any
    ) -> Self:
        """Draw the fits.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        quantity : {"residual", "objective"}, default="residual"
            What the stopping rule looks at (duality gap, stationarity residual, gain of the next
            kernel) on a log scale, or the objective, with its dual bound as a dashed line. Fits that
            keep no residual (SMKL) show their objective.
        x : {"machines", "passes"}, default="machines"
            Single-kernel fits (steps, where there are none), or passes over the kernel
            matrices where the fit counts them.
        **line_kw
            Passed on to `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : ConvergenceDisplay
        """
        if quantity not in ("residual", "objective"):
            raise ValueError(f"quantity={quantity!r}: expected 'residual' or 'objective'.")
        if x not in WORK:
            raise ValueError(f"x={x!r}: expected 'machines' or 'passes'.")
        wanted = RESIDUALS if quantity == "residual" else OBJECTIVES
        found = {name: _series(history, wanted) for name, history in self.histories.items()}
        ax = axes_for(self, ax, (6.4, 4.0))
        self.lines_ = {}
        for name, key in found.items():
            work = _work(self.histories[name], x, len(self.histories[name][key]))
            self.lines_[name] = self._draw(ax, name, key, work, line_kw)
        residual = all(key in RESIDUALS for key in found.values())
        if residual:
            ax.set_yscale("log")
            self._draw_tols(ax)
        labels = {**RESIDUALS, **OBJECTIVES}
        ax.set_ylabel(" or ".join(dict.fromkeys(labels[key] for key in found.values())))
        ax.set_xlabel(WORK[x])
        ax.legend(fontsize="small")
        return self

    def _draw(self, ax: Any, name: str, key: str, work: FloatArray, line_kw: dict[str, Any]) -> list[Any]:
        history = self.histories[name]
        style = {"marker": "o", "markersize": 3, **line_kw}
        lines = ax.plot(work, history[key], **{"label": name, **style})
        if key == "primal" and np.isfinite(history["dual"]).any():
            color = lines[0].get_color()
            lines += ax.plot(work, history["dual"], **{"linestyle": "--", "color": color, **style})
        return list(lines)

    def _draw_tols(self, ax: Any) -> None:
        for tol in sorted(set((self.tols or {}).values())):
            ax.axhline(tol, color="0.5", linestyle=":", linewidth=1)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **plot_kw: Any) -> Self:
        """Draw the fit of an estimator, or the fits of several.

        Parameters
        ----------
        estimator : fitted estimator, Pipeline or search; or dict of name -> estimator
            A model of several functions with their own weights (classes) has a line for each.
        ax : matplotlib Axes, optional
        **plot_kw
            Passed on to `plot`.

        Returns
        -------
        display : ConvergenceDisplay
        """
        named = estimator if isinstance(estimator, Mapping) else {None: estimator}
        histories: dict[str, Any] = {}
        tols: dict[str, float] = {}
        for name, one in named.items():
            model = fitted_model(one)
            own = _histories(str(name or type(model).__name__), model)
            histories |= own
            tols |= dict.fromkeys(own, float(model.tol))
        return cls(histories, tols).plot(ax=ax, **plot_kw)


def _histories(title: str, model: Any) -> dict[str, Any]:
    """The histories of a model, one per function with weights of its own."""
    if not hasattr(model, "history_"):
        raise ValueError(f"{type(model).__name__} has no `history_`: fit it again.")
    if isinstance(model.history_, dict):
        return {title: model.history_}
    pairs = zip(model_names(model), model.history_, strict=True)
    return {f"{title}: {name}": history for name, history in pairs}


def _series(history: Mapping[str, Any], wanted: Mapping[str, str]) -> str:
    """The first wanted key with finite values in the history; any other where no wanted one has them."""
    for key in (*wanted, *OBJECTIVES, *RESIDUALS):
        if key in history and np.isfinite(history[key]).any():
            return key
    raise ValueError(f"a history needs one of {', '.join([*RESIDUALS, *OBJECTIVES])}, got {list(history)}.")


def _work(history: Mapping[str, Any], x: str, n: int) -> FloatArray:
    """Work done up to every entry."""
    if x == "passes":
        if "n_passes" not in history:
            raise ValueError(
                "x='passes': this fit does not count passes over the matrices; use x='machines'."
            )
        return np.asarray(history["n_passes"], dtype=float)
    return np.asarray(history.get("n_machines", np.arange(1, n + 1)), dtype=float)
