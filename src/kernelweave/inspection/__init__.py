"""Plots of fitted models, in the manner of scikit-learn's Display objects."""

from __future__ import annotations

from .weights import KernelWeightsDisplay

__all__ = ["KernelWeightsDisplay"]
