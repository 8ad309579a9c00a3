"""From a fitted model and its data to the plain data of a report."""

from __future__ import annotations

from .fit import convergence, fitted, path
from .given import Given
from .kernels import kernels, redundancy, stability
from .samples import errors, samples
from .scores import scores
from .settings import settings

__all__ = [
    "Given",
    "convergence",
    "errors",
    "fitted",
    "kernels",
    "path",
    "redundancy",
    "samples",
    "scores",
    "settings",
    "stability",
]
