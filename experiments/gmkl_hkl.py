"""Table 4 of Varma & Babu (2009): generalized MKL with a quadratic kernel against hierarchical MKL.

1024 samples are used for training and all others for testing. Features have zero mean and unit variance on
the training part; the categories of mushroom are used as numbers. GMKL learns the weights of
(1 + sum_m d_m x_m z_m)^2 with l1 on the weights; hierarchical MKL (Bach 2008) chooses among the 5^M products
that make up prod_m (1 + x_m z_m)^4. Beside them, on the same splits: GMKL with equal weights, (1 + s x'z)^2
with s tuned; l1-MKL and the uniform sum of the M kernels (1 + x_m z_m)^2, and the best single one of them.
Options are chosen by 3-fold cross-validation on the training part.

HKL here is a reference implementation of its public definition (`experiments/_hkl.py`): the norm
sum_v delta_v ||f_D(v)|| over the grid of exponents, logistic loss, delta_v = 4^depth and 0.1 at the root, and
at most 100 products, as in the implementation that its author published. Three choices are ours. The cost C
is chosen by cross-validation from a grid of powers of ten, since neither paper prints its value. The products
are those of standardised features, without a further normalisation of each base kernel. And the set of
products grows as long as a neighbouring product lowers the objective (the necessary condition). Whether a
product further away would lower it too is checked on small problems, against a conic solver, and not here.

How the set-up was chosen: the grid on a third of the training part of one split, by time and validated
accuracy, and the tolerance of GMKL (1e-2) by time. No test accuracy was seen before the splits of this page
were run. The grid of HKL was chosen by time on split 0, which this page does not use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _gmkl import FIRST, Method, best_single, chosen, divided, how_many, kept, tuned
from _gmkl_methods import each
from _hkl import HKL
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    by,
    compare,
    error_of,
    mean,
    ordering,
    select,
    standings,
    table,
    threshold,
    untestable,
    with_error,
)
from sklearn.svm import SVC

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import Polynomial, per_feature
from kernelweave.kernels.parametric import PowerSum
from kernelweave.solvers.kernel_gradient import L1

N_TRAIN = 1024
SPLITS = 20  # of the paper
#: HKL and GMKL: mean and standard deviation
PAPER = {
    "magic04": {"HKL": (84.4, 0.8), "GMKL": (86.2, 1.2)},
    "mushroom": {"HKL": (99.9, 0.2), "GMKL": (100.0, 0.0)},
    "spambase": {"HKL": (91.9, 0.7), "GMKL": (93.2, 0.8)},
}
METHODS = ("GMKL", "HKL", "equal weights", "MKL", "uniform sum", "best single")
#: methods under the names all experiments share
SHARED = {
    "GMKL": "GMKL",
    "MKL": "l1-MKL",
    "uniform sum": "uniform sum",
    "best single": "best single kernel",
}
#: experiments on what a figure depends on
VARIANTS = {"spambase": ("logarithms",), "mushroom": ("one column a category",)}
USUAL = "usual"
#: C and strength of the penalty
GRID = [
    (0.1, 0.1),
    (1.0, 1.0),
    (1.0, 10.0),
    (10.0, 1.0),
    (10.0, 100.0),
    (10.0, 1e3),
    (100.0, 10.0),
    (100.0, 1e3),
]


def quadratic(C: float, strength: float) -> kw.GMKLClassifier:
    """(1 + sum_m d_m x_m z_m)^2 with l1 on d."""
    return kw.GMKLClassifier(
        PowerSum(degree=2, offset=1.0), C=C, regularizer=L1(strength), tol=1e-2, max_iter=50
    )


def equal(C: float, scale: float) -> SVC:
    """(1 + scale x'z)^2."""
    return SVC(C=C, kernel="poly", degree=2, gamma=scale, coef0=1.0)


def sums(C: float, regularizer: Any = None) -> kw.MKLClassifier:
    """A weighted sum of (1 + x_m z_m)^2, on the simplex."""
    regularizer = regularizer or kw.LpNorm(p=1)
    return kw.MKLClassifier(per_feature(Polynomial(degree=2)), regularizer=regularizer, C=C, tol=1e-2)


def methods() -> dict[str, Method]:
    """All that are tuned in the same way."""
    return {
        "GMKL": Method(quadratic, GRID),
        "HKL": Method(lambda C: HKL(C, degree=4, certified=False), each(1.0, 10.0, 100.0, 1000.0)),
        "equal weights": Method(equal, [(C, s) for C in (0.1, 1.0, 10.0) for s in (0.01, 0.03, 0.1)]),
        "MKL": Method(sums, each(0.1, 1.0, 10.0)),
        "uniform sum": Method(lambda C: sums(C, "uniform"), each(0.1, 1.0, 10.0)),
    }


def samples(data: str, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """A data set as numbers."""
    if variant == "one column a category":
        arrays = datasets.load_arrays(data)
        return arrays["X_onehot"].astype(np.float64), arrays["y"]
    X, y = datasets.load(data, return_X_y=True)
    X = X.astype(np.float64)
    return (np.log1p(10.0 * X) if variant == "logarithms" else X), y


def run(data: str, method: str, variant: str, split: int) -> dict:
    """One method on one split."""
    parts = divided(*samples(data, variant), split, N_TRAIN)
    if method == "best single":
        one = Method(lambda C: equal(C, 1.0), each(1.0))
        return {"accuracy": best_single(one, parts), "kept": 1}
    if method == "GMKL":
        found = chosen(methods()[method], parts)
        return {"accuracy": found.accuracies[0], "ceiling": found.ceilings[0], "kept": kept(found.model)}
    model = tuned(methods()[method], parts)
    return {"accuracy": 100.0 * model.score(parts.X_test, parts.y_test), "kept": kept(model)}


def cells(mode: Mode) -> list[dict]:
    """Data sets and methods, split by split."""
    first = mode.pick(quick=0, full=FIRST)
    sets = mode.pick(quick=["magic04"], full=list(PAPER))
    return [
        {"data": data, "method": method, "variant": variant, "split": split}
        for split in range(first, first + mode.count(quick=2, full=20))
        for data in sets
        for method in METHODS
        for variant in (USUAL, *(VARIANTS.get(data, ()) if method == "GMKL" else ()))
    ]


def summarise(rows: list[dict]) -> Summary:
    """GMKL beside its published figures and those of HKL; the other methods beside it."""
    sets = [data for data in PAPER if any(row["data"] == data for row in rows)]
    lines = [line for data in sets for line in lines_of(rows, data)]
    usual = [row for row in rows if row["variant"] == USUAL]
    tables = [
        table("Test accuracy (%)", usual, "accuracy", "method", "data", 2),
        table("Features with weight", usual, "kept", "method", "data", 1),
    ]
    others = [row for row in rows if row["variant"] != USUAL]
    if others:
        tables.append(table("GMKL, what was tried: accuracy (%)", others, "accuracy", "variant", "data", 2))
    return Summary(lines, tables, [how_many(rows)], standings(usual, "accuracy", names=SHARED))


def lines_of(rows: list[dict], data: str) -> list[Line]:
    """The figures of one data set."""
    ours, (hkl, _), (gmkl, deviation) = found(rows, data, "GMKL"), *PAPER[data].values()
    told = f"{gmkl:.1f} against {hkl:.1f}"
    what = f"{data}: GMKL is above the published figure of HKL ({hkl:.1f} %)"
    return [
        threshold(what, ours, hkl, paper=told, unit=" %"),
        *against_hkl(rows, data, told),
        compare(f"{data}: GMKL", ours, gmkl, error_of(deviation, SPLITS), digits=2, why=reason(rows, data)),
        *(
            compare(f"{data}: {method}", found(rows, data, method), digits=2)
            for method in METHODS
            if method not in ("GMKL", "HKL")
        ),
    ]


def against_hkl(rows: list[dict], data: str, told: str) -> list[Line]:
    """HKL run here: its figure, and GMKL against it in accuracy and time."""
    here, cost = (
        found(rows, data, "HKL"),
        f"{data}: GMKL costs less than HKL (as implemented here), with tuning",
    )
    if not here:
        return [untestable(cost, "less", "hierarchical MKL was not run")]
    accuracy, deviation = PAPER[data]["HKL"]
    usual = [row for row in rows if row["variant"] == USUAL and row["data"] == data]
    scores, seconds = (
        [by(usual, column, method=method) for method in ("GMKL", "HKL")] for column in ("accuracy", "seconds")
    )
    options: dict[str, Any] = {"paper": "less", "higher": False, "digits": 1, "unit": " s"}
    return [
        ordering(f"{data}: GMKL is above HKL", *scores, paper=told, unit=" %"),
        ordering(cost, *seconds, **options),
        compare(f"{data}: HKL", here, accuracy, error_of(deviation, SPLITS), digits=2),
    ]


def found(
    rows: list[dict], data: str, method: str, column: str = "accuracy", variant: str = USUAL
) -> list[float]:
    """Our values, one per split."""
    return select(rows, column, data=data, method=method, variant=variant)


def reason(rows: list[dict], data: str) -> str:
    """What was tried."""
    ceiling = with_error(found(rows, data, "GMKL", "ceiling"), 2)
    said = [f"{ceiling} with the options of the grid that do best on the test part itself"]
    for variant in VARIANTS.get(data, ()):
        values = found(rows, data, "GMKL", variant=variant)
        said += [f"{with_error(values, 2)} with {variant}"] if values else []
    return "; ".join(said)


def draw(rows: list[dict]) -> Any:
    """Accuracy of all methods, and of HKL as published."""
    import matplotlib.pyplot as plt

    sets = [data for data in PAPER if any(row["data"] == data for row in rows)]
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.2 * len(sets) + 0.5, 3.2), layout="constrained", squeeze=False
    )
    for ax, data in zip(axes[0], sets, strict=True):
        values = [found(rows, data, method) for method in METHODS]
        deviations = [np.std(one) if one else 0.0 for one in values]
        ax.errorbar([mean(one) for one in values], range(len(METHODS)), xerr=deviations, fmt="o")
        for name, style in (("HKL", ":"), ("GMKL", "--")):
            ax.axvline(PAPER[data][name][0], linestyle=style, color="0.5", label=f"{name}, published")
        ax.set(title=data, xlabel="accuracy (%)", yticks=range(len(METHODS)))
        ax.set_yticklabels(METHODS if ax is axes[0][0] else [])
    axes[0][0].legend(fontsize=8, loc="center left")
    return figure


EXPERIMENT = Experiment(
    title="generalized MKL with a quadratic kernel",
    paper="Varma & Babu (2009), Table 4",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=tuple(PAPER),
    version="1",
)
