"""What the experiments on SMKL share: its grid, the choice on that grid, and counting bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelweave.regularizers import GroupLassoTerm, LogTerm

#: strength of the logarithm beside the group lasso. The paper has 1 with kernels of trace one; with kernels
#: of unit variance that is 1 / sqrt(n), 0.06 to 0.14 on these data. More is sparser.
RATIOS = (1.0, 0.5, 0.2)


def grid(strengths: Sequence[float], ratios: Sequence[float] = RATIOS) -> list[Any]:
    """Logarithm plus group lasso at every strength and ratio."""
    return [LogTerm(ratio * s) + GroupLassoTerm(s) for ratio in ratios for s in strengths]


def sparsest(search: Any, X: Any, y: Any) -> Any:
    """The model of fewest bands that cross-validation cannot tell from the best of a fitted search.

    Breiman's rule, fold by fold: a point is as good if its mean loss against the best point is within one
    standard error of that loss. Those points are fitted on all of the training part; of equal numbers of
    bands the better in cross-validation is taken.
    """
    scores, params = search.cv_results_["split_test_scores"], search.cv_results_["params"]
    loss = scores[:, [search.best_index_]] - scores
    spread = loss.std(axis=0, ddof=1) / np.sqrt(len(loss))
    close = np.flatnonzero(loss.mean(axis=0) <= spread)
    close = close[np.argsort(loss.mean(axis=0)[close], kind="stable")]
    models = [clone(search.best_estimator_).set_params(**params[point]).fit(X, y) for point in close]
    return min(models, key=n_bands)


def best_within(search: Any, X: Any, y: Any, most: int) -> Any:
    """The model of a fitted search that is best in cross-validation among those of at most `most` bands."""
    params = search.cv_results_["params"]
    order = np.argsort(-search.cv_results_["split_test_scores"].mean(axis=0), kind="stable")
    fits = (clone(search.best_estimator_).set_params(**params[point]).fit(X, y) for point in order)
    return next(model for model in fits if n_bands(model) <= max(most, 1))


def n_kernels(model: Any) -> int:
    """Kernels with a weight."""
    return int(np.count_nonzero(kept(model.weights_)))


def n_bands(model: Any) -> int:
    """Bands with a kernel that has a weight; the name of a kernel begins with that of its band."""
    names = np.array(model.kernel_names_)[kept(model.weights_)]
    return len({name.split()[0] for name in names})


def kept(weights: np.ndarray) -> np.ndarray:
    """Weights of at least 1e-6 of the largest, the paper's threshold."""
    return np.asarray(weights > 1e-6 * weights.max(initial=0.0))
