"""Kernels: positive semidefinite functions of two samples; their combinations, families, normalisations."""

from .base import Kernel
from .chi2 import Chi2
from .compose import Product, Scaled, Sum
from .constant import Constant
from .convert import as_kernel
from .families import auto, bands, bandwidths, per_feature, per_group
from .family import Family
from .function import FunctionKernel
from .gp import GPKernel
from .histogram_intersection import HistogramIntersection
from .laplacian import Laplacian
from .linear import Linear
from .matern import Matern
from .normalize import NORMALIZATIONS, Normalization, resolve_normalization
from .parametric import (
    AutogradKernel,
    ExpSum,
    GroupProductRBF,
    ParametricKernel,
    PowerSum,
    ProductOf,
    ProductRBF,
    WeightedSum,
)
from .polynomial import Polynomial
from .precomputed import Precomputed, check_gram
from .rbf import RBF
from .registry import KERNELS
from .spec import resolve_kernels
from .spectrum import Spectrum
from .subsets import random_subsets
from .tanimoto import Tanimoto
from .task import TaskKernel, per_task
from .weighted_degree import WeightedDegree

__all__ = [
    "KERNELS",
    "NORMALIZATIONS",
    "RBF",
    "AutogradKernel",
    "Chi2",
    "Constant",
    "ExpSum",
    "Family",
    "FunctionKernel",
    "GPKernel",
    "GroupProductRBF",
    "HistogramIntersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Normalization",
    "ParametricKernel",
    "Polynomial",
    "PowerSum",
    "Precomputed",
    "Product",
    "ProductOf",
    "ProductRBF",
    "Scaled",
    "Spectrum",
    "Sum",
    "Tanimoto",
    "TaskKernel",
    "WeightedDegree",
    "WeightedSum",
    "as_kernel",
    "auto",
    "bands",
    "bandwidths",
    "check_gram",
    "per_feature",
    "per_group",
    "per_task",
    "random_subsets",
    "resolve_kernels",
    "resolve_normalization",
]
