"""How much worse a model scores without one of its kernels."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from .._typing import FloatArray
from ._models import data_for, fitted_model, inputs_for


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
    parts, values = _taken_apart(inner.model_, inputs_for(model, X))
    scorer = check_scoring(inner, scoring)
    full = float(scorer(_answering(inner, values), data, y))
    scores = np.full(parts.shape[2], full)
    for m in np.flatnonzero(parts.any(axis=(0, 1))):
        scores[m] = scorer(_answering(inner, values.without(parts[:, :, m])), data, y)
    return DropOneResult(list(inner.model_.source.names), full, scores)


@dataclass(frozen=True)
class _Values:
    """Stands for a predictor: answers with given values (n, n_functions), whatever it is asked."""

    values: FloatArray
    variances: FloatArray | None
    link: Any
    posterior: Any

    def __call__(self, X: Any) -> FloatArray:
        return self.values

    def staged(self, X: Any, stages: Any) -> FloatArray:
        return self.values[:, None]

    def moments(self, X: Any) -> Any:
        return self.values, self.variances

    def without(self, part: FloatArray) -> _Values:
        """Without the share (n_functions, n) of a kernel; probabilities are moderated as with all of them."""
        return replace(self, values=self.values - part.T)


def _taken_apart(predictor: Any, X: Any) -> tuple[FloatArray, _Values]:
    """The components, and their sum."""
    parts = predictor.components(X)
    values = parts.sum(axis=2).T + predictor.intercept
    # precomputed test matrices have no k(x, x), hence no variances
    known = predictor.posterior and not predictor.source.given
    variances = predictor.variance(X) if known else None
    return parts, _Values(values, variances, predictor.link, predictor.posterior)


def _answering(model: Any, values: _Values) -> Any:
    """A copy of the model whose functions have these values."""
    frozen = copy(model)
    frozen.model_ = values
    return frozen
