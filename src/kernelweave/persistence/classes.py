"""The classes a model file may name: kernelweave's own, found through their base classes.

A file names a class by a key such as "kernel:RBF". Keys are looked up in this table and nowhere
else: nothing is imported because a file says so.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from scipy import sparse
from sklearn.base import BaseEstimator

from .. import estimators
from ..estimators._group_omp import GreedyPath
from ..estimators._labels import Link
from ..estimators.view_transformer import ViewTransformer
from ..gram.lowrank import Approximation
from ..gram.missing import GapFactorTerm, GapSource, GapTerm, Indicator, IndicatorTerm
from ..gram.predictor import LiveKernels, Predictor, Spread
from ..gram.sharing import Batch, Lines, SharedSquares
from ..gram.sources import FeatureSource, Gaps, ParametricSource, StackSource
from ..gram.terms import KernelTerm, SumTerm
from ..kernels import AutogradKernel, Family, FunctionKernel, Kernel, Normalization, ParametricKernel, Views
from ..kernels.subsets import FittedSubsets, Subsets
from ..losses import Loss
from ..regularizers import FromBlockNorm, FromPrice, Regularizer
from ..solvers.base import MKLSolver
from ..solvers.kernel_gradient import Box, FunctionPenalty, Penalty, Projection
from ..solvers.single import SingleSolver
from .codec import ModelFileError, NotStored
from .pipelines import CLASSES, class_of, is_listed

#: kinds of parts, and the bases of their classes
BASES: dict[str, tuple[type, ...]] = {
    "kernel": (Kernel, ParametricKernel),
    "family": (Family,),
    "normalization": (Normalization,),
    "loss": (Loss,),
    "regularizer": (Regularizer,),
    "penalty": (Penalty,),
    "constraint": (Box,),
    "solver": (MKLSolver, SingleSolver),
    "approximation": (Approximation,),
    "transformer": (ViewTransformer,),
}

#: classes that are nothing without a Python function, and what can stand in their place
FUNCTIONS: dict[type, str] = {
    FunctionKernel: "a kernel of kernelweave.kernels, or Precomputed with the values of the function",
    AutogradKernel: "a parametric kernel of kernelweave.kernels such as ProductRBF, PowerSum or WeightedSum",
    FunctionPenalty: "L1, L2, PowerNorm, LogDet or a sum of them",
    Projection: "Box",
    FromPrice: "a regulariser of kernelweave.regularizers",
    FromBlockNorm: "a regulariser of kernelweave.regularizers",
}

#: kernels of sklearn.gaussian_process.kernels that `GPKernel` may hold
GP_KERNELS = (
    "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "PairwiseKernel",
    "Product", "RBF", "RationalQuadratic", "Sum",
)  # fmt: skip


@functools.cache
def own_classes() -> dict[str, type]:
    """Keys and classes of kernelweave's parts and estimators.

    Examples
    --------
    >>> own_classes()["kernel:RBF"].__name__
    'RBF'
    """
    parts = ((kind, cls) for kind, bases in BASES.items() for base in bases for cls in _concrete(base))
    public = (getattr(estimators, name) for name in estimators.__all__)
    classes = (cls for cls in public if inspect.isclass(cls) and issubclass(cls, BaseEstimator))
    models = (cls for cls in classes if hasattr(cls, "predict"))
    found: list[tuple[str, Any]] = [*parts, *(("model", cls) for cls in models)]
    return {f"{kind}:{cls.__name__}": cls for kind, cls in found if cls not in FUNCTIONS}


@functools.cache
def gp_classes() -> dict[str, type]:
    """Keys and classes of scikit-learn's Gaussian-process kernels."""
    from sklearn.gaussian_process import kernels

    return {f"gp:{name}": getattr(kernels, name) for name in GP_KERNELS}


def find_class(key: Any) -> type:
    """The class of a key."""
    if isinstance(key, str) and key.removeprefix("sklearn:") in CLASSES:
        return class_of(key.removeprefix("sklearn:"))
    table = gp_classes() if isinstance(key, str) and key.startswith("gp:") else own_classes()
    if not isinstance(key, str) or key not in table:
        raise ModelFileError(f"it names {key!r:.60}, which is no class of kernelweave {_known()}.")
    return table[key]


def key_of(obj: Any) -> str | None:
    """The key of an object's class; None for other classes, subclasses of kernelweave's included."""
    if is_listed(type(obj)):
        return f"sklearn:{type(obj).__name__}"
    return _keys(type(obj).__module__ == "sklearn.gaussian_process.kernels").get(type(obj))


@functools.cache
def _keys(gaussian: bool) -> dict[type, str]:
    return {cls: key for key, cls in (gp_classes() if gaussian else own_classes()).items()}


@functools.cache
def parameters_of(cls: type) -> frozenset[str]:
    """Names of the parameters of a constructor, which only stores them."""
    init: Any = cls.__init__  # type: ignore[misc]
    return (
        frozenset() if init is object.__init__ else frozenset(inspect.signature(init).parameters) - {"self"}
    )


def _known() -> str:
    from .._version import __version__

    return __version__


def _concrete(base: Any) -> Iterator[Any]:
    """kernelweave's classes below and including `base`, without those that serve only as base classes."""
    methods = (getattr(base, name, None) for name in dir(base) if not name.startswith("__"))
    abstract = any(getattr(method, "__isabstractmethod__", False) for method in methods)
    if base.__module__.startswith("kernelweave.") and getattr(base, "name", base) and not abstract:
        yield base
    for cls in base.__subclasses__():
        yield from _concrete(cls)


# -- skops --------------------------------------------------------------------------------------------


#: what fitted estimators are made of, beside the parts that users pass
INSIDE = (
    Batch, FeatureSource, FittedSubsets, GapFactorTerm, GapSource, GapTerm, Gaps, GreedyPath,
    Indicator, IndicatorTerm, KernelTerm, Lines, Link, LiveKernels, NotStored, ParametricSource, Predictor,
    SharedSquares, Spread, StackSource, Subsets, SumTerm, Views, sparse.csr_array,
)  # fmt: skip


def skops_types() -> list[str]:
    """Types to pass as `trusted` to ``skops.io.load``: kernelweave's, and a few of scikit-learn and NumPy.

    Classes that hold a function of the user's (`FunctionKernel`, `AutogradKernel`, ...) are not among
    them: skops names them, and the function, so that the reader of a file decides.

    Returns
    -------
    types : list of str

    Examples
    --------
    >>> "kernelweave.kernels.bandwidth.RBF" in skops_types()
    True
    >>> any("FunctionKernel" in name for name in skops_types())
    False
    """
    classes = {_name(obj) for obj in (*own_classes().values(), *gp_classes().values(), *INSIDE)}
    return sorted(classes | {"numpy.dtype"})


def _name(obj: object) -> str:
    return f"{obj.__module__}.{obj.__qualname__}"  # type: ignore[attr-defined]
