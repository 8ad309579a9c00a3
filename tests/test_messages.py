"""What is refused with a remedy, where no other test meets the message."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kernelweave as kw
from kernelweave import theory
from kernelweave.inspection import interactions
from kernelweave.kernels import RBF, Linear, Matern, per_feature, per_task
from kernelweave.regularizers import PatternNorm
from kernelweave.solvers.kernel_gradient.penalties import PenaltySum

X = np.random.default_rng(0).normal(size=(20, 3))
y = np.sign(X[:, 0])


def survival():
    weight = np.eye(20)[0]  # one sample counts
    times = np.column_stack([np.arange(1.0, 21.0), np.ones(20)])
    return kw.MKLSurvival(RBF()).fit(X, times, sample_weight=weight)


def pairs():
    table = pd.DataFrame({"a": X[:, 0], "b": ["x", "y"] * 10})
    model = kw.MKLClassifier({"numbers": RBF(columns=["a"])}).fit(table, y)
    return interactions(model, table.head(2), features=("a", "b"))


REFUSED = {
    "more kernels drawn than there are": (
        lambda: kw.GroupOMPRegressor(per_feature(Linear()), dictionary_sample=7).fit(X, y),
        "dictionary_sample=7 exceeds the 3 kernels given; lower it",
    ),
    "margins of samples under approximation": (
        lambda: kw.MKLClassifier(
            missing="margin", regularizer=kw.LpNorm(p=1), approximation="nystroem", rank=5
        ).fit(X, y),
        "missing='margin' needs the kernels themselves: pass approximation=None",
    ),
    "times of one sample": (survival, "y has 1 sample of positive weight"),
    "parts that explanations do not have": (
        lambda: kw.explain(kw.MKLClassifier(RBF()).fit(X, y), X[:2]).parts_by("column"),
        "by='column': expected 'feature' or 'kernel'",
    ),
    "pairs with a column of text": (
        pairs,
        "interactions are between columns of numbers, and some hold text",
    ),
    "a kernel that is all but Gaussian": (
        lambda: Matern(nu=1e9).fit(X),
        "use nu=inf, the Gaussian kernel",
    ),
    "tasks and nothing else": (
        lambda: kw.MKLRegressor(per_task(RBF(), task=0)).fit(np.arange(20.0)[:, None] % 2, y),
        "task=0 is the only column: X needs columns beside the task labels",
    ),
    "a sum of no penalties": (
        lambda: kw.GMKLClassifier(regularizer=PenaltySum([])).fit(X, y),
        "penalties is empty, give at least one",
    ),
    "words as numbers": (
        lambda: theory.suggest(RBF(), X, ["a", "b"] * 10, task="regression"),
        "y must hold numbers for task='regression'",
    ),
    "prices of patterns": (
        lambda: PatternNorm(np.eye(2, dtype=bool)).price(np.ones(2)),
        "PatternNorm has no price of weights",
    ),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_is_refused_says_what_to_do(case):
    refused, message = REFUSED[case]
    with pytest.raises((ValueError, NotImplementedError), match=message.replace("(", r"\(")):
        refused()
