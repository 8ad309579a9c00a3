"""Score against baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data import Score, Scores
from ..figures import Bar, bars
from ..figures.scale import Scale
from ..html import Html, join
from ..numbers import count, fixed, plus_minus, signed_fixed
from .parts import figure, lead, table

if TYPE_CHECKING:
    from ..report import Report

#: ranges of the other scores from which on the trivial baseline is off the scale
FAR = 3.0


def score(report: Report) -> Html | None:
    """Dots with their errors, the model first, and the same as a table."""
    scores = report.scores
    if scores is None:
        return None
    entries = [scores.model, *scores.baselines]
    drawing = bars(
        "score-figure",
        f"{scores.metric.capitalize()} of the model and of the baselines",
        "; ".join(f"{entry.name}: {plus_minus(entry.value, entry.error)}" for entry in entries),
        [_bar(entry, scores) for entry in entries],
        label=scores.metric,
        scale=_scale(scores),
        dots=True,
    )
    caption = (
        f"{scores.metric.capitalize()} {scores.how}, {count(scores.n, 'sample')} in all; the lines are one "
        "standard error to each side."
    )
    intro = lead(
        "What does learning the weights buy? The same samples, predicted by simpler models.",
        scores.note,
        f"Left out because they could not be fitted: {'; '.join(scores.failed)}" if scores.failed else "",
    )
    rows = [_row(entry, entry is scores.model) for entry in entries]
    heads = ("Model", scores.metric.capitalize(), "Standard error", "This model minus it")
    return join([intro, figure(drawing, caption), table("score-table", "Scores", heads, rows)])


def _scale(scores: Scores) -> Scale:
    """Of the model and the baselines near it: one far below would squeeze the others."""
    ends = {
        s.name: [s.value - (s.error or 0.0), s.value + (s.error or 0.0)]
        for s in (scores.model, *scores.baselines)
    }
    near = [end for name, pair in ends.items() if name != scores.trivial for end in pair]
    every = [end for pair in ends.values() for end in pair]
    far = len(scores.baselines) > 1 and max(near) - min(every) > FAR * (max(near) - min(near))
    return Scale.covering(near if far else every, 2.0, 98.0, pad=0.12)


def _bar(entry: Score, scores: Scores) -> Bar:
    own = entry is scores.model
    error = entry.error if entry.error is not None and entry.error == entry.error else 0.0
    return Bar(
        entry.name,
        entry.value,
        fixed(entry.value),
        low=entry.value - error,
        high=entry.value + error,
        tip=f"{entry.name}: {plus_minus(entry.value, entry.error)}",
        tone="" if own else "quiet",
    )


def _row(entry: Score, own: bool) -> list[tuple[str, float] | str]:
    gap = "–" if own or entry.difference is None else signed_fixed(entry.difference)
    if not own and entry.difference_error is not None:
        gap = f"{gap} ± {fixed(entry.difference_error)}"
    error = float("nan") if entry.error is None else entry.error
    return [
        entry.name,
        (fixed(entry.value), entry.value),
        (fixed(error), error),
        (gap, entry.difference or 0.0),
    ]
