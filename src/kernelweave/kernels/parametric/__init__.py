"""Parametric kernels: functions of two samples and a vector d, with their gradient in d.

A kernel declares its `domain`, where d may lie so that it is positive semidefinite: d >= 0 for most.
"""

from ..._registry import Registry
from .autograd import AutogradKernel
from .base import ParametricKernel
from .composite import ProductOf, WeightedSum, as_parametric
from .domains import Box, Semidefinite
from .mapped_rbf import MetricRBF, ProjectedRBF
from .product_rbf import GroupProductRBF, ProductRBF
from .sums import ExpSum, PowerSum

# those that need no arguments, by name
PARAMETRIC_KERNELS = Registry("parametric kernel", (ProductRBF, PowerSum, ExpSum, ProjectedRBF, MetricRBF))

__all__ = [
    "PARAMETRIC_KERNELS",
    "AutogradKernel",
    "Box",
    "ExpSum",
    "GroupProductRBF",
    "MetricRBF",
    "ParametricKernel",
    "PowerSum",
    "ProductOf",
    "ProductRBF",
    "ProjectedRBF",
    "Semidefinite",
    "WeightedSum",
    "as_parametric",
]
