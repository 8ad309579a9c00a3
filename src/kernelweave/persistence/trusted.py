"""Which types skops has to trust to load a model of kernelweave."""

from __future__ import annotations

from scipy import sparse

from ..estimators._greedy_path import GreedyPath
from ..estimators._labels import Link
from ..gram.predictor import LiveKernels, Predictor, Spread
from ..gram.sharing import Batch, Lines, SharedSquares
from ..gram.sources import FeatureSource, ParametricSource, StackSource
from ..gram.terms import KernelTerm, SumTerm
from ..kernels.subsets import FittedSubsets, Subsets
from .classes import gp_classes, own_classes
from .errors import NotStored

#: what fitted estimators are made of, beside the parts that users pass
INSIDE = (
    Batch,
    FeatureSource,
    FittedSubsets,
    GreedyPath,
    KernelTerm,
    Lines,
    Link,
    LiveKernels,
    NotStored,
    ParametricSource,
    Predictor,
    SharedSquares,
    Spread,
    StackSource,
    Subsets,
    SumTerm,
    sparse.csr_array,
)


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
