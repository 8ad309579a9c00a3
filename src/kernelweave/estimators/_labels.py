"""Class labels of the classifiers: which there are, which each sample has, and the factors of their costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from .._typing import FloatArray, IntArray


def encode_labels(y: Any, weight: FloatArray) -> tuple[Any, IntArray]:
    """The classes among the samples of positive weight, sorted, and the class of each such sample.

    Parameters
    ----------
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,)
        Sample weights, not negative.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    labels : ndarray of int, one for each sample of positive weight
        Positions in `classes`.

    Examples
    --------
    >>> encode_labels(np.array(["b", "a", "c", "b"]), np.array([1.0, 2.0, 0.0, 1.0]))
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    check_classification_targets(y)
    classes, labels = np.unique(y[weight > 0], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class ({classes.tolist()[0]!r}) among the samples of positive weight; "
            "a classifier needs at least two."
        )
    return classes, labels


def class_factors(class_weight: Any, classes: Any, labels: IntArray, weight: FloatArray) -> FloatArray:
    """The factor of every class, all positive.

    "balanced" is sum_i w_i / (n_classes sum_{i in class} w_i), so that all classes weigh the same and a
    sample of weight w counts as w equal samples; `LogisticRegression` and `LinearSVC` of scikit-learn
    have the same factors (`SVC` counts samples, whatever they weigh).

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    classes : ndarray of shape (n_classes,)
    labels : ndarray of int of shape (n,)
    weight : ndarray of shape (n,)
        Positive.

    Examples
    --------
    >>> class_factors("balanced", np.array(["a", "b"]), np.array([0, 1, 1]), np.array([3.0, 1.0, 5.0]))
    array([1.5 , 0.75])
    """
    y = classes[labels]
    factors = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weight)
    if not ((factors > 0) & (factors < np.inf)).all():
        raise ValueError(
            f"class_weight={class_weight!r}: every factor must be a positive number; to leave a "
            "class out, leave out its samples."
        )
    return np.asarray(factors)
