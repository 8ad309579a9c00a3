"""Generalized multiple kernel learning: gradient descent in the parameters of one kernel.

Reading order: ``objective.py`` (T and its gradient), ``solver.py`` (the method), ``descent.py`` (two ways
down), ``penalties.py``, ``constraints.py``; ``check.py`` compares gradients with differences.
"""

from .check import check_gradient
from .constraints import Box, Projection, resolve_constraint
from .objective import Objective, Point
from .penalties import L1, L2, PENALTIES, FunctionPenalty, LogDet, Penalty, PenaltySum, PowerNorm
from .solver import METHODS, KernelGradient

__all__ = [
    "L1",
    "L2",
    "METHODS",
    "PENALTIES",
    "Box",
    "FunctionPenalty",
    "KernelGradient",
    "LogDet",
    "Objective",
    "Penalty",
    "PenaltySum",
    "Point",
    "PowerNorm",
    "Projection",
    "check_gradient",
    "resolve_constraint",
]
