"""Theory: kernel alignment, generalisation bounds, recovery by greedy selection, which method to try."""

from ._result import Assumption, Result
from .alignment import effective_number, pairwise_alignment, target_alignment
from .complexity import empirical_complexity
from .greedy_bounds import greedy_complexity, greedy_risk_bound
from .lp_bounds import conversion_factor, lp_complexity, lp_risk_bound, radius_margin_bound
from .recovery import Recovery, recovery_coefficient
from .suggest import Suggestion, suggest

__all__ = [
    "Assumption",
    "Recovery",
    "Result",
    "Suggestion",
    "conversion_factor",
    "effective_number",
    "empirical_complexity",
    "greedy_complexity",
    "greedy_risk_bound",
    "lp_complexity",
    "lp_risk_bound",
    "pairwise_alignment",
    "radius_margin_bound",
    "recovery_coefficient",
    "suggest",
    "target_alignment",
]
