"""Greedy selection of kernels, one after another, with a refit after each.

Reading order: ``refit.py`` (what is minimised, and the fit of a set of kernels), ``path.py`` (the method),
``dictionary.py`` (kernels as factors; ``torch_scores.py``: on a device); ``best_subset.py`` is the exact
search that the greedy one is compared with.
"""

from .best_subset import BestSubset, best_subset
from .dictionary import FactorDictionary
from .path import GreedyPoint, GroupOMP, Stage
from .refit import Fit, GreedyTask, MachineRefit, Refit, RidgeRefit, left_out_margins, refit_for

__all__ = [
    "BestSubset",
    "FactorDictionary",
    "Fit",
    "GreedyPoint",
    "GreedyTask",
    "GroupOMP",
    "MachineRefit",
    "Refit",
    "RidgeRefit",
    "Stage",
    "best_subset",
    "left_out_margins",
    "refit_for",
]
