"""Parametric kernels: functions of two samples and a vector d >= 0, with their gradient in d."""

from ..._registry import Registry
from .autograd import AutogradKernel
from .base import ParametricKernel
from .composite import as_parametric
from .exp_sum import ExpSum
from .group_product_rbf import GroupProductRBF
from .power_sum import PowerSum
from .product_of import ProductOf
from .product_rbf import ProductRBF
from .weighted_sum import WeightedSum

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
