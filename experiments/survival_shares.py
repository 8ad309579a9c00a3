"""How the candidates of MKLAutoSurvival become one model: four rules on training samples.

The experiment survival-tcga has ten cohorts. Here the training part of the first fold of two of them (hnsc,
paad) is split again: five folds, twice, each fold predicted by a model of the other four. Kernels and
candidates are those of "MKLAutoSurvival" there, and so are the five inner folds that choose the cost of every
candidate. What differs is how the candidates become one model:

* "by likelihoods": shares in proportion to the partial likelihood of each candidate's held-out risks; this is
  the present rule;
* "fitted together": the non-negative shares for which the sum has the largest likelihood; the rule before;
* "mean": the mean of all risks, in units of their spread;
* "best": the candidate with the best concordance on the inner folds.

The present rule was chosen on these splits, with inner folds drawn again, after an earlier run of the ten
cohorts in which shares fitted together were worse than gene sets alone. Here the inner folds are those that
the estimator takes by itself, so that this is a second look at the same splits: the verdicts below say what
is left of the difference. A repetition is a fold; folds of one cohort share most of their training samples,
so that standard errors are too small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _survival import concordance
from reproduce import OWN, Experiment, Mode, Summary, by, ordering, table
from scipy.optimize import minimize
from sklearn.model_selection import StratifiedKFold
from survival_tcga import dictionary, load, prepared

import kernelweave as kw
from kernelweave.losses import Cox

COHORTS, TAKEN = ("paad", "hnsc"), "by likelihoods"

#: splits of the training part: seeds of the shuffles, and folds
SEEDS, FOLDS = (100, 101), 5


class FittedTogether(kw.MKLAutoSurvival):
    """Shares of the largest likelihood of the sum."""

    def _multipliers(
        self, values: Any, y: np.ndarray, weight: np.ndarray, clusters: Any, tests: list
    ) -> np.ndarray:
        F, spread, targets = held_out(values, y, tests)
        loss, ones = Cox(), np.ones(len(targets))

        def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
            return loss.value(targets, w @ F, ones), F @ loss.gradient(targets, w @ F, ones)

        found = minimize(
            objective, np.zeros(len(F)), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(F)
        )
        return found.x / spread if found.x.any() else np.eye(len(F))[0]


class Mean(kw.MKLAutoSurvival):
    """All of one spread."""

    def _multipliers(
        self, values: Any, y: np.ndarray, weight: np.ndarray, clusters: Any, tests: list
    ) -> np.ndarray:
        return 1.0 / held_out(values, y, tests)[1]


class Best(kw.MKLAutoSurvival):
    """The candidate of the best score."""

    def _choice(self, losses: Any, shares: np.ndarray) -> int:
        return int(np.argmin(losses[0][:-1].mean(axis=1)))  # minus the scores of folds


RULES = {TAKEN: kw.MKLAutoSurvival, "fitted together": FittedTogether, "mean": Mean, "best": Best}


def held_out(values: Any, y: np.ndarray, tests: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Held-out risks of spread 1 about means of folds, the spreads, and targets with folds as strata."""
    risks = np.array([np.concatenate([part[:, 0] - part[:, 0].mean() for part in one]) for one in values])
    spread = np.maximum(risks.std(axis=1), 1e-300)
    fold = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    return risks / spread[:, None], spread, np.column_stack([y[np.concatenate(tests)][:, 0], fold])


def cells(mode: Mode) -> list[dict]:
    """Cohorts, rules and splits."""
    rules = mode.pick(quick=(TAKEN, "mean"), full=tuple(RULES))
    cohorts = mode.pick(quick=("paad",), full=COHORTS)
    splits = range(min(mode.count(quick=2, full=len(SEEDS) * FOLDS), len(SEEDS) * FOLDS))
    return [{"data": c, "method": rule, "split": s} for s in splits for c in cohorts for rule in rules]


def run(data: str, method: str, split: int) -> list[dict]:
    """Concordance on a fold of the training part of the first fold."""
    views, y, fold, genes = load(data)
    rows = np.flatnonzero(fold != 0)
    views, y = {name: X[rows] for name, X in views.items()}, y[rows]
    cv = StratifiedKFold(FOLDS, shuffle=True, random_state=SEEDS[split // FOLDS])
    train, test = list(cv.split(np.zeros(len(y)), y["event"]))[split % FOLDS]
    views = prepared(views, train)
    model = RULES[method](dictionary(views, genes)).fit(kw.Views(views)[train], y[train])
    return [{"concordance": concordance(y[test], model.predict(kw.Views(views)[test]))}]


def summarise(rows: list[dict]) -> Summary:
    """The rule that was taken against the others, and the means."""

    def of(rule: str) -> dict:
        found = {c: by(rows, "concordance", data=c, method=rule) for c in COHORTS}
        return {(c, split): value for c, own in found.items() for split, value in own.items()}

    lines = [
        ordering(f"{TAKEN} against {rule!r}", of(TAKEN), of(rule), paper="above", digits=3)
        for rule in RULES
        if rule != TAKEN and of(rule)
    ]
    return Summary(lines, [table("Concordance", rows, "concordance", "method", "data", digits=3)])


EXPERIMENT = Experiment(
    title="shares of candidates for survival",
    paper=OWN,
    cells=cells,
    run=run,
    summarise=summarise,
    data=tuple(f"survival_{cohort}" for cohort in COHORTS),
    version="1",
)
