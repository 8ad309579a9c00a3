"""Penalties on the parameters of a kernel, one per file."""

from ...._registry import Registry
from .base import Penalty
from .function import FunctionPenalty
from .l1 import L1
from .l2 import L2
from .log_det import LogDet
from .power_norm import PowerNorm
from .sum import PenaltySum

PENALTIES = Registry("penalty", (L1, L2, PowerNorm, LogDet))

__all__ = ["L1", "L2", "PENALTIES", "FunctionPenalty", "LogDet", "Penalty", "PenaltySum", "PowerNorm"]
