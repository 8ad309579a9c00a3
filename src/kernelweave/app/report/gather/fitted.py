"""What was fitted, in words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ....losses import LOSSES, Loss
from ....regularizers import REGULARIZERS, Regularizer
from ..data import Fitted
from .given import Given, as_rows

#: family of an estimator -> what it does, in a sentence, and its formula
METHODS = {
    "EmpiricalBayes": (
        "Empirical Bayes: a sum of Gaussian processes, one a kernel, whose weights maximise the evidence.",
        "f ~ GP(b, Σₘ dₘ kₘ),   weights d maximise log p(y | d)",
    ),
    "GroupOMP": (
        "Greedy selection (MKL-GOMP): kernels come in one after another, the largest gain first.",
        "f(x) = b + Σₘ∈G fₘ(x),   min  mean loss + λ Σₘ ‖fₘ‖²,   |G| ≤ s",
    ),
    "GMKL": (
        "Generalized MKL: one kernel whose parameters are learned together with the machine.",
        "f(x) = b + Σᵢ αᵢ k(x, xᵢ; d),   min  ½‖w‖² + C Σᵢ V(yᵢ, f(xᵢ)) + r(d)",
    ),
    "MKLOneClass": (
        "Novelty detection: the region where most training samples lie, with learned kernel weights.",
        "f(x) = Σₘ fₘ(x) − ρ,   min  C Σᵢ max(0, −f(xᵢ)) − ρ + ½ Σₘ ‖fₘ‖²/dₘ + ½ h(d)",
    ),
    "MKL": (
        "Multiple kernel learning: the weights of the kernels are learned together with the machine.",
        "f(x) = b + Σₘ fₘ(x),   min  C Σᵢ V(yᵢ, f(xᵢ)) + ½ Σₘ ‖fₘ‖²/dₘ + ½ h(d)",
    ),
}


def fitted(given: Given, source: dict[str, Any] | None) -> Fitted:
    """Estimator, method, sizes and classes."""
    name = type(given.inner).__name__
    method, formula = next(words for family, words in METHODS.items() if name.startswith(family))
    return Fitted(
        estimator=name,
        task=given.task,
        method=f"{method} {_parts(given.inner)}".strip(),
        formula=formula,
        n_train=len(as_rows(given.X)),
        n_test=len(as_rows(given.X_test)) if given.held_out else 0,
        n_features=None if given.precomputed else getattr(given.inner, "n_features_in_", None),
        functions=given.functions,
        classes=_classes(given),
        source=dict(source or {}),
    )


def _parts(inner: Any) -> str:
    """Loss and regulariser, where the estimator has them; generalized MKL has penalties of its own."""
    words = []
    if hasattr(inner, "loss"):
        words.append(f"Loss: {_short(LOSSES.resolve(inner.loss, Loss))}.")
    if hasattr(inner, "regularizer"):
        own = not hasattr(inner, "kernels")
        rule = inner.regularizer if own else REGULARIZERS.resolve(inner.regularizer, Regularizer)
        words.append(f"Regulariser: {_short(rule)}.")
    return " ".join(words)


def _short(part: Any) -> str:
    """A part of the model in words, with numbers cut to four digits."""
    return re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.4g}", str(part))


def _classes(given: Given) -> tuple[tuple[str, int], ...]:
    if given.task != "classification" or given.y is None:
        return ()
    y = np.asarray(given.y)
    return tuple((str(label), int((y == label).sum())) for label in given.inner.classes_)
