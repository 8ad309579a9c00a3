"""How the fit went: certificate, curves, path."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import Convergence, Curve, Path
from ..numbers import count, fixed, number
from .given import Given

#: most lines in one figure
MOST_CURVES = 8


def convergence(given: Given) -> Convergence | None:
    """The certificate of a convex fit, the residual of another, the gains of a greedy one."""
    inner = given.inner
    if hasattr(inner, "path_"):
        return _greedy(inner)
    if hasattr(inner, "dual_gap_") and np.isfinite(inner.dual_gap_).all():
        return _measured(given, "gap", inner.dual_gap_, "gap", "relative duality gap")
    if not hasattr(inner, "stationarity_"):
        return None
    key = "stationarity" if "stationarity" in _histories(inner)[0] else "primal"
    label = "stationarity residual" if key == "stationarity" else "objective"
    return _measured(given, "stationarity", inner.stationarity_, key, label)


def _measured(given: Given, kind: str, value: Any, key: str, label: str) -> Convergence:
    inner, worst = given.inner, float(np.max(value))
    return Convergence(
        kind=kind,
        final=worst,
        tol=float(inner.tol),
        converged=worst <= inner.tol,
        n_iter=int(np.max(getattr(inner, "n_iter_", 0))),
        y_label=label,
        curves=_curves(given, key),
    )


def _greedy(inner: Any) -> Convergence:
    steps = getattr(inner, "history_", {}).get("share", [])
    curve = Curve("relative gain", range(1, len(steps) + 1), [float(gain) for gain in steps])
    return Convergence(
        "greedy",
        None,
        float(inner.tol),
        inner.path_.stopped != "interrupted",
        int(inner.n_iter_),
        "relative gain",
        (curve,),
    )


def _curves(given: Given, key: str) -> tuple[Curve, ...]:
    histories = _histories(given.inner)
    names = model_names(given, len(histories))
    return tuple(
        Curve(name, range(1, len(one[key]) + 1), [float(value) for value in one[key]])
        for name, one in list(zip(names, histories, strict=True))[:MOST_CURVES]
        if one.get(key)
    )


def _histories(inner: Any) -> list[dict[str, Any]]:
    """What every model of an estimator remembers of its fit."""
    history = getattr(inner, "history_", {})
    return [history] if isinstance(history, dict) else list(history)


def model_names(given: Given, n_models: int) -> list[str]:
    """Names of the models: of the functions where there is one each."""
    if n_models == 1:
        return ["all functions" if len(given.functions) > 1 else "model"]
    if len(given.functions) == n_models:
        return list(given.functions)
    return [f"model {k + 1}" for k in range(n_models)]


def path(given: Given) -> Path | None:
    """The greedy path, or the scores of a search over costs."""
    if hasattr(given.inner, "path_"):
        return _greedy_path(given.inner.path_)
    return _search_path(given.model) if hasattr(given.model, "cv_results_") else None


def _greedy_path(greedy: Any) -> Path | None:
    if len(greedy) == 0:
        return None
    sizes = range(1, len(greedy) + 1)
    curves = [Curve("training error", sizes, greedy.train_error.tolist())]
    if greedy.validation_error is not None:
        curves.append(Curve("validation error", sizes, greedy.validation_error.tolist()))
    names = tuple(greedy.kernel_names[kernels[-1]] for kernels in greedy.sets)
    words = (
        f"The path went through models of 1 to {count(len(greedy), 'kernel')}, beginning with {names[0]}; "
        f"the model with {greedy.n_selected} was chosen."
    )
    return Path("kernels in the model", "error", tuple(curves), greedy.n_selected, False, words, names)


def _search_path(search: Any) -> Path | None:
    """Mean score over C, a curve a regulariser, of a search over pairs of them."""
    results = search.cv_results_
    points = results.get("params", ())
    if not points or not all({"C", "regularizer"} <= set(point) for point in points):
        return None
    names = [str(point["regularizer"]) for point in points]
    means, errors = np.asarray(results["mean_test_score"]), np.asarray(results["std_test_score"])
    costs = np.array([point["C"] for point in points], dtype=float)
    curves = []
    for name in dict.fromkeys(names):
        rows = np.flatnonzero([name == other for other in names])
        rows = rows[np.argsort(costs[rows])]
        curves.append(Curve(name, costs[rows].tolist(), means[rows].tolist(), errors[rows].tolist()))
    best = search.best_params_
    words = (
        f"Cross-validation on the training samples chose {best['regularizer']} and C = {number(best['C'])}, "
        f"with a mean score of {fixed(search.best_score_)}."
    )
    return Path("cost C", "cross-validated score", tuple(curves[:MOST_CURVES]), float(best["C"]), True, words)
