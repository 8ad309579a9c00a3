"""Parametric kernels: functions of two samples and a vector d >= 0, with their gradient in d."""

from ..._registry import Registry
from .autograd import AutogradKernel
from .base import ParametricKernel
from .composite import ProductOf, WeightedSum, as_parametric
from .product_rbf import GroupProductRBF, ProductRBF
from .sums import ExpSum, PowerSum

# those that need no arguments, by name
PARAMETRIC_KERNELS = Registry("parametric kernel", (ProductRBF, PowerSum, ExpSum))

__all__ = [
    "PARAMETRIC_KERNELS",
    "AutogradKernel",
    "ExpSum",
    "GroupProductRBF",
    "ParametricKernel",
    "PowerSum",
    "ProductOf",
    "ProductRBF",
    "WeightedSum",
    "as_parametric",
]
