"""What a fitted model says, and how far to trust it: components, stability, alignments, plots."""

from __future__ import annotations

from .alignments import kernel_alignments
from .components import contributions
from .drop_one import DropOneResult, drop_one
from .stability import StabilityResult, stability_selection
from .weights import KernelWeightsDisplay

__all__ = [
    "DropOneResult",
    "KernelWeightsDisplay",
    "StabilityResult",
    "contributions",
    "drop_one",
    "kernel_alignments",
    "stability_selection",
]
