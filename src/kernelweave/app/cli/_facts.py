"""What a fitted model says of itself: certificate, weights, scores, versions."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import metrics

from ._output import live_kernels, weight_rows

PACKAGES = (
    "kernelweave", "numpy", "scipy", "scikit-learn", "pandas", "numba", "joblib", "threadpoolctl", "typer",
    "rich",
)  # fmt: skip


def certificate(model: Any) -> dict[str, Any]:
    """What was proved about a fit: the duality gap of convex ones, the residual of others."""
    tol = float(getattr(model, "tol", np.nan))
    gap = worst(getattr(model, "dual_gap_", np.inf))
    if np.isfinite(gap):
        return {"kind": "duality gap", "value": gap, "tol": tol, "certified": gap <= tol}
    if hasattr(model, "path_"):
        return {"kind": "greedy path", "value": None, "tol": None, "certified": None}
    value = worst(model.stationarity_)
    return {"kind": "stationarity residual", "value": value, "tol": tol, "certified": None}


def worst(values: Any) -> float:
    """The largest of one or several numbers."""
    return float(np.max(values))


def certificate_words(model: Any) -> str:
    """The certificate in a sentence."""
    proof = certificate(model)
    kind, value, tol = proof["kind"], proof["value"], proof["tol"]
    if value is None:
        return f"Greedy selection of {live_kernels(model)} kernels; there is no optimum to be certified."
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
    error = float(np.sqrt(np.mean((truth - predicted) ** 2)))
    return {"R2": float(metrics.r2_score(truth, predicted)) if len(truth) > 1 else np.nan, "RMSE": error}


def trivial_score(task: str, y: np.ndarray, truth: np.ndarray) -> float:
    """The main score of the majority class, or of the mean, of the training targets."""
    if task == "classification":
        classes, counts = np.unique(y, return_counts=True)
        return float(np.mean(truth == classes[np.argmax(counts)]))
    return score(task, truth, np.full(len(truth), y.mean()))["R2"]


def top_kernels(model: Any, most: int | None = None) -> list[dict[str, Any]]:
    """Kernels with their weights and norms, the heaviest first."""
    rows = weight_rows(model)
    names = ("model", "kernel", "weight", "norm")
    return [dict(zip(names, row, strict=True)) for row in rows[: most if most else len(rows)]]


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Versions of what a fit depends on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            from ..._version import __version__

            found[name] = __version__ if name == "kernelweave" else "?"
    return found
