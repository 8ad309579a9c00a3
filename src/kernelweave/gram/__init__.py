"""Gram engines: M kernel matrices on n samples behind one interface."""

from .._registry import Registry
from .base import Gram
from .blocked import BlockedGram
from .cached import CachedGram
from .dense import DenseGram
from .dictionary import Dictionary, parse_memory
from .packed import PackedGram, StoreGram
from .parquet import ParquetTable
from .predictor import Predictor, Spread
from .sources import FeatureSource, FoldSource, KernelSource, ParametricSource, StackFoldSource, StackSource
from .stack import KernelStack
from .store import GramStore

GRAMS = Registry("gram", (DenseGram, PackedGram, CachedGram, StoreGram, BlockedGram))

__all__ = [
    "GRAMS",
    "BlockedGram",
    "CachedGram",
    "DenseGram",
    "Dictionary",
    "FeatureSource",
    "FoldSource",
    "Gram",
    "GramStore",
    "KernelSource",
    "KernelStack",
    "PackedGram",
    "ParametricSource",
    "ParquetTable",
    "Predictor",
    "Spread",
    "StackFoldSource",
    "StackSource",
    "StoreGram",
    "parse_memory",
]
