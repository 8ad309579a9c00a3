"""From a fitted model and its data to the plain data of a report."""

from __future__ import annotations

from .convergence import convergence, path
from .errors import errors
from .fitted import fitted
from .given import Given
from .kernels import kernels, redundancy
from .samples import samples
from .scores import scores
from .settings import settings
from .stability import stability

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
