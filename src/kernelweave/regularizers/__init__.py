"""Regularisers of the kernel weights, one per file (Tomioka & Suzuki 2010; Kloft et al. 2011)."""

from .._registry import Registry
from .base import Regularizer
from .block_norm import BlockNorm
from .concave import ConcaveTerm, TermSum
from .correspondence import FromBlockNorm, FromPrice, block_norm_of, price_of
from .elastic_net import ElasticNet
from .group_lasso_term import GroupLassoTerm
from .log_term import LogTerm
from .lp_norm import LpNorm, equivalent_cost
from .mahalanobis import Mahalanobis
from .mfocuss_term import MFocussTerm
from .mkl_term import MKLTerm
from .smkl import SMKL
from .uniform import Uniform
from .wedge import Wedge

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
    "Regularizer",
    "TermSum",
    "Uniform",
    "Wedge",
    "block_norm_of",
    "equivalent_cost",
    "price_of",
]
