"""Kernels: positive semidefinite functions of two samples; their combinations, families, normalisations.

To be read in this order: `base` (what a kernel is), `bases` (what two samples have in common: kernels of
one base share it on every engine and device), `bandwidth` (Gaussian kernels and others with a width);
`compose` (sums, products, multiples); `columns` (which columns a kernel sees), `views` (several tables as
one X); `families` (many kernels written down once); `convert` and `spec` (what users may pass);
`normalize`. The other kernels stand alone, and `parametric` are those with learned parameters.
"""

from .bandwidth import RBF, Chi2, Laplacian
from .base import Kernel
from .bases import Base, ChiSquared, Euclidean, InnerProduct, Intersection, Manhattan, SquaredEuclidean
from .compose import Product, Scaled, Sum
from .convert import KERNELS, as_kernel
from .families import Family, auto, bands, bandwidths, per_feature, per_group
from .function import FunctionKernel, GPKernel
from .gene_sets import GeneSets, from_gmt
from .matern import Matern
from .normalize import NORMALIZATIONS, Dimension, Normalization, resolve_normalization
from .parametric import (
    AutogradKernel,
    ExpSum,
    GroupProductRBF,
    MetricRBF,
    ParametricKernel,
    PowerSum,
    ProductOf,
    ProductRBF,
    ProjectedRBF,
    WeightedSum,
)
from .precomputed import Precomputed, check_gram
from .products import Constant, HistogramIntersection, Linear, Polynomial, Tanimoto
from .pyramid import SpatialPyramid
from .spec import resolve_kernels
from .strings import Spectrum, WeightedDegree
from .subsets import random_subsets
from .task import TaskKernel, per_task
from .views import Views, as_views

__all__ = [
    "KERNELS",
    "NORMALIZATIONS",
    "RBF",
    "AutogradKernel",
    "Base",
    "Chi2",
    "ChiSquared",
    "Constant",
    "Dimension",
    "Euclidean",
    "ExpSum",
    "Family",
    "FunctionKernel",
    "GPKernel",
    "GeneSets",
    "GroupProductRBF",
    "HistogramIntersection",
    "InnerProduct",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Manhattan",
    "Matern",
    "MetricRBF",
    "Normalization",
    "ParametricKernel",
    "Polynomial",
    "PowerSum",
    "Precomputed",
    "Product",
    "ProductOf",
    "ProductRBF",
    "ProjectedRBF",
    "Scaled",
    "SpatialPyramid",
    "Spectrum",
    "SquaredEuclidean",
    "Sum",
    "Tanimoto",
    "TaskKernel",
    "Views",
    "WeightedDegree",
    "WeightedSum",
    "as_kernel",
    "as_views",
    "auto",
    "bands",
    "bandwidths",
    "check_gram",
    "from_gmt",
    "per_feature",
    "per_group",
    "per_task",
    "random_subsets",
    "resolve_kernels",
    "resolve_normalization",
]
