"""Figures 5 and 6 of Kloft et al. (2011): alignments of kernels, and which norm they call for.

The paper explains its results by the pairwise alignments `<K_i, K_j> / (||K_i|| ||K_j||)` of spherically
normalised kernels: kernels that predict well are aligned, since they are correlated through the labels;
where alignments are moderate and similar, kernels complement one another and the uniform sum is best; where
kernels carry the same information, sparse weights are best. The paper's own data (gene starts, metabolic
network) are not available. The data here have one Gaussian kernel per view: handwritten digits (6 views of
unequal quality, as in Figure 5), multi-omics of the brain (3 views, as in Figure 6), protein folds (12 views)
and sports news (2 views). Sonar with 20 widths of one Gaussian kernel is the redundant case. In each data set
two groups of classes are told apart. Shown is the accuracy of every kernel alone and of lp-norm MKL, with C
chosen by 3-fold cross-validation, on random splits.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    Table,
    alike,
    all_above,
    by,
    mean,
    select,
    table,
    threshold,
    with_error,
)
from scipy.stats import spearmanr
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import RBF, Linear
from kernelweave.theory import pairwise_alignment

#: name -> training samples
SETS = {"mfeat": 150, "rosmap_mogonet": 150, "proteinfold_kpca27": 200, "bbcsport": 150, "sonar": 120}
NORMS = {"l1": 1.0, "l4/3": 4 / 3, "l2": 2.0, "l4": 4.0, "linf": np.inf}
COSTS = 10.0 ** np.arange(-2.0, 2.1)
N_TEST = 500
WIDTHS = 20
OMICS = "rosmap_mogonet"
LINEAR = ("proteinfold_kpca27", "bbcsport")


def cells(mode: Mode) -> list[dict[str, Any]]:
    """Data sets and splits."""
    count = mode.count(quick=2, full=20)
    one: list[dict[str, Any]] = [*({"data": name} for name in SETS), {"data": OMICS, "dropped": True}]
    return [{**cell, "split": split} for split in range(count) for cell in one]


def run(data: str, split: int, dropped: bool = False) -> list[dict[str, Any]]:
    """Alignments of all pairs, accuracy of every kernel alone and of every norm; or sums of two views."""
    kernels, parts = prepared(data, split)
    if dropped:
        return [
            {"norm": f"sum without {one}", "accuracy": score(without(kernels, one), kw.Uniform(), parts)}
            for one in kernels
        ]
    return [*pairs(kernels, parts[0]), *singles(kernels, parts), *norms(kernels, parts)]


def without(kernels: dict[str, Any], one: str) -> dict[str, Any]:
    """All kernels but one."""
    return {name: kernel for name, kernel in kernels.items() if name != one}


def prepared(data: str, split: int) -> tuple[dict[str, Any], tuple[np.ndarray, ...]]:
    """Kernels, and standardised samples and labels to train and to test."""
    X, y, kernels = problem(data)
    sizes = {"train_size": SETS[data], "test_size": min(N_TEST, len(y) - SETS[data])}
    splits = StratifiedShuffleSplit(split + 1, random_state=0, **sizes)
    train, test = list(splits.split(y, y))[split]
    scaler = StandardScaler().fit(X[train])
    return kernels, (scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test])


def problem(data: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Samples, two groups of classes, and one kernel per view or width."""
    bunch = datasets.load(data)
    y, rows = two_groups(data, bunch.y.astype(int))
    if data == "sonar":
        return bunch.X[rows], y, {f"rbf {g:.3g}": RBF(gamma=g) for g in np.geomspace(1e-3, 1.0, WIDTHS)}
    kind = Linear if data in LINEAR else RBF
    return bunch.X[rows], y, {view: kind(columns=columns) for view, columns in bunch.columns.items()}


