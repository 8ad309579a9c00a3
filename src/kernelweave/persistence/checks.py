"""Whether a model read from a file has what its predictions need, and whether it fits together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators import (
    GMKLClassifier,
    GroupOMPClassifier,
    GroupOMPRegressor,
    MKLClassifier,
    MKLOneClass,
    MKLRegressor,
)
from ..estimators._base import BaseKernels, BaseMKL
from ..estimators._group_omp import BaseGroupOMP
from ..estimators._stages import StagedExpansion
from ..estimators.cross_validation import BaseMKLCV
from ..estimators.empirical_bayes import BaseEmpiricalBayes, EmpiricalBayesClassifier, EmpiricalBayesRegressor
from ..estimators.gmkl import BaseGMKL, GMKLRegressor
from ..estimators.group_omp_cv import BaseGroupOMPCV
from ..gram.dictionary import Expansion
from .errors import ModelFileError

#: attributes that the predictions of an estimator and of those derived from it read
NEEDS: dict[type, tuple[str, ...]] = {
    BaseKernels: ("kernel_names_", "weights_", "n_features_in_"),
    BaseMKL: ("_expansion", "_intercepts"),
    BaseGroupOMP: ("_expansion", "_intercepts", "path_"),
    BaseEmpiricalBayes: ("_process", "_noises"),
    BaseGMKL: (
        "kernel_",
        "kernel_names_",
        "weights_",
        "n_features_in_",
        "_support_rows",
        "_alphas",
        "_weights",
        "_intercepts",
    ),
    MKLClassifier: ("classes_", "_link", "_pairwise"),
    GroupOMPClassifier: ("classes_", "_link"),
    GMKLClassifier: ("classes_", "_likelihood"),
    EmpiricalBayesClassifier: ("classes_",),
    MKLRegressor: ("_flat",),
    GroupOMPRegressor: ("_flat",),
    GMKLRegressor: ("_flat",),
    EmpiricalBayesRegressor: ("_flat",),
    MKLOneClass: ("offset_",),
    BaseMKLCV: ("best_estimator_",),
    BaseGroupOMPCV: ("best_estimator_",),
}


def check_fitted(model: Any) -> None:
    """Refuse an estimator that lacks what predictions read, or whose parts do not fit together."""
    name = type(model).__name__
    needed = [entry for base, names in NEEDS.items() if isinstance(model, base) for entry in names]
    if not getattr(model, "_precomputed", True):
        needed.append("_numeric")
    missing = [entry for entry in needed if entry not in vars(model)]
    if missing:
        raise ModelFileError(f"it holds a {name} without {missing[0]}.")
    for base, check in CHECKS.items():
        if isinstance(model, base) and not check(model):
            raise ModelFileError(f"it is damaged: the parts of its {name} do not fit together.")


def _mkl(model: Any) -> bool:
    functions = getattr(model._expansion, "n_functions", -1)
    fits = isinstance(model._expansion, Expansion) and model._intercepts.shape == (functions,)
    return fits and len(model._expansion.source.names) == len(model.kernel_names_)


def _mkl_classes(model: Any) -> bool:
    count = len(model.classes_)
    pairs = count * (count - 1) // 2
    return count >= 2 and len(model._intercepts) == (1 if count == 2 else pairs if model._pairwise else count)


def _greedy(model: Any) -> bool:
    stages = model._expansion
    if not isinstance(stages, StagedExpansion) or len(stages.source.names) != len(model.kernel_names_):
        return False
    n_stages, _, n_functions = stages.alphas.shape
    on_path = len(model.path_) == n_stages - 1 and 0 <= model.path_.n_selected < n_stages
    return on_path and model._intercepts.shape == (n_stages, n_functions)


def _greedy_classes(model: Any) -> bool:
    count = len(model.classes_)
    return count >= 2 and model._intercepts.shape[1] == (1 if count == 2 else count)


def _process(model: Any) -> bool:
    same = len(model._process.source.names) == len(model.kernel_names_)
    return same and model._noises.shape == (len(model._process.posteriors),)


def _gmkl(model: Any) -> bool:
    rows, alphas = model._support_rows, model._alphas
    if rows.ndim != 2 or not all(isinstance(alpha, np.ndarray) and alpha.ndim == 2 for alpha in alphas):
        return False
    same = model._weights.ndim == 2 and len(model._weights) == len(alphas)
    same &= all(len(alpha) == len(rows) for alpha in alphas)
    return same and model._intercepts.shape == (sum(alpha.shape[1] for alpha in alphas),)


def _gmkl_classes(model: Any) -> bool:
    count = len(model.classes_)
    calibrated = model._likelihood is not None or hasattr(model, "_temperature")
    return count >= 2 and calibrated and len(model._intercepts) == (1 if count == 2 else count)


def _search(model: Any) -> bool:
    return isinstance(model.best_estimator_, type(model._template()))


CHECKS: dict[type, Any] = {
    BaseMKL: _mkl,
    MKLClassifier: _mkl_classes,
    BaseGroupOMP: _greedy,
    GroupOMPClassifier: _greedy_classes,
    BaseEmpiricalBayes: _process,
    BaseGMKL: _gmkl,
    GMKLClassifier: _gmkl_classes,
    BaseMKLCV: _search,
    BaseGroupOMPCV: _search,
}
