"""Survival in three tables with a published split: gbsg, metabric and whas, beside Cox, DeepSurv and forests.

1,310 to 1,546 training samples, 328 to 686 test samples, 6 to 9 columns, standardised by the training
samples; the split is that of Katzman et al. (2018). Harrell's concordance on the test samples. Kernels: a
linear one on all columns and one per column, Gaussian ones on all columns (the median width, a third of it
and three times it) and on every column. Costs, norms and all settings of the other methods are chosen by five
folds of the training samples; the methods of scikit-survival are those of the experiment survival-tcga.

There is one split, and so one figure per method: no verdict is possible, and the published figures stand
beside ours. On a test set of this size the standard error is .01 to .02.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _survival import MISSING, RIVALS, concordance, has_rivals
from reproduce import OWN, Experiment, Mode, Summary, by, compare, table

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import RBF, Linear, per_feature

TABLES = ("gbsg", "metabric", "whas")
AUTO = "MKLAutoSurvival"
OURS = ("linear", "uniform sum", "p = 1", "p = 4/3", AUTO)

#: linear Cox, DeepSurv, random survival forest: Katzman et al. 2018, Table 1
PUBLISHED = {
    "gbsg": {"Cox": 0.657, "DeepSurv": 0.668, "random survival forest": 0.651},
    "metabric": {"Cox": 0.631, "DeepSurv": 0.643, "random survival forest": 0.624},
    "whas": {"Cox": 0.818, "DeepSurv": 0.863, "random survival forest": 0.894},
}

#: which of ours is beside which of theirs
BESIDE = {"Cox": "linear", "DeepSurv": AUTO, "random survival forest": "random survival forest"}


def fitted(method: str, X: np.ndarray, y: np.ndarray) -> Any:
    """One of our models on training samples."""
    widths = [RBF("median", factor=factor) for factor in (1 / 3, 1.0, 3.0)]
    kernels: list[Any] = [Linear(), per_feature([Linear(), RBF("median")]), *widths]
    if method == AUTO:
        return kw.MKLAutoSurvival(kernels).fit(X, y)
    rules: dict[str, Any] = {"uniform sum": "uniform", "p = 1": kw.LpNorm(1.0), "p = 4/3": kw.LpNorm(4 / 3)}
    rule = rules.get(method, "uniform")
    kernels = [Linear()] if method == "linear" else kernels
    return kw.MKLSurvivalCV(kernels, regularizers=rule, Cs=[0.003, 0.03, 0.3, 3.0], tol=1e-2).fit(X, y)


def cells(mode: Mode) -> list[dict]:
    """Tables and methods."""
    tables = mode.pick(quick=("whas",), full=TABLES)
    methods = mode.pick(quick=("linear",), full=(*OURS, *RIVALS))
    return [{"data": name, "method": method, "split": 0} for method in methods for name in tables]


def run(data: str, method: str, split: int) -> list[dict]:
    """Concordance on the test samples; nothing where scikit-survival is missing."""
    found = datasets.load(f"survival_{data}")
    spread = found.X.std(axis=0)
    X, X_test = ((part - found.X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
                 for part in (found.X, found.X_test.astype(float)))  # fmt: skip
    if method in RIVALS and not has_rivals():
        return []
    predict = RIVALS[method](X, found.y) if method in RIVALS else fitted(method, X, found.y).predict
    return [{"concordance": concordance(found.y_test, predict(X_test))}]


def summarise(rows: list[dict]) -> Summary:
    """Published figures beside ours, and all of ours."""
    rows = [row for row in rows if "concordance" in row]
    lines = [
        compare(f"{data}: {BESIDE[name]} beside {name}", list(own.values()), figure, digits=3)
        for data, figures in PUBLISHED.items()
        for name, figure in figures.items()
        if (own := by(rows, "concordance", data=data, method=BESIDE[name]))
    ]
    missing = not any(row["method"] in RIVALS for row in rows)
    notes = [f"The rows of {', '.join(RIVALS)} are missing: {MISSING}."] if missing else []
    every = table("Concordance on the test samples", rows, "concordance", "method", "data", digits=3)
    return Summary(lines, [every], notes)


def draw(rows: list[dict]):
    """Concordance of every method on the three tables, and what was published."""
    import matplotlib.pyplot as plt

    rows = [row for row in rows if "concordance" in row]
    figure, axes = plt.subplots(1, len(TABLES), figsize=(8.5, 3.2), sharey=True)
    methods = [method for method in (*OURS, *RIVALS) if any(row["method"] == method for row in rows)]
    for ax, data in zip(axes, TABLES, strict=True):
        values = [next(iter(by(rows, "concordance", data=data, method=m).values()), np.nan) for m in methods]
        ax.plot(values, range(len(methods)), "o", color="tab:blue")
        for style, (name, value) in zip((":", "-.", "--"), PUBLISHED[data].items(), strict=True):
            ax.axvline(value, color="grey", linestyle=style, linewidth=0.9, label=f"{name}, published")
        ax.set(title=data, xlabel="concordance")
    axes[0].set_yticks(range(len(methods)), methods)
    axes[0].legend(frameon=False, fontsize=7)
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(
    title="survival in three tables",
    paper=OWN,
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=tuple(f"survival_{name}" for name in TABLES),
    version="1",
)
