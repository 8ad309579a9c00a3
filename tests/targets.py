"""Targets that the estimators take, for tests that run over all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from kernelweave.losses import LOSSES

#: registered losses that are sums over samples
SEPARABLE = {name: cls for name, cls in LOSSES.items() if cls.separable}

#: what `fit` takes after X, made of numbers and of labels: by the name of a class, or else by its type
TARGETS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "classifier": lambda numbers, labels: (labels,),
    "regressor": lambda numbers, labels: (numbers,),
    "outlier_detector": lambda numbers, labels: (),
    "MKLSurvival": lambda numbers, labels: (censored(numbers),),
    "GroupOMPSurvival": lambda numbers, labels: (censored(numbers),),
    "MKLSurvivalCV": lambda numbers, labels: (censored(numbers),),
    "MKLAutoSurvival": lambda numbers, labels: (censored(numbers),),
}


def targets_of(loss: Any, numbers: Any) -> Any:
    """Targets of a loss that is a sum over samples: signs, zeros, times (< 0: censored), or numbers."""
    numbers = np.asarray(numbers, dtype=float)
    return {
        "classification": np.sign(numbers),
        "one_class": np.zeros(len(numbers)),
        "survival": np.where(np.arange(len(numbers)) % 4 > 0, 1.0, -1.0) * np.exp(numbers),
    }.get(loss.task, numbers)


def censored(numbers: Any) -> Any:
    """Events and times: later ones for smaller numbers, with ties, every fourth censored."""
    times = np.ceil(10.0 * np.exp(-np.asarray(numbers, dtype=float) / (1.0 + np.std(numbers))))
    found = np.empty(len(times), dtype=[("event", bool), ("time", float)])
    found["event"], found["time"] = np.arange(len(times)) % 4 > 0, times
    return found


def targets_for(estimator: Any, numbers: Any, labels: Any) -> tuple[Any, ...]:
    """Targets for an estimator, none or one array; an estimator of another kind has a line in `TARGETS`."""
    own = TARGETS.get(type(estimator).__name__)
    return (own or TARGETS[get_tags(estimator).estimator_type])(numbers, labels)
