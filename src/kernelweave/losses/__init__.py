"""Losses V(y, f) with their conjugates, one per file (Kloft et al. 2011, section 3)."""

from .._registry import Registry
from .base import Loss
from .censored_eps_insensitive import CensoredEpsInsensitive
from .cox import Cox
from .eps_insensitive import EpsInsensitive
from .hinge import Hinge
from .huber import Huber
from .joint import JointLoss
from .logistic import Logistic
from .multiclass_hinge import MulticlassHinge
from .one_class import OneClass
from .ordinal import OrdinalHinge, OrdinalLogistic
from .pinball import Pinball
from .ranking import Ranking
from .squared import Squared
from .squared_hinge import SquaredHinge
from .survival_ranking import SurvivalRanking

LOSSES = Registry(
    "loss",
    (
        Hinge,
        SquaredHinge,
        Logistic,
        Squared,
        EpsInsensitive,
        Huber,
        Pinball,
        OneClass,
        Ranking,
        Cox,
        SurvivalRanking,
        CensoredEpsInsensitive,
        OrdinalLogistic,
        OrdinalHinge,
    ),
)

__all__ = [
    "LOSSES",
    "CensoredEpsInsensitive",
    "Cox",
    "EpsInsensitive",
    "Hinge",
    "Huber",
    "JointLoss",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "OneClass",
    "OrdinalHinge",
    "OrdinalLogistic",
    "Pinball",
    "Ranking",
    "Squared",
    "SquaredHinge",
    "SurvivalRanking",
]
