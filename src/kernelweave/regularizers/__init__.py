"""Regularisers of the kernel weights (Tomioka & Suzuki 2010; Kloft et al. 2011).

Reading order: ``base.py`` (what a regulariser is), ``norms.py`` (lp, block, uniform, elastic net),
``structured.py`` (wedge, Mahalanobis), ``patterns.py`` (samples that lack kernels), ``concave.py`` (SMKL and
the terms it is made of);
``correspondence.py``, which uses ``_ascent.py``, makes regularisers from your own functions.
"""

from .._registry import Registry
from .base import Regularizer, TwoForms
from .concave import SMKL, ConcaveTerm, GroupLassoTerm, LogTerm, MFocussTerm, MKLTerm, TermSum
from .correspondence import FromBlockNorm, FromPrice, block_norm_of, equivalent_cost, price_of
from .norms import BlockNorm, ElasticNet, LpNorm, Uniform
from .patterns import PatternNorm
from .structured import Mahalanobis, Wedge

REGULARIZERS = Registry(
    "regularizer",
    (
        LpNorm,
        Uniform,
        ElasticNet,
        BlockNorm,
        Mahalanobis,
        Wedge,
        SMKL,
        LogTerm,
        GroupLassoTerm,
        MFocussTerm,
        MKLTerm,
    ),
)

__all__ = [
    "REGULARIZERS",
    "SMKL",
    "BlockNorm",
    "ConcaveTerm",
    "ElasticNet",
    "FromBlockNorm",
    "FromPrice",
    "GroupLassoTerm",
    "LogTerm",
    "LpNorm",
    "MFocussTerm",
    "MKLTerm",
    "Mahalanobis",
    "PatternNorm",
    "Regularizer",
    "TermSum",
    "TwoForms",
    "Uniform",
    "Wedge",
    "block_norm_of",
    "equivalent_cost",
    "price_of",
]
