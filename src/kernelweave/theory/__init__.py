"""Theory: kernel alignment, generalisation bounds, recovery by greedy selection, which method to try."""

from ._statements import Assumption, Finding
from .alignment import effective_number, pairwise_alignment, target_alignment
from .bounds import (
    conversion_factor,
    greedy_complexity,
    greedy_risk_bound,
    lp_complexity,
    lp_risk_bound,
    norm_complexity,
    radius_margin_bound,
)
from .complexity import empirical_complexity
from .recovery import Recovery, recovery_coefficient
from .suggest import Suggestion, suggest

__all__ = [
    "Assumption", "Finding", "Recovery", "Suggestion", "conversion_factor", "effective_number",
    "empirical_complexity", "greedy_complexity", "greedy_risk_bound", "lp_complexity", "lp_risk_bound",
    "norm_complexity", "pairwise_alignment", "radius_margin_bound", "recovery_coefficient", "suggest",
    "target_alignment",
]  # fmt: skip
