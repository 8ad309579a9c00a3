"""What was fitted, how the fit went (certificate, curves, path), and what its kernels weigh."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..._typing import IntArray
from ...inspection import drop_one, kernel_alignments, stability_selection
from ...inspection._models import data_for, spread
from ...inspection.alignments import clustered
from ...kernels import resolve_kernels
from ...losses import LOSSES, Loss
from ...regularizers import REGULARIZERS, Regularizer
from ...theory.alignment import effective_number
from .choice import SUM, taken_words
from .data import Convergence, Curve, Fitted, KernelFacts, PathCurves, Redundancy, Stability
from .given import Progress, Subject, as_rows, complete
from .words import count, fixed, number

#: most lines in one figure
MOST_CURVES = 8

#: family of an estimator -> what it does, in a sentence, and its formula
METHODS = {
    "GroupOMPSurvival": (
        "Greedy selection (MKL-GOMP) for censored times: kernels come in one after another, the largest gain "
        "first.",
        "f(x) = Σₘ∈G fₘ(x),   hazard λ₀(t) exp f(x),   min  2/n L(y, f) + λ Σₘ ‖fₘ‖²,   |G| ≤ s",
    ),
    "MKLSurvival": (
        "Multiple kernel learning for censored times: the weights of the kernels are learned together with a "
        "risk.",
        "f(x) = Σₘ fₘ(x),   min  C L(y, f) + ½ Σₘ ‖fₘ‖²/dₘ + ½ h(d)",
    ),
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

#: other forms of novelty detection -> formula
FORMS = {
    "level": "f(x) = Σₘ fₘ(x) − 1,   min  C Σᵢ max(0, −f(xᵢ)) + ½ Σₘ ‖fₘ‖²/dₘ + ½ h(d)",
    "svdd": "f(x) = ½ (R² − ‖φ(x) − c‖²),   min  ½ R² − ½ Σₘ dₘ κₘ + C Σᵢ max(0, −f(xᵢ)) + ½ h(d)",
}

#: how the functions of several classes belong together
SCHEMES = {
    "shared": " All classes share the kernel weights.",
    "joint": " All classes are learned together, by one loss, and share the kernel weights.",
    "ovo": " One function for each pair of classes.",
}


def fitted(given: Subject, source: dict[str, Any] | None) -> Fitted:
    """Estimator, method, sizes and classes."""
    inner, name = given.inner, type(given.inner).__name__
    method, formula = next(words for family, words in METHODS.items() if name.startswith(family))
    formula = FORMS.get(getattr(inner, "form", ""), formula)
    if given.auto is not None:
        method, formula = taken_words(given)
    elif name in ("MKLClassifier", "MKLRegressor", "MKLSurvival") and given.uniform:
        method = "The plain sum of the kernels: all have the same weight."
        formula = SUM if given.task != "survival" else "f(x) = Σₘ fₘ(x),   min  C L(y, f) + ½ Σₘ ‖fₘ‖²"
    if hasattr(inner, "loss"):
        method += f" Loss: {_short(LOSSES.resolve(inner.loss, Loss))}."
    if hasattr(inner, "regularizer") and not given.stacked and not given.even:
        own = not hasattr(inner, "kernels")  # generalized MKL has penalties of its own
        rule = inner.regularizer if own else REGULARIZERS.resolve(inner.regularizer, Regularizer)
        method += f" Regulariser: {_short(rule)}."
    method += SCHEMES.get(getattr(inner, "multiclass", "") if given.functions[2:] else "", "")
    labels = inner.classes_ if given.task == "classification" and given.y is not None else ()
    return Fitted(
        estimator=given.name,
        task=given.task,
        method=method,
        formula=formula,
        n_train=len(as_rows(given.X)),
        n_test=len(as_rows(given.X_test)) if given.held_out else 0,
        n_features=None if given.precomputed else getattr(inner, "n_features_in_", None),
        functions=given.functions,
        classes=tuple((str(label), int((np.asarray(given.y) == label).sum())) for label in labels),
        source=dict(source or {}),
        n_events=int(given.y["event"].sum()) if given.task == "survival" else None,
    )


def _short(part: Any) -> str:
    """A part of the model in words, with numbers cut to four digits."""
    return re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.4g}", str(part))


def convergence(given: Subject) -> Convergence | None:
    """The certificate of a convex fit, the residual of one that is not convex, the gains of a greedy one."""
    inner = given.inner
    history = getattr(inner, "history_", {})
    histories = [history] if isinstance(history, dict) else list(history)  # one per model
    if hasattr(inner, "path_"):
        gains = [[float(gain) for gain in one.get("share", [])] for one in histories]
        curves = [Curve("relative gain", range(1, len(steps) + 1), steps) for steps in gains[:MOST_CURVES]]
        done, n_iter = inner.path_.stopped != "interrupted", int(np.max(inner.n_iter_))
        return Convergence("greedy", None, float(inner.tol), done, n_iter, "relative gain", tuple(curves))
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
    stacked = len(given.auto._taken) if given.stacked else 1
    return Convergence(
        kind, worst, float(inner.tol), worst <= inner.tol, n_iter, label, tuple(curves), stacked
    )


def model_names(given: Subject, n_models: int) -> list[str]:
    """Names of the models: those of the functions where each has its own."""
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
    names = tuple(greedy.entered)
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


# -- the kernels --------------------------------------------------------------------------------------


#: sub-samples of few and of many samples, and how many are few
ROUNDS, FEWER_ROUNDS, FEW = 50, 20, 600

#: most samples of the sub-samples, and bytes of their Gram matrices; fewer than the least say nothing
MOST_SAMPLES, MATRIX_BYTES, LEAST_SAMPLES = 1500, 400_000_000, 20

#: most kernels of the heat map, and samples on which they are compared
MOST_ALIGNED, ALIGNED_SAMPLES = 40, 500


def stability(given: Subject, wanted: Any, progress: Progress) -> Stability | None:
    """Shares of the weights over sub-samples: computed, or taken from a result; None when not wanted."""
    if wanted is False or wanted is None:
        return None
    size = None
    if wanted is True:
        M, n = len(given.inner.kernel_names_), len(as_rows(given.X))
        size = min(n, MOST_SAMPLES, int((MATRIX_BYTES / (8 * M)) ** 0.5))
        if size < LEAST_SAMPLES:
            return None
        X, y, groups = given.X, given.y, given.groups
        if size < n:
            rows = spread(n, size)
            X, y = given.subset(X, rows), None if y is None else np.asarray(y)[rows]
            groups = None if groups is None else np.asarray(groups)[rows]
        wanted = stability_selection(
            given.model,
            X,
            y,
            n_subsamples=ROUNDS if size <= FEW else FEWER_ROUNDS,
            random_state=given.random_state,
            groups=groups,
            progress=lambda done, total: progress(f"weights on sub-sample {done} of {total}"),
        )
    low, high, frequency = np.asarray(wanted.low), np.asarray(wanted.high), np.asarray(wanted.frequency)
    n_rounds = len(wanted.weights)
    return Stability(low, high, frequency, n_rounds, float(wanted.level), float(wanted.threshold), size)


def kernels(given: Subject, stability: Stability | None) -> KernelFacts:
    """Weights, norms and stability of the kernels; spread and worth of their components."""
    weights = np.atleast_2d(np.asarray(given.inner.weights_, dtype=float))
    norms, parts, drop = getattr(given.inner, "norms_", None), given.parts, None
    if parts is not None and given.truth is not None and given.task != "novelty":
        drop = np.asarray(drop_one(given.model, given.seen, given.truth).effects)
    return KernelFacts(
        names=tuple(str(name) for name in given.inner.kernel_names_),
        models=tuple(model_names(given, len(weights))),
        weights=weights,
        norms=None if norms is None else np.atleast_2d(np.asarray(norms, dtype=float)),
        stability=stability,
        spread=None if parts is None else np.sqrt((parts.std(axis=1) ** 2).mean(axis=0)),
        drop=drop,
        drop_metric=given.metric,
    )


def redundancy(given: Subject, found: KernelFacts) -> Redundancy | None:
    """Alignments of the heaviest kernels, like ones side by side."""
    chosen = np.sort(_kept(given.inner, found.heaviest(len(found.names)))[:MOST_ALIGNED])
    if given.parts is None or len(chosen) < 2:
        return None
    model, X = given.model, given.X
    if (
        given.inner.model_.source.given and not given.precomputed
    ):  # kernels with gaps: only samples without them
        model, X = given.inner.kernels, complete(data_for(given.model, X))
        chosen = chosen[chosen < len(resolve_kernels(model, X))]  # without indicators of gaps
        if len(X) < LEAST_SAMPLES or len(chosen) < 2:
            return None
    matrix = kernel_alignments(model, X, ALIGNED_SAMPLES, kernels=chosen)
    order = clustered(matrix, optimal_ordering=True)
    names = tuple(found.names[m] for m in chosen[order])
    left_out = len(found.names) - len(chosen)
    return Redundancy(names, matrix[np.ix_(order, order)], effective_number(matrix), left_out)


def _kept(inner: Any, kernels: IntArray) -> IntArray:
    """The kernels that the model still has: one read from a file has only those with weight."""
    held = getattr(inner.model_.source, "kernels", None)
    return kernels if held is None else np.array([m for m in kernels if held[m] is not None], dtype=int)
