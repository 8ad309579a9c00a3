"""Greedy selection of kernels, one after another, with a refit after each.

Reading order: ``task.py`` (what is minimised), ``path.py`` (the method), ``refit.py``, ``dictionary.py``
on ``blocks.py`` (kernels as factors); ``best_subset.py`` is the exact search that the greedy one is
compared with.
"""

from .best_subset import BestSubset, best_subset
from .dictionary import FactorDictionary
from .path import GroupOMP, Path, Stage
from .refit import MachineRefit, Refit, RidgeRefit, left_out_margins, refit_for
from .task import Fit, GreedyTask

__all__ = [
    "BestSubset",
    "FactorDictionary",
    "Fit",
    "GreedyTask",
    "GroupOMP",
    "MachineRefit",
    "Path",
    "Refit",
    "RidgeRefit",
    "Stage",
    "best_subset",
    "left_out_margins",
    "refit_for",
]
