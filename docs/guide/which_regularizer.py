"""Draw the two pictures of the page "Which regulariser?".

    python docs/guide/which_regularizer.py

writes docs/images/regularizer_weights.png and docs/images/which_regularizer_flow.svg. Needs matplotlib.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

import kernelweave as kw
from kernelweave.kernels import Linear

IMAGES = Path(__file__).resolve().parents[1] / "images"

#: the twelve kernels, and what their features carry
CARRIES = ["strong"] * 2 + ["copy"] * 2 + ["weak"] * 3 + ["noise"] * 5
#: colours of Okabe and Ito, told apart by every kind of colour vision, and hatches
COLOURS = {"strong": "#0072B2", "copy": "#56B4E9", "weak": "#E69F00", "noise": "#BBBBBB"}
HATCHES = {"strong": "", "copy": "//", "weak": "..", "noise": ""}
LABELS = {
    "strong": "strong signal",
    "copy": "noisy copy of a strong one",
    "weak": "weak signal",
    "noise": "noise",
}


def simulated(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A regression with one feature per kernel: two strong, their noisy copies, three weak, five of noise."""
    rng = np.random.default_rng(seed)
    strong, weak, noise = (rng.standard_normal((n, width)) for width in (2, 3, 5))
    copies = strong + 0.5 * rng.standard_normal((n, 2))
    y = strong.sum(axis=1) + 0.35 * weak.sum(axis=1) + 0.7 * rng.standard_normal(n)
    return np.hstack([strong, copies, weak, noise]), y


def models() -> dict[str, object]:
    """What is compared: every regulariser with the same loss and cost, and empirical Bayes."""
    kernels = [Linear(columns=[m]) for m in range(len(CARRIES))]
    regularizers = {
        "LpNorm(p=1)": kw.LpNorm(p=1),
        "LpNorm(p=4/3)": kw.LpNorm(p=4 / 3),
        "LpNorm(p=2)": kw.LpNorm(p=2),
        "LpNorm(p=inf) = Uniform()": kw.LpNorm(p=np.inf),
        "ElasticNet(l1_ratio=0.5)": kw.ElasticNet(l1_ratio=0.5),
        "BlockNorm(q=inf)": kw.BlockNorm(q=np.inf),
        "Wedge()": kw.Wedge(),
        "Mahalanobis()": kw.Mahalanobis(),
        "SMKL()": kw.SMKL(),
    }
    fits = {
        name: kw.MKLRegressor(kernels, regularizer=regularizer, C=0.2, tol=1e-5, max_iter=1000)
        for name, regularizer in regularizers.items()
    }
    return {**fits, "EmpiricalBayesRegressor": kw.EmpiricalBayesRegressor(kernels, tol=1e-4)}


def shares(values: np.ndarray) -> np.ndarray:
    """Parts of the sum."""
    return values / values.sum()


def draw_weights(target: Path) -> None:
    """One panel per model: weights as bars, component norms as diamonds, exact zeros as crosses."""
    X, y = simulated()
    figure, axes = plt.subplots(5, 2, figsize=(9.0, 10.5), sharex=True, layout="constrained")
    places = np.arange(len(CARRIES))
    for ax, (name, model) in zip(axes.T.flat, models().items(), strict=True):
        model.fit(X, y)
        weights, norms = shares(model.weights_), shares(model.norms_)
        for kind in COLOURS:
            chosen = [m for m in places if CARRIES[m] == kind]
            ax.bar(
                places[chosen],
                weights[chosen],
                color=COLOURS[kind],
                hatch=HATCHES[kind],
                edgecolor="white",
                label=LABELS[kind],
            )
        ax.plot(places, norms, "D", color="black", markersize=3.5, label="component norm ||f||")
        zeros = places[weights == 0]
        ax.plot(zeros, np.full(len(zeros), 0.012), "x", color="#D55E00", markersize=6, label="exactly zero")
        ax.set_title(
            f"{name}:  {np.count_nonzero(weights)} of {len(weights)} kernels", fontsize=10, loc="left"
        )
        ax.set_ylim(0.0, max(0.3, 1.12 * float(max(weights.max(), norms.max()))))
        if name.startswith("BlockNorm"):
            note = "components below the largest are free:\ntheir weights are bounded below only"
            ax.text(11.4, 0.29, note, ha="right", va="top", fontsize=8.5)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xticks(places, places + 1)
    for ax in axes[:, 0]:
        ax.set_ylabel("share of the sum")
    for ax in axes[-1]:
        ax.set_xlabel("kernel (the order that Wedge sees)")
    handles, labels = legend_of(axes)
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(target, dpi=140)
    plt.close(figure)


