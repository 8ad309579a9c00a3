"""What a fitted model says: certificate, weights, predictions, scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import metrics

from ... import metrics as survival_metrics
from ..._words import counted
from ...estimators._base import model_names
from ...estimators._survival import RiskScore
from ...inspection._models import competition, fitted_model
from ...kernels import Views

#: weights below this share of the largest count as zero
LIVE = 1e-6

#: what `weight_rows` gives, as keys of JSON
WEIGHT_COLUMNS = ("model", "kernel", "weight", "norm")


def certificate(model: Any) -> dict[str, Any]:
    """What was proved about a fit: the duality gap of convex ones, the residual of others."""
    tol = float(getattr(model, "tol", np.nan))
    gap = float(np.max(getattr(model, "dual_gap_", np.inf)))
    if np.isfinite(gap):
        return {"kind": "duality gap", "value": gap, "tol": tol, "certified": gap <= tol}
    if hasattr(model, "path_"):
        return {"kind": "greedy path", "value": None, "tol": None, "certified": None}
    value = float(np.max(model.stationarity_))
    return {"kind": "stationarity residual", "value": value, "tol": tol, "certified": None}


def certificate_words(model: Any) -> str:
    """The certificate in a sentence."""
    proof = certificate(model)
    kind, value, tol = proof["kind"], proof["value"], proof["tol"]
    chosen = competition(model)
    n_joined = 1 if chosen is None else len(chosen._taken)
    if n_joined > 1 and value is not None and value <= tol:
        kind = "relative gap" if proof["certified"] else kind
        return (
            f"Each of the {n_joined} models was solved to a {kind} of at most {value:.1e}, asked for "
            f"{tol:.0e}. Their shares come from held-out rows."
        )
    if value is None:
        found = counted(live_kernels(model), "kernel")
        return f"Greedy selection of {found}; there is no optimum to be certified."
    if proof["certified"] is None:
        state = "stationary" if value <= tol else "not stationary yet"
        return f"Not convex, {state}: {kind} {value:.1e}, asked for {tol:.0e}."
    if proof["certified"]:
        return (
            f"Certified: relative {kind} {value:.1e}, asked for {tol:.0e}. No other weights and coefficients "
            "lower the objective by a larger share."
        )
    return f"Not certified: relative {kind} {value:.1e}, asked for {tol:.0e}; fit longer."


def score(task: str, truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Scores of predictions, the main one first."""
    if task == "classification":
        balanced = metrics.recall_score(truth, predicted, average="macro", zero_division=0.0)
        return {"accuracy": float(np.mean(truth == predicted)), "balanced accuracy": float(balanced)}
    if task == "survival":
        known = truth["event"], truth["time"], predicted
        return {
            "concordance": survival_metrics.concordance_harrell(*known),
            "concordance (Uno)": survival_metrics.concordance_uno(*known, tau=truth["time"].max()),
        }
    error = float(np.sqrt(np.mean((truth - predicted) ** 2)))
    return {"R2": float(metrics.r2_score(truth, predicted)) if len(truth) > 1 else np.nan, "RMSE": error}


#: the score that decides
METRICS = {"classification": "accuracy", "regression": "R2", "survival": "concordance"}

#: what sees no kernel
TRIVIAL = {"classification": "majority class", "regression": "mean", "survival": "the same risk for all"}


def trivial_score(task: str, y: np.ndarray, truth: np.ndarray) -> float:
    """The main score of the majority class, or of the mean, of the training targets; of risks all alike."""
    if task == "survival":
        return 0.5
    if task == "classification":
        classes, counts = np.unique(y, return_counts=True)
        return float(np.mean(truth == classes[np.argmax(counts)]))
    return score(task, truth, np.full(len(truth), y.mean()))["R2"]


def weight_headings(model: Any) -> tuple[str, ...]:
    """Headings of `weight_rows`; the first is "class" where there is a row for every class.

    Examples
    --------
    >>> from types import SimpleNamespace as Fitted
    >>> weight_headings(Fitted(weights_=np.eye(3), classes_=np.array(["a", "b", "c"])))
    ('class', 'kernel', 'weight', 'norm')
    """
    model = fitted_model(model)
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    by_class = len(classes) > 1 and model_names(model) == classes
    return ("class" if by_class else WEIGHT_COLUMNS[0], *WEIGHT_COLUMNS[1:])


def weight_facts(model: Any) -> list[dict[str, Any]]:
    """Kernels with their weights and norms, the heaviest first."""
    return [dict(zip(WEIGHT_COLUMNS, row, strict=True)) for row in weight_rows(model)]


def weight_rows(model: Any) -> list[tuple[str, str, float, float | None]]:
    """Model, kernel, weight and component norm, the heaviest kernels first."""
    model = fitted_model(model)
    weights = np.atleast_2d(model.weights_)
    norms = np.atleast_2d(model.norms_) if hasattr(model, "norms_") else None
    labels = [""] if len(weights) == 1 else [str(name) for name in model_names(model)]
    order = np.argsort(-weights.max(axis=0), kind="stable")
    return [
        (label, model.kernel_names_[m], float(weights[k, m]), None if norms is None else float(norms[k, m]))
        for k, label in enumerate(labels)
        for m in order
    ]


def live_kernels(model: Any) -> int:
    """Kernels that carry weight in any of the models."""
    weights = np.atleast_2d(model.weights_)
    return int((weights > LIVE * max(weights.max(), 1e-300)).any(axis=0).sum())


def predictions(model: Any, X: Any, times: Sequence[float] = ()) -> dict[str, np.ndarray]:
    """Predictions by name of the column they go to, with probabilities or deviations where there are any.

    Of censored times these are risks, and the probabilities of no event up to each of some `times`.
    """
    if hasattr(model, "classes_"):
        found = model.predict(X)
        columns = {"prediction": found}
        if np.ndim(found) == 2:  # several labels per sample
            columns = {f"prediction {name}": found[:, k] for k, name in enumerate(model.classes_)}
        if hasattr(model, "predict_proba"):
            P = model.predict_proba(X)
            columns |= {f"probability {name}": P[:, k] for k, name in enumerate(model.classes_)}
        return columns
    if "EmpiricalBayes" in type(model).__name__:
        mean, deviation = model.predict(X, return_std=True)
        return {"prediction": mean, "deviation": deviation}
    if isinstance(model, RiskScore):
        risk, curves = model.predict(X), getattr(model, "predict_survival_function", None)
        curves = curves(X) if len(times) and curves is not None else ()
        at = {f"survival {time:g}": np.array([curve(time) for curve in curves]) for time in times}
        return {"risk": risk, **at}
    return {"prediction": model.predict(X)}


def views_column(model: Any, X: Any) -> dict[str, np.ndarray]:
    """A column of predictions, the views that each sample has; nothing where all have all of the model's."""
    fitted = getattr(model, "views_in_", ())
    if not isinstance(X, Views) or (X.observed.all() and len(X.names) >= len(fitted)):
        return {}
    return {"views": X.patterns}


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
