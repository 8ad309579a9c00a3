"""Kernels of low rank: feature maps, their factors, and a Gram engine that is linear in n."""

from .approximations import (
    APPROXIMATIONS,
    Approximation,
    Nystroem,
    RandomFourier,
    resolve_approximation,
)
from .engine import FactoredMatrix, LowRankGram
from .factors import ComputedFactors, Factors, StoredFactors
from .maps import ExactMap, FeatureMap, Features, FourierMap, NystroemMap

__all__ = [
    "APPROXIMATIONS",
    "Approximation",
    "ComputedFactors",
    "ExactMap",
    "FactoredMatrix",
    "Factors",
    "FeatureMap",
    "Features",
    "FourierMap",
    "LowRankGram",
    "Nystroem",
    "NystroemMap",
    "RandomFourier",
    "StoredFactors",
    "resolve_approximation",
]