def legend_of(axes: np.ndarray) -> tuple[list, list]:
    """One entry per label, the kinds of kernels first."""
    entries: dict[str, object] = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    order = [*LABELS.values(), *(label for label in entries if label not in LABELS.values())]
    return [entries[label] for label in order], order


#: the flow chart: questions down the left, answers to their right
QUESTIONS = [
    (
        "Is there a reason to think that\nsome kernels carry more than others?",
        "no",
        "Uniform()",
        "the plain sum",
    ),
    (
        "Do you want error bars, and have\nno validation data to choose C?",
        "yes",
        "EmpiricalBayes...",
        "evidence chooses",
    ),
    ("Are the kernels in an order\nof preference?", "yes", "Wedge()", "later never outweighs earlier"),
    ("Do you know which kernels\nbelong together?", "yes", "Mahalanobis(E)", "related kernels share"),
    (
        "Must every source be heard,\neven the weakest?",
        "yes",
        "BlockNorm(q > 2)",
        "only the largest components pay",
    ),
    ("Should the model name\na few kernels?", "no", "LpNorm(p=4/3 ... 2)", "all kernels, unequally"),
    ("Do the informative kernels\nresemble one another?", "no", "LpNorm(p=1)", "sparse, convex"),
    (
        "Keep the whole group of them,\nor as few as possible?",
        "group",
        "ElasticNet(l1_ratio)",
        "selects, then shares",
    ),
]
LAST = ("SMKL()", "fewest kernels, not convex")


def box(ax, x: float, y: float, width: float, height: float, colour: str) -> None:
    """A rounded box, from its left edge and the middle of its height."""
    shape = FancyBboxPatch(
        (x, y - height / 2), width, height, boxstyle="round,pad=0.02", facecolor=colour, edgecolor="black"
    )
    ax.add_patch(shape)


def answer(ax, x: float, y: float, name: str, gloss: str) -> None:
    """A box with a regulariser and what it does."""
    box(ax, x, y, 3.5, 0.72, "#D6ECFA")
    ax.text(x + 1.75, y + 0.13, name, ha="center", va="center", family="monospace", fontsize=10.5)
    ax.text(x + 1.75, y - 0.2, gloss, ha="center", va="center", fontsize=8.5, color="#333333")


def draw_flow(target: Path) -> None:
    """The questions in a column, each with an answer to its right."""
    figure, ax = plt.subplots(figsize=(8.4, 10.0))
    arrow = {"arrowstyle": "-|>", "color": "black", "shrinkA": 0, "shrinkB": 0}
    step, left, right = 1.25, 0.0, 5.4
    for k, (question, word, name, gloss) in enumerate(QUESTIONS):
        y = -step * k
        box(ax, left, y, 4.0, 0.8, "#FFF3D6")
        ax.text(left + 2.0, y, question, ha="center", va="center", fontsize=9.5)
        ax.annotate("", (right - 0.04, y), (left + 4.04, y), arrowprops=arrow)
        ax.text(
            (left + 4.0 + right) / 2, y + 0.1, word, ha="center", va="bottom", fontsize=9.5, style="italic"
        )
        answer(ax, right, y, name, gloss)
        ax.annotate("", (left + 2.0, y - step + 0.44), (left + 2.0, y - 0.44), arrowprops=arrow)
        other = {"no": "yes", "yes": "no", "group": "few"}[word]
        ax.text(left + 2.15, y - step / 2, other, va="center", fontsize=9.5, style="italic")
    answer(ax, left + 0.25, -step * len(QUESTIONS), *LAST)
    ax.set_xlim(-0.2, right + 3.7)
    ax.set_ylim(-step * len(QUESTIONS) - 0.6, 0.6)
    ax.set_aspect("equal")
    ax.axis("off")
    # no date and fixed names of clips: the file changes only with the chart
    with plt.rc_context({"svg.hashsalt": "kernelweave"}):
        figure.savefig(target, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_weights(IMAGES / "regularizer_weights.png")
    draw_flow(IMAGES / "which_regularizer_flow.svg")
