"""What was fitted, and how the fit went: certificate, curves, path."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ....losses import LOSSES, Loss
from ....regularizers import REGULARIZERS, Regularizer
from ..data import Convergence, Curve, Fitted, PathCurves
from ..numbers import count, fixed, number
from .given import Subject, as_rows

#: most lines in one figure
MOST_CURVES = 8

#: family of an estimator -> what it does, in a sentence, and its formula
METHODS = {
    "EmpiricalBayes": (
        "Empirical Bayes: a sum of Gaussian processes, one per kernel, whose weights maximise the evidence.",
        "f ~ GP(b, Σₘ dₘ kₘ),   weights d maximise log p(y | d)",
    ),
    "GroupOMP": (
        "Greedy selection (MKL-GOMP): kernels come in one after another, the largest gain first.",
        "f(x) = b + Σₘ∈G fₘ(x),   min  mean loss + λ Σₘ ‖fₘ‖²,   |G| ≤ s",
    ),
    "GMKL": (
        "Generalized MKL: one kernel whose parameters are learned together with the coefficients.",
        "f(x) = b + Σᵢ αᵢ k(x, xᵢ; d),   min  ½‖w‖² + C Σᵢ V(yᵢ, f(xᵢ)) + r(d)",
    ),
    "MKLOneClass": (
        "Novelty detection: the region where most training samples lie, with learned kernel weights.",
        "f(x) = Σₘ fₘ(x) − ρ,   min  C Σᵢ max(0, −f(xᵢ)) − ρ + ½ Σₘ ‖fₘ‖²/dₘ + ½ h(d)",
    ),
    "MKL": (
        "Multiple kernel learning: the weights of the kernels are learned together with the coefficients.",
        "f(x) = b + Σₘ fₘ(x),   min  C Σᵢ V(yᵢ, f(xᵢ)) + ½ Σₘ ‖fₘ‖²/dₘ + ½ h(d)",
    ),
}


def fitted(given: Subject, source: dict[str, Any] | None) -> Fitted:
    """Estimator, method, sizes and classes."""
    inner, name = given.inner, type(given.inner).__name__
    method, formula = next(words for family, words in METHODS.items() if name.startswith(family))
    if hasattr(inner, "loss"):
        method += f" Loss: {_short(LOSSES.resolve(inner.loss, Loss))}."
    if hasattr(inner, "regularizer"):  # generalized MKL has penalties of its own
        own = not hasattr(inner, "kernels")
        rule = inner.regularizer if own else REGULARIZERS.resolve(inner.regularizer, Regularizer)
        method += f" Regulariser: {_short(rule)}."
    labels = inner.classes_ if given.task == "classification" and given.y is not None else ()
    return Fitted(
        estimator=name,
        task=given.task,
        method=method,
        formula=formula,
        n_train=len(as_rows(given.X)),
        n_test=len(as_rows(given.X_test)) if given.held_out else 0,
        n_features=None if given.precomputed else getattr(inner, "n_features_in_", None),
        functions=given.functions,
        classes=tuple((str(label), int((np.asarray(given.y) == label).sum())) for label in labels),
        source=dict(source or {}),
    )


def _short(part: Any) -> str:
    """A part of the model in words, with numbers cut to four digits."""
    return re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.4g}", str(part))


def convergence(given: Subject) -> Convergence | None:
    """The certificate of a convex fit, the residual of another, the gains of a greedy one."""
    inner = given.inner
    if hasattr(inner, "path_"):
        steps = [float(gain) for gain in getattr(inner, "history_", {}).get("share", [])]
        curve = Curve("relative gain", range(1, len(steps) + 1), steps)
        done, n_iter = inner.path_.stopped != "interrupted", int(inner.n_iter_)
        return Convergence("greedy", None, float(inner.tol), done, n_iter, "relative gain", (curve,))
    history = getattr(inner, "history_", {})
    histories = [history] if isinstance(history, dict) else list(history)  # one per model
    if hasattr(inner, "dual_gap_") and np.isfinite(inner.dual_gap_).all():
        kind, value, key, label = "gap", inner.dual_gap_, "gap", "relative duality gap"
    elif not hasattr(inner, "stationarity_"):
        return None
    else:
        key = "stationarity" if "stationarity" in histories[0] else "primal"
        label = "stationarity residual" if key == "stationarity" else "objective"
        kind, value = "stationarity", inner.stationarity_
    worst, n_iter = float(np.max(value)), int(np.max(getattr(inner, "n_iter_", 0)))
    curves = [
        Curve(name, range(1, len(one[key]) + 1), [float(value) for value in one[key]])
        for name, one in list(zip(model_names(given, len(histories)), histories, strict=True))[:MOST_CURVES]
        if one.get(key)
    ]
    return Convergence(kind, worst, float(inner.tol), worst <= inner.tol, n_iter, label, tuple(curves))


def model_names(given: Subject, n_models: int) -> list[str]:
    """Names of the models: of the functions where there is one each."""
    if n_models == 1:
        return ["all functions" if len(given.functions) > 1 else "model"]
    if len(given.functions) == n_models:
        return list(given.functions)
    return [f"model {k + 1}" for k in range(n_models)]


def path(given: Subject) -> PathCurves | None:
    """The greedy path, or the scores of a search over costs."""
    if hasattr(given.inner, "path_"):
        return _greedy_path(given.inner.path_)
    return _search_path(given.model) if hasattr(given.model, "cv_results_") else None


def _greedy_path(greedy: Any) -> PathCurves | None:
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
    return PathCurves("kernels in the model", "error", tuple(curves), greedy.n_selected, False, words, names)


def _search_path(search: Any) -> PathCurves | None:
    """Mean score over C, one curve per regulariser, of a search over pairs of them."""
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
    return PathCurves(
        "cost C", "cross-validated score", tuple(curves[:MOST_CURVES]), float(best["C"]), True, words
    )
