"""Gram engines: M kernel matrices on n samples behind one interface."""

from .._registry import Registry
from .base import Gram
from .blocked import BlockedGram
from .cached import CachedGram
from .dense import DenseGram
from .dictionary import Dictionary, Expansion, parse_memory
from .packed import PackedGram
from .sources import FeatureSource, FoldSource, KernelSource, StackSource
from .stack import KernelStack

GRAMS = Registry("gram", (DenseGram, PackedGram, CachedGram, BlockedGram))

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
    "KernelSource",
    "KernelStack",
    "PackedGram",
    "StackSource",
    "parse_memory",
]
