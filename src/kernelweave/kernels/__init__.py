"""Kernels: positive semidefinite functions of two samples; their combinations, families, normalisations.

To be read in this order: `base` (what a kernel is), `bases` (what two samples have in common: kernels of
one base share it on every engine and device), `bandwidth` and one kernel, such as `rbf`; `compose` (sums,
products, multiples); `columns` (which columns a kernel sees); `family` and `families` (many kernels written
down once); `convert` and `spec` (what users may pass); `normalize`. The other kernels stand alone, and
`parametric` are those with learned parameters.
"""

from .base import Kernel
from .bases import Base, ChiSquared, Euclidean, InnerProduct, Intersection, Manhattan, SquaredEuclidean
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
    "Base",
    "Chi2",
    "ChiSquared",
    "Constant",
    "Euclidean",
    "ExpSum",
    "Family",
    "FunctionKernel",
    "GPKernel",
    "GroupProductRBF",
    "HistogramIntersection",
    "InnerProduct",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Manhattan",
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
    "SquaredEuclidean",
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
