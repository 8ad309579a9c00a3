"""Gram matrices on another device, through torch: shared distances, fused sums, row blocks."""

from .engine import TorchGram
from .matrix import Matrix

__all__ = ["Matrix", "TorchGram"]
