"""Losses V(y, f) with their conjugates, one per file (Kloft et al. 2011, section 3)."""

from .._registry import Registry
from .base import Loss
from .eps_insensitive import EpsInsensitive
from .hinge import Hinge
from .huber import Huber
from .joint import JointLoss
from .logistic import Logistic
from .multiclass_hinge import MulticlassHinge
from .one_class import OneClass
from .ranking import Ranking
from .squared import Squared
from .squared_hinge import SquaredHinge

LOSSES = Registry("loss", (Hinge, SquaredHinge, Logistic, Squared, EpsInsensitive, Huber, OneClass, Ranking))

__all__ = [
    "LOSSES",
    "EpsInsensitive",
    "Hinge",
    "Huber",
    "JointLoss",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "OneClass",
    "Ranking",
    "Squared",
    "SquaredHinge",
]
