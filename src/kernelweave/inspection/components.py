"""What each kernel adds to a prediction: f(x) = b + sum_m f_m(x)."""

from __future__ import annotations

from typing import Any

from .._typing import FloatArray
from ._models import fitted_model, inputs_for


def contributions(model: Any, X: Any) -> FloatArray:
    """What each kernel adds to the value of every sample.

        f(x) = b + sum_m f_m(x),    f_m(x) = d_m sum_i alpha_i k_m(x, x_i)

    with the normalised kernels k_m, the intercept b = `intercept_` and f the decision value (of a
    regressor: the prediction). A centred kernel (``normalize="center"``) has components of mean zero
    over the training samples; without centring they may differ by constants that cancel in the sum. Where
    every kernel is linear, `intercept_` belongs to `coef_` and holds such constants too.

    Parameters
    ----------
    model : fitted estimator, Pipeline ending in one, or search
        Anything that learns kernel weights. For empirical Bayes f is the posterior mean of the latent
        function, before a classifier moderates it; for `GMKLClassifier` and `GMKLRegressor` the kernel
        must be a `WeightedSum`.
    X : array-like, sparse matrix or DataFrame of shape (n, n_features), or kernels
        As in the model's ``predict``.

    Returns
    -------
    parts : ndarray of shape (n, M), or (n_functions, n, M)
        The latter for models of several functions: classes, pairs of classes (one-vs-one), outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import contributions
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF())).fit(X, y == 1)
    >>> parts = contributions(clf, X)
    >>> parts.shape
    (150, 4)
    >>> bool(np.allclose(parts.sum(axis=1) + clf.intercept_, clf.decision_function(X)))
    True
    """
    parts = fitted_model(model).model_.components(inputs_for(model, X))
    return parts[0] if len(parts) == 1 else parts
