"""The page that lists every statement of the papers with its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .files import GENERATED, markdown
from .summary import VERDICTS, Line, Table
from .untestable import UNTESTABLE

if TYPE_CHECKING:
    from .page import Published

OPENING = """# Results

What was measured, how, and on what. Every number on these pages is written by a program in the repository.
[What we learned](what-we-learned.md) says which method wins where, over the data sets of all experiments;
[Benchmarks](benchmarks.md) has time and memory.

The five papers' experiments are run again by `python experiments`. Of those in the second table below, every
row, one per split and method, is committed beside the pages (`data/NAME/rows.csv.gz`), and all tables and
verdicts are made from these rows by rules that were fixed before the results were seen. Pages of other
experiments are of an earlier run under an earlier rule, and say so; nothing of them counts here. What we
promise of methods that no paper tried is judged likewise, as our own statements. The rules:

* A **figure** is *reproduced* if our mean is within two standard errors of the difference from the paper's,
  and *not reproduced* otherwise, higher or lower. Being higher than published is no merit.
* An **order**, A above B, is judged on differences split by split: *reproduced* if their mean is over two
  standard errors, *contradicted* if it is under minus two, and *undecided* between. "Best of all" is an order
  against each of the others, and what is shown is the weakest of these pairs, the one that decides; a bound
  is an order against a number, and a correlation an order against zero; "as good as" is a difference whose
  figure in the paper is zero, and "loses nothing" the same, unless it is ahead; "not below by more than a
  margin" is contradicted by a mean difference beyond both the margin and two standard errors. A difference
  is positive where the method named first is ahead, whether higher or lower is better.
* *Not testable here*: data or programs are not available, or it would take too long; the reason is given.

Where the papers' data are not available and others stand in, statements are judged on those others, and the
experiment's page says which."""


def index(everything: list[Published]) -> str:
    """The page ``results/index.md``, from the committed rows of all experiments."""
    statements = _statements(everything)
    lines = [[*_shown(paper, line), page] for paper, line, page in statements]
    table = Table("", ["paper", "statement", "the paper", "ours", "verdict", "page"], lines)
    parts = [OPENING, "## How it came out", markdown(_by_paper(statements))]
    if everything:
        parts += [markdown(_by_experiment(everything))]
    return "\n\n".join([*parts, "## Statement by statement", markdown(table), GENERATED, TREE]) + "\n"


TREE = """```{toctree}

what-we-learned
benchmarks
*
```"""


def short(paper: str) -> str:
    """Authors and year of an experiment's paper.

    Examples
    --------
    >>> short("Kloft, Brefeld, Sonnenburg & Zien (2011), JMLR 12, Figure 3")
    'Kloft et al. (2011)'
    >>> short("Varma & Babu (2009), Table 4")
    'Varma & Babu (2009)'
    >>> short("Our own statements")
    'Our own statements'
    """
    authors, _, rest = paper.partition(" (")
    if not rest:
        return paper
    first, comma, _ = authors.partition(",")
    return f"{first} et al. ({rest[:5]}" if comma else f"{authors} ({rest[:5]}"


def _statements(everything: list[Published]) -> list[tuple[str, Line, str]]:
    """Paper, statement and page, by paper; those that no experiment here can judge come last."""
    found = []
    for paper in dict.fromkeys([*UNTESTABLE, *(short(one.experiment.paper) for one in everything)]):
        for one in everything:
            if short(one.experiment.paper) == paper:
                link = f"[{one.name}]({one.name}.md)"
                found += [(paper, line, link) for line in one.summary.lines if _stated(line)]
        found += [(paper, line, "") for line in UNTESTABLE.get(paper, [])]
    return found


def _stated(line: Line) -> bool:
    return line.kind == "claim" and line.verdict != "ours alone"


def _shown(paper: str, line: Line) -> list[str]:
    reason = f": {line.why}" if line.verdict == "not testable here" else ""
    return [paper, line.what, line.paper, line.ours, line.said + reason]


def _by_paper(statements: list[tuple[str, Line, str]]) -> Table:
    """How many statements of each paper came out how."""
    words = [word for word in VERDICTS if word != "ours alone"]
    papers = dict.fromkeys(paper for paper, _, _ in statements)
    counts = Counter((paper, line.verdict) for paper, line, _ in statements)
    lines = [[paper, *(str(counts[paper, word]) for word in words)] for paper in papers]
    return Table("", ["statements of", *words], lines)


def _by_experiment(everything: list[Published]) -> Table:
    """How many statements and figures of each experiment came out how."""
    lines = []
    for one in everything:
        claims, figures = (
            _counts(line for line in one.summary.lines if line.kind == kind) for kind in ("claim", "figure")
        )
        lines.append([f"[{one.name}]({one.name}.md)", one.experiment.paper, claims, figures])
    return Table("", ["experiment", "paper", "statements", "figures"], lines)


def _counts(lines: Iterable[Line]) -> str:
    counts = Counter(line.said for line in lines if line.verdict != "ours alone")
    return ", ".join(f"{count} {said}" for said, count in counts.items()) or "none"
