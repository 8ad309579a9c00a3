"""What ranks say, in sentences whose numbers and names come from the scores."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from .blocks import SINGLE, UNIFORM, Block
from .ranks import Friedman, critical_difference, friedman, ranks
from .summary import METHODS

LEVEL = 0.05


def sentences(block: Block) -> list[str]:
    """What the ranks say and what they do not; numbers and names from the scores."""
    test, R = friedman(block.scores), ranks(block.scores).mean(axis=0)
    said = [_test(test, block), _order(block, R), _firsts(block)]
    if test.p_corrected >= LEVEL:
        return [*said, "With that no difference between any two methods is shown.", *_sizes(block)]
    difference = critical_difference(len(block.methods), len(block.data), LEVEL)
    pairs = [
        (a, b)
        for a in np.argsort(R, kind="stable")
        for b in np.argsort(R, kind="stable")
        if R[b] - R[a] > difference
    ]
    return [
        *said,
        _significant(block, pairs, difference),
        _beside(block, pairs, UNIFORM),
        _beside(block, pairs, SINGLE),
        *_sizes(block),
    ]


def _test(test: Friedman, block: Block) -> str:
    verdict = "rejects" if test.p_corrected < LEVEL else "does not reject"
    return (
        f"Friedman's test {verdict} that all methods are equal: chi2 = {test.chi2:.1f} "
        f"(p = {p_text(test.p)}), F = {test.F:.2f} of Iman and Davenport (p = {p_text(test.p_corrected)}), "
        f"{len(block.methods)} methods, {len(block.data)} data sets."
    )


def p_text(value: float) -> str:
    """A p-value as text."""
    return f"{value:.3f}" if value >= 0.001 else "under 0.001"


def _order(block: Block, R: NDArray[np.float64]) -> str:
    order = np.argsort(R, kind="stable")
    first, second, last = ((block.methods[j], R[j]) for j in (order[0], order[1], order[-1]))
    return (
        f"Best mean rank: {first[0]} ({first[1]:.2f}), then {second[0]} ({second[1]:.2f}); "
        f"the last is {last[0]} ({last[1]:.2f})."
    )


def _firsts(block: Block) -> str:
    """On how many sets each method has the highest score, alone or with others."""
    first = block.scores >= block.scores.max(axis=1, keepdims=True)
    counts = {method: int(first[:, j].sum()) for j, method in enumerate(block.methods)}
    ranked = sorted(counts, key=lambda method: (-counts[method], METHODS.index(method)))
    none = [method for method in ranked if counts[method] == 0]
    text = ", ".join(f"{method} {counts[method]}" for method in ranked if counts[method])
    return f"Highest score, alone or with others, on how many sets: {text}" + (
        f"; never: {listed(none)}." if none else "."
    )


def _significant(block: Block, pairs: list[tuple[int, int]], difference: float) -> str:
    """The pairs that Nemenyi's test tells apart."""
    count = len(block.methods) * (len(block.methods) - 1) // 2
    worse: dict[str, list[str]] = defaultdict(list)
    for a, b in pairs:
        worse[block.methods[a]].append(block.methods[b])
    text = "; ".join(f"{better} is better than {listed(others)}" for better, others in worse.items())
    return (
        f"Mean ranks within {difference:.2f} of each other are not told apart (Nemenyi's test at 5 %, bars "
        f"in the figure). That leaves {len(pairs)} of {count} pairs with a difference"
        + (f": {text}." if text else ".")
    )


def _beside(block: Block, pairs: list[tuple[int, int]], baseline: str) -> str:
    """What is better than a baseline, worse, or not told apart from it."""
    at = block.methods.index(baseline)
    better = [block.methods[a] for a, b in pairs if b == at]
    worse = [block.methods[b] for a, b in pairs if a == at]
    rest = [m for m in block.methods if m not in (*better, *worse, baseline)]
    parts = [f"better: {listed(better) or 'none'}", f"worse: {listed(worse) or 'none'}"]
    return f"Beside the {baseline}, {'; '.join(parts)}; no significant difference: {listed(rest) or 'none'}."


def _sizes(block: Block) -> list[str]:
    """How much there is to win and to lose against the uniform sum."""
    at = block.methods.index(UNIFORM)
    gains = block.scores - block.scores[:, [at]]
    means = gains.mean(axis=0)
    top, flop = (np.unravel_index(find(gains), gains.shape) for find in (np.argmax, np.argmin))
    ranked = [j for j in np.argsort(-means, kind="stable") if j != at]
    text = ", ".join(f"{block.methods[j]} {means[j]:+.1f}" for j in ranked)
    return [
        f"Points against the uniform sum, mean over the sets: {text}.",
        f"The most there was to win over the uniform sum: {gains[top]:+.1f} points "
        f"({block.methods[top[1]]} on {block.data[top[0]]}); to lose: {gains[flop]:+.1f} "
        f"({block.methods[flop[1]]} on {block.data[flop[0]]}).",
    ]


def listed(names: list[str]) -> str:
    """Names in a sentence.

    Examples
    --------
    >>> listed(["SMKL", "l1-MKL", "elastic net"])
    'SMKL, l1-MKL and elastic net'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
