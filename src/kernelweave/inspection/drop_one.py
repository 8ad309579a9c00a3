"""How much worse a model scores without one of its kernels."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from .._typing import FloatArray
from ._models import component_names, data_for, fitted_model
from .components import components, intercept_of


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
    samples. Of two kernels that say the same, each may have a small effect; fitted again without
    one, the other would take its place.

    Parameters
    ----------
    model : fitted estimator, Pipeline ending in one, or search
    X, y
        Samples to score, best some that were not trained on.
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
    parts = components(inner, data)
    total = parts.sum(axis=2) + intercept_of(inner)[:, None]
    scorer, answer = check_scoring(inner, scoring), _answering(inner, data)
    full = float(scorer(answer(total.T), data, y))
    scores = np.full(parts.shape[2], full)
    for m in np.flatnonzero(parts.any(axis=(0, 1))):
        scores[m] = scorer(answer((total - parts[:, :, m]).T), data, y)
    return DropOneResult(component_names(inner), full, scores)


def _answering(model: Any, X: Any) -> Any:
    """A function from values (n, n_functions) to the model that answers with them as its own would."""
    if not hasattr(model, "_predictive"):
        return lambda values: _with(model, "_decision", values)
    # the moderation of probabilities stays that of all kernels
    variances = np.zeros(()) if model._precomputed else model._predictive(X, True)[1]
    return lambda values: _with(model, "_predictive", (values, variances))


def _with(model: Any, method: str, answer: Any) -> Any:
    """A copy of the model whose method returns `answer` whatever it is asked."""
    frozen = copy(model)
    setattr(frozen, method, lambda *args, **kwargs: answer)
    return frozen
