"""The page on what all experiments say together: which method wins where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .blocks import Block, Paired, against_uniform, by_problem, largest_block, p_value
from .diagram import draw_ranks
from .files import GENERATED, markdown
from .ranks import critical_difference, holm, ranks
from .sentences import LEVEL, listed, p_text, sentences
from .summary import METHODS, Standing, Table

NAME = "what-we-learned"


def write_learned(results: Path, standings: dict[str, list[Standing]]) -> Path | None:
    """Write ``what-we-learned.md`` and its diagram; nothing where no experiment has standings."""
    text = learned(standings)
    if not text:
        return None
    block = largest_block(standings)
    if block is not None:
        _save(_diagram(block), results / f"{NAME}.png")
    page = results / f"{NAME}.md"
    page.write_text(text, encoding="utf-8")
    return page


def _diagram(block: Block) -> Any:
    mean_ranks = dict(zip(block.methods, ranks(block.scores).mean(axis=0).tolist(), strict=True))
    try:
        difference = critical_difference(len(block.methods), len(block.data), LEVEL)
        return draw_ranks({"": (mean_ranks, difference)})
    except ImportError:  # no matplotlib
        return None


def _save(figure: Any, path: Path) -> None:
    if figure is not None:
        figure.savefig(path, dpi=90)


OPENING = """# What we learned

Which method wins where, over the data sets of all experiments. Ranks are compared within one experiment that
gives every method the same kernels, the same splits and the same tuning; what the other experiments add is
counted problem by problem, against the uniform sum of the same kernels."""


def learned(standings: dict[str, list[Standing]]) -> str:
    """The page, from the standings of all experiments by name; empty without any."""
    found = {name: some for name, some in standings.items() if some}
    if not found:
        return ""
    block = largest_block(found)
    parts = [OPENING, *(_ranked(block) if block is not None else [])]
    pairs = against_uniform(found)
    if pairs:
        parts += ["## Against the uniform sum, on all problems", *_against(pairs)]
    parts += ["## All problems", ALL, markdown(_everything(found))]
    said = [*(sentences(block) if block is not None else []), *([_verdicts(pairs)] if pairs else [])]
    if said:
        parts += ["## What follows, and what does not", "\n".join(f"* {sentence}" for sentence in said)]
    return "\n\n".join([*parts, GENERATED]) + "\n"


def _ranked(block: Block) -> list[str]:
    """Scores with ranks, and the diagram."""
    R = ranks(block.scores)
    count, sets = len(block.methods), len(block.data)
    order = np.argsort(R.mean(axis=0), kind="stable")
    shown = [block.methods[j] for j in order]
    lines = [
        [name, *(_bold(block.scores[i, j], block.scores[i, j] == block.scores[i].max()) for j in order)]
        for i, name in enumerate(block.data)
    ]
    lines += [
        ["mean", *(f"{block.scores[:, j].mean():.1f}" for j in order)],
        ["**mean rank**", *(f"**{R[:, j].mean():.2f}**" for j in order)],
    ]
    return [
        "## Ranks",
        f"{count} methods on the {sets} data sets of [{block.experiment}]({block.experiment}.md): mean score "
        "over the splits, in %, and in the last line the mean rank. The best of each set are bold.",
        markdown(Table("", ["data set", *shown], lines)),
        f"![Mean ranks, and bars over methods that do not differ]({NAME}.png)",
    ]


def _bold(score: float, first: bool) -> str:
    return f"**{score:.1f}**" if first else f"{score:.1f}"


def _against(pairs: list[Paired]) -> list[str]:
    raised = _corrected(pairs)
    lines = [_paired_line(pair, raised.get(i)) for i, pair in enumerate(pairs)]
    header = ["method", "problems", "data sets", "better", "equal", "worse", "points, mean", "p"]
    return [
        "Problems of all experiments that have both, each with its own kernels and splits. p: Wilcoxon's "
        "signed-rank test over data sets, the problems of one set averaged, corrected by Holm for all "
        "methods together; none for fewer than six data sets.",
        markdown(Table("", header, lines)),
    ]


def _corrected(pairs: list[Paired]) -> dict[int, float]:
    """P-values by Holm, of the methods that have one."""
    p = [p_value(pair) for pair in pairs]
    tested = [i for i, value in enumerate(p) if np.isfinite(value)]
    return dict(zip(tested, holm([p[i] for i in tested]), strict=True)) if tested else {}


def _paired_line(pair: Paired, p: float | None) -> list[str]:
    gains = np.array(pair.gains)
    counts = [np.sum(gains > 0), np.sum(gains == 0), np.sum(gains < 0)]
    numbers = [str(len(gains)), str(len(set(pair.data))), *(str(int(count)) for count in counts)]
    return [pair.method, *numbers, f"{gains.mean():+.2f}", "—" if p is None else p_text(p)]


def _verdicts(pairs: list[Paired]) -> str:
    """Which methods the tests tell from the uniform sum."""
    raised = _corrected(pairs)
    sure = [i for i, p in raised.items() if p < LEVEL]
    better, worse = (
        [pairs[i].method for i in sure if sign * np.mean(pairs[i].gains) > 0] for sign in (1.0, -1.0)
    )
    rest = [pairs[i].method for i in raised if i not in sure]
    untested = [pair.method for i, pair in enumerate(pairs) if i not in raised]
    text = (
        "Over the problems of all experiments (Wilcoxon's test, above), better than the uniform sum at 5 %: "
        f"{listed(better) or 'none'}; worse: {listed(worse) or 'none'}; "
        f"no significant difference: {listed(rest) or 'none'}."
    )
    return text + (f" On too few data sets to be tested: {listed(untested)}." if untested else "")


ALL = """Mean scores of every experiment in %: accuracy or, where it says so, an error (lower is better). The
best of each problem is bold. Scores of different problems cannot be compared, nor those of different
experiments on the same data set."""


def _everything(found: dict[str, list[Standing]]) -> Table:
    """One line per problem, one column per method."""
    present = {one.method for standings in found.values() for one in standings}
    methods = [method for method in METHODS if method in present]
    lines = []
    for name, standings in found.items():
        lower = {one.problem for one in standings if not one.higher}
        for (_, problem), scores in by_problem(standings).items():
            label = f"{problem} (error)" if problem in lower else problem
            best = max(scores.values())
            cells = [_bold(abs(scores[m]), scores[m] == best) if m in scores else "" for m in methods]
            lines.append([f"[{name}]({name}.md)", label, *cells])
    return Table("", ["experiment", "problem", *methods], lines)
