"""Models of users (pipelines, searches) reduced to the estimator inside and what it sees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray, IntArray
from ..estimators.auto import BaseMKLAuto


def fitted_model(estimator: Any) -> Any:
    """The MKL estimator inside pipelines and searches, fitted.

    Parameters
    ----------
    estimator : fitted estimator, Pipeline, or search with `best_estimator_`

    Returns
    -------
    model : estimator with `weights_` and `kernel_names_`
    """
    if hasattr(estimator, "steps"):
        return fitted_model(estimator.steps[-1][1])
    if hasattr(estimator, "best_estimator_"):
        return fitted_model(estimator.best_estimator_)
    if hasattr(estimator, "fit") and not hasattr(estimator, "weights_"):
        check_is_fitted(estimator)
    if not hasattr(estimator, "weights_"):
        raise ValueError(
            f"{type(estimator).__name__} has no `weights_`: pass a fitted estimator of kernelweave, alone or "
            "as the last step of a pipeline."
        )
    return estimator


def competition(estimator: Any) -> BaseMKLAuto | None:
    """The `MKLAuto...` estimator inside pipelines and searches; None where there is none."""
    if isinstance(estimator, BaseMKLAuto):
        return estimator
    if hasattr(estimator, "steps"):
        return competition(estimator.steps[-1][1])
    return competition(estimator.best_estimator_) if hasattr(estimator, "best_estimator_") else None


def mean_shares(weights: FloatArray) -> FloatArray:
    """Mean over the models of each kernel's share, (n_models, M) -> (M,); zeros for a constant model.

    Examples
    --------
    >>> mean_shares(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([0.125, 0.375])
    """
    totals = weights.sum(axis=1, keepdims=True)
    return np.asarray((weights / np.where(totals > 0, totals, 1.0)).mean(axis=0))


def spread(n: int, most: int) -> IntArray:
    """At most `most` rows, evenly spread over n.

    Examples
    --------
    >>> spread(9, 3)
    array([0, 4, 8])
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def data_for(estimator: Any, X: Any) -> Any:
    """X as the model inside sees it: after the transformers of pipelines."""
    if hasattr(estimator, "best_estimator_"):
        return data_for(estimator.best_estimator_, X)
    if not hasattr(estimator, "steps"):
        return X
    transformed = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
    return data_for(estimator.steps[-1][1], transformed)


def inputs_for(estimator: Any, X: Any) -> Any:
    """X as `model_` of the model inside takes it: transformed and checked."""
    return fitted_model(estimator)._inputs(data_for(estimator, X))
