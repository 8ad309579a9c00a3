"""What the models of a fit are called: the class, pair of classes or output that each one learns."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ..kernels.columns import column_names


def model_names(model: Any) -> list[Any]:
    """Names of the rows of `weights_`.

    Classes as in `classes_`; pairs as "b vs a", b the positive class; "all classes" and "all outputs" where
    these share their weights; else the names of the outputs, or their numbers from 0.

    Examples
    --------
    >>> from types import SimpleNamespace as Fitted
    >>> model_names(Fitted(weights_=np.eye(3), classes_=np.array(["a", "b", "c"]), _pairwise=True))
    ['b vs a', 'c vs a', 'c vs b']
    """
    count = len(np.atleast_2d(model.weights_))
    if count == 1 and np.size(getattr(model, "intercept_", 0.0)) > 1:
        return ["all classes" if hasattr(model, "classes_") else "all outputs"]
    return _names(model, count)


def function_names(model: Any) -> list[Any]:
    """Names of the entries of `intercept_`, as those of `model_names`."""
    return _names(model, np.size(model.intercept_))


def _names(model: Any, count: int) -> list[Any]:
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    if len(classes) * (len(classes) - 1) // 2 == count and (count == 1 or getattr(model, "_pairwise", False)):
        return [f"{b} vs {a}" for a, b in combinations(classes, 2)]
    known = (classes, list(getattr(model, "output_names_", ())), list(range(count)))
    return next(names for names in known if len(names) == count)


def name_outputs(model: Any, y: Any, several: bool) -> None:
    """Keep the names of the columns of targets, where there are any."""
    names = column_names(y) if several else None
    vars(model).pop("output_names_", None)
    if names is not None:
        model.output_names_ = names