def two_groups(data: str, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and rows: odd digits, the two largest of the four largest folds, football, or as they are."""
    if data == "proteinfold_kpca27":
        largest = np.argsort(-np.bincount(y), kind="stable")[:4]
        rows = np.flatnonzero(np.isin(y, largest))
        return np.isin(y[rows], largest[:2]).astype(int), rows
    two = {"mfeat": y % 2, "bbcsport": (y == 2).astype(int)}.get(data, y)
    return two, np.arange(len(y))


def pairs(kernels: dict[str, Any], X: np.ndarray) -> list[dict[str, Any]]:
    """Alignment of every pair, as in the paper and centred."""
    plain, centred = (pairwise_alignment(kernels, X, centered=c).value for c in (False, True))
    names = list(kernels)
    return [
        {
            "first": names[i],
            "second": names[j],
            "alignment": float(plain[i, j]),
            "centred": float(centred[i, j]),
        }
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]


def singles(kernels: dict[str, Any], parts: tuple[np.ndarray, ...]) -> list[dict[str, Any]]:
    """Accuracy of every kernel alone."""
    return [
        {"kernel": name, "accuracy": score({name: kernel}, kw.Uniform(), parts)}
        for name, kernel in kernels.items()
    ]


def norms(kernels: dict[str, Any], parts: tuple[np.ndarray, ...]) -> list[dict[str, Any]]:
    """Accuracy of every norm."""
    return [{"norm": name, "accuracy": score(kernels, kw.LpNorm(p), parts)} for name, p in NORMS.items()]


def score(kernels: dict[str, Any], regularizer: Any, parts: tuple[np.ndarray, ...]) -> float:
    """Test accuracy in %, C by cross-validation."""
    X, y, X_test, y_test = parts
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = kw.MKLClassifierCV(kernels, regularizers=[regularizer], Cs=COSTS, cv=folds)
    return 100.0 * float(search.fit(X, y).score(X_test, y_test))


def summarise(rows: list[dict[str, Any]]) -> Summary:
    """The paper's statements, with their numbers here."""
    names = [name for name in SETS if select(rows, "alignment", data=name)]
    judged = {"mfeat": quality, "sonar": redundant, OMICS: uniform}
    lines = [line(rows, data) for data, line in judged.items() if data in names]
    lines += [order(rows, names)]
    accuracies = [row for row in rows if "norm" in row]
    tables = [
        table("Accuracy in % of the norms", accuracies, "accuracy", "norm", "data", 1),
        overview(rows, names),
        *(heat_table(rows, name) for name in ("mfeat", "rosmap_mogonet") if name in names),
    ]
    count = len({row["split"] for row in rows})
    return Summary(lines, tables, [f"{count} splits, ± standard errors over splits."])


def single_accuracy(rows: list[dict[str, Any]], data: str) -> dict[str, float]:
    """Mean accuracy of every kernel alone."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["data"] == data and "kernel" in row:
            found[row["kernel"]].append(row["accuracy"])
    return {name: mean(values) for name, values in found.items()}


def pair_alignment(rows: list[dict[str, Any]], data: str, column: str) -> dict[tuple[str, str], float]:
    """Mean alignment of every pair."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["data"] == data and "first" in row:
            found[row["first"], row["second"]].append(row[column])
    return {pair: mean(values) for pair, values in found.items()}


def quality(rows: list[dict[str, Any]], data: str) -> Line:
    """Figure 5: pairs of good kernels are aligned, pairs with a poor one are not; split by split."""
    splits: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["data"] == data:
            splits[row["split"]].append(row)
    ranks = []
    for here in splits.values():
        alone, aligned = single_accuracy(here, data), pair_alignment(here, data, "centred")
        poorer = [min(alone[a], alone[b]) for a, b in aligned]
        ranks.append(float(spearmanr(poorer, list(aligned.values())).statistic))
    what = (
        f"{data} (other data): kernels that predict well are aligned with one another (rank correlation of "
        "the centred alignment with the accuracy of the poorer of a pair)"
    )
    return threshold(what, ranks, 0.0, paper="yes (Figure 5)")


def accuracies(rows: list[dict[str, Any]], data: str) -> dict[str, Any]:
    """Accuracy of every norm by split."""
    return {norm: by(rows, "accuracy", data=data, norm=norm) for norm in NORMS}


def redundant(rows: list[dict[str, Any]], data: str) -> Line:
    """Widths of one kernel: aligned, and sparse weights lose nothing."""
    found = accuracies(rows, data)
    what = (
        f"{data}, 20 widths (other data): where kernels repeat one another, sparse weights lose nothing "
        "against the uniform sum"
    )
    aligned = f" points; alignment of neighbours {neighbours(rows):.2f}"
    return alike(
        what,
        found["l1"],
        found["linf"],
        paper="yes (section 6.2)",
        or_better=True,
        digits=1,
        unit=aligned,
    )


def neighbours(rows: list[dict[str, Any]]) -> float:
    """Mean centred alignment of widths next to one another."""
    names = list(single_accuracy(rows, "sonar"))
    aligned = pair_alignment(rows, "sonar", "centred")
    return mean([aligned[pair] for pair in pairwise(names)])


def uniform(rows: list[dict[str, Any]], data: str) -> Line:
    """Figure 6: moderate, equal alignments, and the uniform sum is the best norm."""
    aligned, found = list(pair_alignment(rows, data, "alignment").values()), accuracies(rows, data)
    where = f" points; alignments {min(aligned):.2f} to {max(aligned):.2f}"
    what = f"{data} (other data): moderate alignments of three views, and the uniform sum is the best norm"
    rest = {norm: values for norm, values in found.items() if norm != "linf"}
    return all_above(
        what,
        {"linf": found["linf"]},
        rest,
        paper="yes (Figure 6)",
        digits=1,
        unit=where,
        why=why_not(rows, data),
    )


def why_not(rows: list[dict[str, Any]], data: str) -> str:
    """What the sum gains when the view it is best without is left out: views are not equally good here."""
    names = list(single_accuracy(rows, data))
    sums = {name: select(rows, "accuracy", data=data, norm=f"sum without {name}") for name in names}
    l1, linf = (select(rows, "accuracy", data=data, norm=norm) for norm in ("l1", "linf"))
    if not all(len(values) == len(l1) for values in sums.values()):
        return ""
    worst = max(sums, key=lambda name: mean(sums[name]))
    gain, left = np.subtract(sums[worst], linf), np.subtract(l1, sums[worst])
    better = f"without {worst} the sum is {with_error(gain, 1, '+')} better"
    return f"the views are not equally useful: {better}, and l1 {with_error(left, 1, '+')} above it"


def order(rows: list[dict[str, Any]], names: list[str]) -> Line:
    """Whether sparse weights gain more, the more kernels are aligned."""
    centred = [mean(list(pair_alignment(rows, name, "centred").values())) for name in names]
    gains = [
        mean(select(rows, "accuracy", data=name, norm="l1"))
        - mean(select(rows, "accuracy", data=name, norm="linf"))
        for name in names
    ]
    shown = sorted(zip(centred, names, gains, strict=True))
    text = ", ".join(f"{name} {a:.2f}: {gain:+.1f}" for a, name, gain in shown)
    what = "mean centred alignment: l1 less the sum (points)"
    return Line(what, "—", text, "ours alone", n=len(select(rows, "accuracy", data=names[0], norm="l1")))


def overview(rows: list[dict[str, Any]], names: list[str]) -> Table:
    """Alignments and single kernels of every data set."""
    lines = []
    for name in names:
        plain, centred = (list(pair_alignment(rows, name, c).values()) for c in ("alignment", "centred"))
        alone = list(single_accuracy(rows, name).values())
        ranges = [f"{min(v):.2f} to {max(v):.2f}" for v in (plain, centred)]
        lines.append([name, str(len(alone)), *ranges, f"{min(alone):.1f} to {max(alone):.1f}"])
    return Table(
        "Alignments", ["data", "kernels", "as in the paper", "centred", "accuracy of one kernel in %"], lines
    )


def heat_table(rows: list[dict[str, Any]], data: str) -> Table:
    """All pairs: as in the paper above the diagonal, centred below it."""
    names = list(single_accuracy(rows, data))
    plain, centred = (pair_alignment(rows, data, c) for c in ("alignment", "centred"))
    cells_ = [
        [
            a,
            *(
                f"{plain[a, b]:.2f}" if i < j else f"{centred[b, a]:.2f}" if j < i else "1"
                for j, b in enumerate(names)
            ),
        ]
        for i, a in enumerate(names)
    ]
    return Table(f"{data}: as in the paper above the diagonal, centred below", ["kernel", *names], cells_)


def draw(rows: list[dict[str, Any]]) -> Any:
    """Heat maps of the alignments, as in the paper."""
    import matplotlib.pyplot as plt

    names = [name for name in SETS if select(rows, "alignment", data=name)]
    figure, axes = plt.subplots(1, len(names), figsize=(3 * len(names), 3.2), layout="constrained")
    for ax, data in zip(np.ravel(axes), names, strict=True):
        kernels = list(single_accuracy(rows, data))
        A = np.eye(len(kernels))
        for (a, b), value in pair_alignment(rows, data, "alignment").items():
            i, j = kernels.index(a), kernels.index(b)
            A[i, j] = A[j, i] = value
        image = ax.imshow(A, vmin=0, vmax=1, cmap="viridis")
        ax.set(title=data, xticks=[], yticks=[])
        if len(kernels) <= 6:
            ax.set_yticks(range(len(kernels)), kernels)
    figure.colorbar(image, ax=axes, shrink=0.8, label="alignment")
    return figure


EXPERIMENT = Experiment(
    title="alignments of kernels, and the norm they call for",
    paper="Kloft, Brefeld, Sonnenburg & Zien (2011), JMLR 12, Figures 5 and 6",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=tuple(SETS),
)
