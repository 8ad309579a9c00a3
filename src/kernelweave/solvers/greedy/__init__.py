"""Greedy selection of kernels, one after another, with a refit after each."""

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
