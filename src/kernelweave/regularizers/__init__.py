"""Regularisers of the kernel weights, one a file (Tomioka & Suzuki 2011; Kloft et al. 2011)."""

from .._registry import Registry
from .base import Regularizer
from .lp_norm import LpNorm
from .uniform import Uniform

REGULARIZERS = Registry("regularizer", (LpNorm, Uniform))

__all__ = ["REGULARIZERS", "LpNorm", "Regularizer", "Uniform"]
