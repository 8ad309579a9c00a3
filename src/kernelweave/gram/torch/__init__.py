"""Gram matrices on another device, through torch: shared distances, fused sums, row blocks."""

from .engine import TorchGram
from .sums import Matrix

__all__ = ["Matrix", "TorchGram"]
