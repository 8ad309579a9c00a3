"""Critical-difference diagram of mean ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .ranks import alike


def draw_ranks(groups: Mapping[str, tuple[Mapping[str, float], float]]) -> Any:
    """Methods on axes of mean ranks, the best on the left; bars join those that do not differ.

    Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006, Figure 1.

    Parameters
    ----------
    groups : mapping
        A diagram for each title: mean rank of every method, and the critical difference.

    Returns
    -------
    figure : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> figure = draw_ranks({"": ({"a": 1.2, "b": 2.0, "c": 2.8}, 1.0)})
    >>> [text.get_text() for text in figure.axes[0].texts][-3:]
    ['a  1.2', 'b  2.0', 'c  2.8']
    """
    from matplotlib.figure import Figure

    heights = [_height(*group) for group in groups.values()]
    figure = Figure(figsize=(8, 0.32 * sum(heights) + 0.2), layout="constrained")
    places = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, (title, (mean_ranks, difference)), height in zip(places, groups.items(), heights, strict=True):
        ax.set(xlim=(-1.5, len(mean_ranks) + 3.5), ylim=(height - 1.4, -1.6))
        ax.axis("off")
        if title:
            ax.set_title(title, fontsize=10, loc="left")
        _diagram(ax, mean_ranks, difference)
    return figure


def _bars(mean_ranks: Mapping[str, float], difference: float) -> list[tuple[int, int]]:
    return alike(sorted(mean_ranks.values()), difference)


def _height(mean_ranks: Mapping[str, float], difference: float) -> float:
    return (len(mean_ranks) + 1) // 2 + len(_bars(mean_ranks, difference)) * 0.4 + 2.2


def _diagram(ax: Any, mean_ranks: Mapping[str, float], difference: float) -> None:
    methods = sorted(mean_ranks, key=lambda method: mean_ranks[method])
    r, k = np.array([mean_ranks[method] for method in methods]), len(methods)
    bars = _bars(mean_ranks, difference)
    _axis(ax, k, difference)
    for level, (first, last) in enumerate(bars):
        y = 0.5 + 0.4 * level
        ax.plot([r[first] - 0.06, r[last] + 0.06], [y, y], color="black", linewidth=3.5)
    top = 0.9 + 0.4 * len(bars)
    for place, (method, rank) in enumerate(zip(methods, r, strict=True)):
        _label(ax, f"{method}  {rank:.1f}", rank, place, k, top)


def _axis(ax: Any, k: int, difference: float) -> None:
    """Ranks 1 to k, and the length of the critical difference above them."""
    ax.plot([1, k], [0, 0], color="black", linewidth=1)
    for rank in range(1, k + 1):
        ax.plot([rank, rank], [0, -0.15], color="black", linewidth=1)
        ax.annotate(str(rank), (rank, -0.25), ha="center", va="bottom", fontsize=9, annotation_clip=False)
    ax.plot([1, 1 + difference], [-1.2, -1.2], color="black", linewidth=2, marker="|")
    ax.text(1.15 + difference, -1.2, f"critical difference {difference:.2f}", va="center", fontsize=9)


def _label(ax: Any, text: str, rank: float, place: int, k: int, top: float) -> None:
    """A line from the axis down to the name: better half on the left, the others on the right."""
    left = place < (k + 1) // 2
    y = top + (place if left else k - 1 - place)
    end = 0.6 if left else k + 0.4
    ax.plot([rank, rank, end], [0, y, y], color="0.4", linewidth=0.8)
    ax.text(end + (-0.1 if left else 0.1), y, text, ha="right" if left else "left", va="center", fontsize=9)
