"""Gram engines: M kernel matrices on n samples behind one interface."""

from .._registry import Registry
from .base import Gram
from .dense import DenseGram
from .dictionary import Dictionary, Expansion, parse_memory
from .sources import FeatureSource, FoldSource, KernelSource, StackSource
from .stack import KernelStack

GRAMS = Registry("gram", (DenseGram,))

__all__ = [
    "GRAMS",
    "DenseGram",
    "Dictionary",
    "Expansion",
    "FeatureSource",
    "FoldSource",
    "Gram",
    "KernelSource",
    "KernelStack",
    "StackSource",
    "parse_memory",
]
