"""The demonstration behind ``kernelweave demo``: when learning weights of views pays, and when it does not.

Ten properties of the cell nuclei of 569 breast tumours were measured under a microscope; the three views are
their means, their standard errors and their worst values. All three say something about the tumour, and the
kernels of means and of worst values much the same. Twelve more views come from other patients: the same
measurements, their rows shuffled, so that they say nothing.

Two models are compared, with and without these views: the plain sum of the kernels, and the sum with learned
weights (p = 1). Each is trained eight times, on eight training sets that have no tumour in common, and scored
on all other tumours; C is chosen by cross-validation on the training set. Learning the weights pays if the
gain in accuracy is more than two standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._typing import FloatArray
from ..estimators import MKLClassifierCV
from ..kernels import RBF, per_group
from ..regularizers import LpNorm, Regularizer, Uniform

VIEWS = ("mean", "error", "worst")
N_OTHERS = 12  # views from other patients
N_SAMPLES = 8  # training samples without a tumour in common
MODELS: dict[str, Regularizer] = {"plain sum": Uniform(), "learned weights": LpNorm(p=1)}


@dataclass(frozen=True)
class Comparison:
    """Accuracies of the plain sum and of learned weights on the same tumours, shape (n_samples, 2)."""

    views: list[str]
    accuracies: FloatArray
    model: Any
    n_train: int

    @property
    def gain(self) -> float:
        """Mean accuracy of learned weights minus that of the plain sum."""
        return float(np.diff(self.accuracies).mean())

    @property
    def error(self) -> float:
        """Standard error of the gain."""
        return standard_error(np.diff(self.accuracies)[:, 0])

    @property
    def verdict(self) -> str:
        """Whether the weights pay, in a sentence."""
        if self.gain > 2 * self.error:
            return "Learning the weights pays: the gain is more than two standard errors."
        if self.gain < -2 * self.error:
            return "Learning the weights costs accuracy here: use the plain sum."
        return "Learning the weights does not pay: the gain is within two standard errors. Use the plain sum."


def standard_error(values: FloatArray) -> float:
    """Standard error of a mean.

    Examples
    --------
    >>> round(standard_error(np.array([1.0, 2.0, 3.0])), 3)
    0.577
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def make_data(n_others: int, seed: int = 0) -> tuple[FloatArray, np.ndarray, dict[str, slice]]:
    """Columns of all views, labels, and the columns of each view.

    Examples
    --------
    >>> X, y, views = make_data(n_others=2)
    >>> X.shape, list(views)
    ((569, 50), ['mean', 'error', 'worst', 'other 1', 'other 2'])
    """
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    own = [X[:, :10], X[:, 10:20], X[:, 20:]]
    others = [own[k % 3][rng.permutation(len(X))] for k in range(n_others)]
    names = [*VIEWS, *(f"other {k + 1}" for k in range(n_others))]
    return np.hstack(own + others), y, {name: slice(10 * k, 10 * k + 10) for k, name in enumerate(names)}


def compare(
    n_others: int, seed: int = 0, progress: Callable[[str, float], Any] = lambda label, share: None
) -> Comparison:
    """The plain sum of the views' kernels against learned weights, on held-out tumours.

    Parameters
    ----------
    n_others : int
        Number of views from other patients.
    seed : int, default=0
        Seed of the training samples and of the shuffled rows.
    progress : callable, optional
        Called with a few words and the share that is done, before each fit.
    """
    X, y, views = make_data(n_others, seed)
    parts = list(StratifiedKFold(N_SAMPLES, shuffle=True, random_state=seed).split(X, y))
    accuracies = np.zeros((N_SAMPLES, len(MODELS)))
    for k, (test, train) in enumerate(parts):  # a fold is what is trained on
        for j, (name, regularizer) in enumerate(MODELS.items()):
            progress(f"{len(views)} views, {name}", (k + j / len(MODELS)) / N_SAMPLES)
            search = MKLClassifierCV(per_group(views, RBF()), regularizers=regularizer, Cs=4, cv=3)
            model = make_pipeline(StandardScaler(), search).fit(X[train], y[train])
            accuracies[k, j] = model.score(X[test], y[test])
    return Comparison(list(views), accuracies, model[-1].best_estimator_, len(parts[0][1]))
