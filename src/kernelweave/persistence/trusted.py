"""Which types skops has to trust to load a model of kernelweave."""

from __future__ import annotations

from scipy import sparse

from ..estimators._greedy_path import GreedyPath
from ..estimators._process import Process
from ..estimators._stages import StagedExpansion
from ..estimators.classifier import Link, sigmoid_link, softmax_link
from ..gram.dictionary import Expansion, _Term
from ..gram.sharing import Batch
from ..gram.sources import FeatureSource, StackSource
from ..gram.squares import Lines, SharedSquares
from ..gram.sum_terms import SumTerm
from ..kernels.subsets import FittedSubsets, Subsets
from ..losses import LOSSES
from ..solvers.multiple.empirical_bayes import Posterior
from .classes import gp_classes, own_classes
from .errors import NotStored

#: what fitted estimators are made of, beside the parts that users pass
INSIDE = (
    Batch,
    Expansion,
    FeatureSource,
    FittedSubsets,
    GreedyPath,
    Lines,
    Link,
    NotStored,
    Posterior,
    Process,
    SharedSquares,
    StackSource,
    StagedExpansion,
    Subsets,
    SumTerm,
    _Term,
    sigmoid_link,
    softmax_link,
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
    >>> "kernelweave.kernels.rbf.RBF" in skops_types()
    True
    >>> any("FunctionKernel" in name for name in skops_types())
    False
    """
    classes = {_name(obj) for obj in (*own_classes().values(), *gp_classes().values(), *INSIDE)}
    likely = {f"{_name(loss)}.probability" for loss in LOSSES.values() if hasattr(loss, "probability")}
    return sorted(classes | likely | {"numpy.dtype"})


def _name(obj: object) -> str:
    return f"{obj.__module__}.{obj.__qualname__}"  # type: ignore[attr-defined]
