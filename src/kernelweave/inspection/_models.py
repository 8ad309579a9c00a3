"""Models as they come (pipelines, searches) reduced to the estimator inside and what it sees."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


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
        raise ValueError(f"{type(estimator).__name__} has no `weights_`: fit an MKL estimator first.")
    return estimator


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
