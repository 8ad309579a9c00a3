"""Standings of all experiments, put beside one another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .summary import METHODS, Standing

UNIFORM, SINGLE = "uniform sum", "best single kernel"
FEWEST_SETS, FEWEST_METHODS = 5, 3  # for ranks


class Block(NamedTuple):
    """Methods (columns) that one experiment has on all its data sets (rows); higher is better."""

    experiment: str
    data: list[str]
    methods: list[str]
    scores: NDArray[np.float64]


class Paired(NamedTuple):
    """A method against the uniform sum: points it is better by, one per problem, and their data sets."""

    method: str
    gains: list[float]
    data: list[str]


def largest_block(found: dict[str, list[Standing]]) -> Block | None:
    """The largest complete table of an experiment that has both baselines; None where there is none."""
    blocks = [block for name, standings in found.items() if (block := _complete(name, standings)) is not None]
    return max(blocks, key=lambda block: block.scores.size, default=None)


def _complete(name: str, standings: list[Standing]) -> Block | None:
    """Methods of an experiment that all its problems have, if each problem is a data set of its own."""
    table = by_problem(standings)
    problems = {problem: data for data, problem in table}
    methods = [m for m in METHODS if all(m in scores for scores in table.values())]
    enough = len(problems) >= FEWEST_SETS and len(methods) >= FEWEST_METHODS
    if not enough or not {UNIFORM, SINGLE} <= set(methods) or len(set(problems.values())) < len(problems):
        return None
    return Block(name, list(problems), methods, np.array([[s[m] for m in methods] for s in table.values()]))


def by_problem(standings: Iterable[Standing]) -> dict[tuple[str, str], dict[str, float]]:
    """Scores by (data set, problem) and method, signed so that higher is better."""
    table: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for one in standings:
        table[one.data, one.problem][one.method] = one.score if one.higher else -one.score
    return dict(table)


def against_uniform(found: dict[str, list[Standing]]) -> list[Paired]:
    """Every method beside the uniform sum, on the problems that have both."""
    gains: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for standings in found.values():
        for (data, _), scores in by_problem(standings).items():
            for method in scores.keys() - {UNIFORM} if UNIFORM in scores else ():
                gains[method].append((scores[method] - scores[UNIFORM], data))
    return [
        Paired(method, [gain for gain, _ in gains[method]], [data for _, data in gains[method]])
        for method in METHODS
        if method in gains
    ]


def p_value(pair: Paired) -> float:
    """Wilcoxon's signed-rank test over data sets, the problems of a set averaged; nan for fewer than six."""
    means = [
        np.mean([g for g, d in zip(pair.gains, pair.data, strict=True) if d == one]) for one in set(pair.data)
    ]
    if len(means) < 6 or not np.any(means):
        return float("nan")
    # rounded, or equal gains would differ in their last digit; sorted, for sets have no order
    return float(stats.wilcoxon(np.sort(np.round(means, 6)), method="approx").pvalue)
