"""Regularisers of the kernel weights, one a file (Tomioka & Suzuki 2010; Kloft et al. 2011)."""

from .._registry import Registry
from .base import Regularizer
from .block_norm import BlockNorm
from .elastic_net import ElasticNet
from .lp_norm import LpNorm, equivalent_C
from .mahalanobis import Mahalanobis
from .uniform import Uniform
from .wedge import Wedge

REGULARIZERS = Registry("regularizer", (LpNorm, Uniform, ElasticNet, BlockNorm, Mahalanobis, Wedge))

__all__ = [
    "REGULARIZERS",
    "BlockNorm",
    "ElasticNet",
    "LpNorm",
    "Mahalanobis",
    "Regularizer",
    "Uniform",
    "Wedge",
    "equivalent_C",
]
