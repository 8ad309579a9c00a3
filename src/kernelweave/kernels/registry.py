"""Every kernel class, by name."""

from __future__ import annotations

from .._registry import Registry
from .chi2 import Chi2
from .constant import Constant
from .function import FunctionKernel
from .gp import GPKernel
from .histogram_intersection import HistogramIntersection
from .laplacian import Laplacian
from .linear import Linear
from .matern import Matern
from .polynomial import Polynomial
from .precomputed import Precomputed
from .rbf import RBF
from .spectrum import Spectrum
from .tanimoto import Tanimoto
from .weighted_degree import WeightedDegree

KERNELS = Registry(
    "kernel",
    (
        Chi2,
        Constant,
        FunctionKernel,
        GPKernel,
        HistogramIntersection,
        Laplacian,
        Linear,
        Matern,
        Polynomial,
        Precomputed,
        RBF,
        Spectrum,
        Tanimoto,
        WeightedDegree,
    ),
)
