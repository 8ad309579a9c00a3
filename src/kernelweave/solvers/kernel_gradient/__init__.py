"""Generalized multiple kernel learning: gradient descent in the parameters of one kernel.

Reading order: ``objective.py`` (T and its gradient), ``solver.py`` (the method, with two kinds of descent),
``penalties.py`` (penalties and constraints); ``torch_kernel.py`` is the kernel on a device.
"""

from ...kernels.parametric import Box
from .objective import KernelPoint, Objective, check_gradient
from .penalties import (
    L1,
    L2,
    PENALTIES,
    FunctionPenalty,
    LogDet,
    Penalty,
    PenaltySum,
    PowerNorm,
    Prior,
    Projection,
    resolve_constraint,
)
from .solver import METHODS, KernelGradient

__all__ = [
    "L1",
    "L2",
    "METHODS",
    "PENALTIES",
    "Box",
    "FunctionPenalty",
    "KernelGradient",
    "KernelPoint",
    "LogDet",
    "Objective",
    "Penalty",
    "PenaltySum",
    "PowerNorm",
    "Prior",
    "Projection",
    "check_gradient",
    "resolve_constraint",
]
