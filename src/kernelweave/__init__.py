"""kernelweave: multiple kernel learning for scikit-learn.

Many kernels in, one trustworthy model out: learn a predictor and, at the same time, which
kernels (views, feature groups, bandwidths, sensors) matter.

Names are imported when they are first used, so ``import kernelweave`` itself loads nothing.

Examples
--------
>>> import kernelweave as kw
>>> kw.__version__
'0.1.0'
>>> "MKLClassifier" in dir(kw)
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import (
        dask,
        datasets,
        estimators,
        gram,
        inspection,
        kernels,
        losses,
        metrics,
        persistence,
        regularizers,
        report,
        solvers,
        testing,
        theory,
    )
    from .estimators import (
        EmpiricalBayesClassifier,
        EmpiricalBayesRegressor,
        GMKLClassifier,
        GMKLOneClass,
        GMKLRegressor,
        GroupOMPClassifier,
        GroupOMPClassifierCV,
        GroupOMPRegressor,
        GroupOMPRegressorCV,
        GroupOMPSurvival,
        MKLAutoClassifier,
        MKLAutoRegressor,
        MKLAutoSurvival,
        MKLClassifier,
        MKLClassifierCV,
        MKLOneClass,
        MKLOrdinalClassifier,
        MKLQuantileRegressor,
        MKLRegressor,
        MKLRegressorCV,
        MKLSurvival,
        MKLSurvivalCV,
        ViewTransformer,
        mkl_path,
    )
    from .gram import GramStore, KernelStack, ParquetTable
    from .inspection import explain, stability_selection
    from .kernels import Views
    from .persistence import load_model, save_model
    from .regularizers import (
        SMKL,
        BlockNorm,
        ElasticNet,
        GroupLassoTerm,
        LogTerm,
        LpNorm,
        Mahalanobis,
        MFocussTerm,
        MKLTerm,
        Uniform,
        Wedge,
    )

__all__ = [
    "SMKL", "BlockNorm", "ElasticNet", "EmpiricalBayesClassifier", "EmpiricalBayesRegressor",
    "GMKLClassifier", "GMKLOneClass", "GMKLRegressor", "GramStore", "GroupLassoTerm", "GroupOMPClassifier",
    "GroupOMPClassifierCV", "GroupOMPRegressor", "GroupOMPRegressorCV", "GroupOMPSurvival", "KernelStack",
    "LogTerm", "LpNorm", "MFocussTerm", "MKLAutoClassifier", "MKLAutoRegressor", "MKLAutoSurvival",
    "MKLClassifier", "MKLClassifierCV", "MKLOneClass", "MKLOrdinalClassifier", "MKLQuantileRegressor",
    "MKLRegressor", "MKLRegressorCV", "MKLSurvival", "MKLSurvivalCV", "MKLTerm", "Mahalanobis",
    "ParquetTable", "Uniform", "ViewTransformer", "Views", "Wedge", "__version__", "dask", "datasets",
    "estimators", "explain", "gram", "inspection", "kernels", "load_model", "losses", "metrics", "mkl_path",
    "persistence", "regularizers", "report", "save_model", "solvers", "stability_selection", "testing",
    "theory",
]  # fmt: skip

#: submodule -> the names that are its own
_HOMES = {
    "estimators": (
        "MKLAutoClassifier MKLAutoRegressor MKLAutoSurvival MKLClassifier MKLRegressor MKLOneClass "
        "EmpiricalBayesClassifier EmpiricalBayesRegressor "
        "GMKLClassifier GMKLRegressor GMKLOneClass GroupOMPClassifier GroupOMPRegressor GroupOMPClassifierCV "
        "GroupOMPRegressorCV MKLClassifierCV MKLRegressorCV MKLSurvival MKLSurvivalCV "
        "MKLOrdinalClassifier MKLQuantileRegressor GroupOMPSurvival "
        "ViewTransformer mkl_path"
    ),
    "gram": "GramStore ParquetTable KernelStack",
    "persistence": "load_model save_model",
    "inspection": "explain stability_selection",
    "kernels": "Views",
    "regularizers": (
        "BlockNorm ElasticNet GroupLassoTerm LogTerm LpNorm MFocussTerm MKLTerm Mahalanobis SMKL Uniform "
        "Wedge"
    ),
}
_EXPORTS = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
        globals()[name] = value  # the next access does not come through here
        return value
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
