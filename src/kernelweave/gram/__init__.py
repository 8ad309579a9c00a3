"""Gram engines: M kernel matrices on n samples behind one interface."""

from .._registry import Registry
from .base import Gram
from .blocked import BlockedGram
from .cached import CachedGram
from .dense import DenseGram
from .dictionary import Dictionary, Expansion, parse_memory
from .packed import PackedGram, StoreGram
from .parquet import ParquetTable
from .sources import FeatureSource, FoldSource, KernelSource, StackFoldSource, StackSource
from .stack import KernelStack
from .store import GramStore

GRAMS = Registry("gram", (DenseGram, PackedGram, CachedGram, StoreGram, BlockedGram))

__all__ = [
    "GRAMS",
    "BlockedGram",
    "CachedGram",
    "DenseGram",
    "Dictionary",
    "Expansion",
    "FeatureSource",
    "FoldSource",
    "Gram",
    "GramStore",
    "KernelSource",
    "KernelStack",
    "PackedGram",
    "ParquetTable",
    "StackFoldSource",
    "StackSource",
    "StoreGram",
    "parse_memory",
]
