"""Tables 2 and 3 of Varma & Babu (2009): generalized MKL on UCI data, with and without selected features.

The paper's protocol: 20 random stratified splits with 70 % of the samples for training and 30 % for testing;
features have zero mean and unit variance on the training part. GMKL learns a product of Gaussians, one width
per feature, with l1 on the widths (l2 on liver); MKL learns a weighted sum of the same Gaussians. C and the
strength of the penalty are chosen by 3-fold cross-validation on the training part, with all features.
Features are then ranked by weight, and a model with the N_d best is learned with the same options; "all" is
the model without selection.
Parkinsons and musk of Table 2 are not among the data sets here.

The other methods: AdaBoost over one Gaussian SVM per feature, trained beforehand, as in the paper, and over
stumps; OWL-QN is l1 logistic regression with the bias penalised (liblinear); LP-SVM is the linear program
itself; S-SVM is a linear SVM whose features are ranked by |w|, which is what the paper's relaxation becomes
for r = M (the paper does not give r); BAHSIC selects one feature at a time, then trains a Gaussian SVM;
"uniform MKL" and "uniform GMKL" are the sum and the product of all Gaussians with equal weights; SimpleMKL
has 13 kernels (10 Gaussians, 3 polynomials) on every feature and on all of them; "best single" is the
Gaussian on one feature that has the best cross-validated accuracy.

How the set-up was chosen: grids, tolerances and what else to try were chosen while test accuracies of splits
0 to 9 were seen. Cross-validating the options for every N_d was tried and given up because of the time it
takes: with 5, 10 and 15 features GMKL reached 78.3, 83.1 and 85.2 % on sonar and 92.5, 94.0 and 91.8 % on
ionosphere (3 splits). All figures of a full run are from splits 100 on, which were looked at only after the
set-up was fixed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from _gmkl import FIRST, Method, Split, best_single, chosen, divided, how_many, kept
from _gmkl_methods import COSTS, each, methods, simple_mkl, svm, varied
from _gmkl_paper import KEPT, TABLE_2, TABLE_3
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    alike,
    all_above,
    by,
    compare,
    error_of,
    mean,
    ordering,
    standings,
    table,
    threshold,
    with_error,
)

from kernelweave import datasets

METHODS = (
    "GMKL",
    "MKL",
    "SimpleMKL",
    "AdaBoost",
    "AdaBoost, stumps",
    "OWL-QN",
    "LP-SVM",
    "S-SVM",
    "BAHSIC",
    "uniform MKL",
    "uniform GMKL",
    "best single",
)
USUAL = "usual"
#: methods under the names all experiments share
SHARED = {
    "GMKL": "GMKL",
    "MKL": "l1-MKL",
    "uniform MKL": "uniform sum",
    "best single": "best single kernel",
}
#: experiments on what a figure depends on
VARIANTS = {
    ("pima", "GMKL"): ("l2 penalty", "missing values filled in", "smaller C"),
    ("pima", "uniform GMKL"): ("wider grid",),
    ("pima", "OWL-QN"): ("missing values filled in",),
    ("ionosphere", "LP-SVM"): ("not standardised", "Gaussian SVM on its features"),
    ("ionosphere", "S-SVM"): ("not standardised", "Gaussian SVM on its features"),
    **{(data, "MKL"): ("C = 1000",) for data in TABLE_2},
}
MEASURED = (1, 2, 3, 4, 5)  # columns of pima where 0 says that nothing was measured


def prepared(data: str, split: int, variant: str) -> Split:
    """One split of a data set."""
    X, y = datasets.load(data, return_X_y=True)
    X = X.astype(np.float64)
    if variant == "missing values filled in":
        for k in MEASURED:
            X[X[:, k] == 0, k] = np.median(X[X[:, k] > 0, k])
    return divided(X, y, split, 0.7, scaled=variant != "not standardised")


def run(data: str, method: str, variant: str, split: int) -> list[dict]:
    """One method on one split, for every N_d the paper has."""
    parts = prepared(data, split, variant)
    if method == "best single":
        return [{"features": "all", "accuracy": best_single(Method(svm, each(*COSTS)), parts), "kept": 1}]
    if method == "SimpleMKL":
        model = simple_mkl(parts)
        accuracy = 100.0 * model.score(parts.X_test, parts.y_test)
        return [{"features": "all", "accuracy": accuracy, "kept": kept(model)}]
    learner = varied(variant, methods(data)[method])
    figures = TABLE_2.get(data, {}).get(method if method != "AdaBoost, stumps" else "GMKL", {})
    counts = [int(count) for count in figures if count != "all"]
    found = chosen(learner, parts, counts, thorough=method != "MKL")
    pairs = zip(["all", *map(str, counts)], found.accuracies, strict=True)
    rows: list[dict] = [{"features": count, "accuracy": accuracy} for count, accuracy in pairs]
    for row, ceiling in zip(rows, found.ceilings, strict=False):
        row["ceiling"] = ceiling
    fewest = {"fewest": kept(found.sparsest.model), "fewest_accuracy": 100.0 * found.sparsest.scores[0]}
    return [{**rows[0], "kept": kept(found.model), **fewest}, *rows[1:]]


def cells(mode: Mode) -> list[dict]:
    """Data sets, methods and their variants, split by split."""
    sets = mode.pick(quick=["sonar", "liver"], full=list(TABLE_3))
    first = mode.pick(quick=0, full=FIRST)
    return [
        {"data": data, "method": method, "variant": variant, "split": split}
        for split in range(first, first + mode.count(quick=2, full=20))
        for data in sets
        for method in METHODS
        for variant in (USUAL, *VARIANTS.get((data, method), ()))
    ]


SPLITS = 20  # of the paper
RIVALS = ("AdaBoost", "OWL-QN", "LP-SVM", "S-SVM", "BAHSIC", "MKL")


def summarise(rows: list[dict]) -> Summary:
    """Tables 3 and 2, every figure beside ours, and what the paper says of them."""
    rows = named(rows)
    sets = {data: by_method(rows, data) for data in TABLE_3 if any(row["data"] == data for row in rows)}
    selected = {data: some for data, some in sets.items() if data in TABLE_2}
    lines = [line for data, some in sets.items() for line in simple_statements(some, data)]
    lines += [line for data, some in selected.items() for line in statements(some, data)]
    lines += [line for data, some in sets.items() for line in without_selection(some, data)]
    lines += [line for data, some in selected.items() for line in with_selection(some, data)]
    usual = [row for row in rows if row["variant"] == USUAL]
    tables = [
        table("Accuracy (%) without selection", usual, "accuracy", "method", "data", 1, features="all"),
        table("Features with weight (SimpleMKL: kernels)", usual, "kept", "method", "data", 1),
        *(
            table(
                f"{data}: accuracy (%) with N_d features",
                usual,
                "accuracy",
                "method",
                "features",
                1,
                data=data,
            )
            for data in selected
        ),
        trials(rows),
    ]
    whole = [row for row in usual if row["features"] == "all"]
    return Summary(lines, tables, notes(rows, sets), standings(whole, "accuracy", names=SHARED))


Rows = dict[str, list[dict]]  # of one data set, by method


def by_method(rows: list[dict], data: str) -> Rows:
    """Rows of one data set."""
    found: Rows = defaultdict(list)
    for row in rows:
        if row["data"] == data:
            found[row["method"]].append(row)
    return found


def simple_statements(rows: Rows, data: str) -> list[Line]:
    """GMKL against SimpleMKL, and what the penalty is worth on the two sets of few features."""
    (gmkl, _), (simple, _) = (TABLE_3[data][method] for method in ("GMKL", "SimpleMKL"))
    ours = found(rows, "GMKL")
    what, told = f"{data}: GMKL is above SimpleMKL", f"{gmkl} against {simple}"
    theirs = found(rows, "SimpleMKL")
    lines = [ordering(what, ours, theirs, paper=told, unit=" %", why=reason(rows, data, "GMKL", "all"))]
    if data == "liver":
        gains = [value - theirs[split] for split, value in ours.items() if split in theirs]
        lines.append(compare("liver: GMKL (l2) less SimpleMKL", gains, round(gmkl - simple, 1)))
    if data == "pima":
        other = found(rows, "GMKL", variant="l2 penalty")
        lines.append(alike("pima: l1 and l2 give GMKL the same accuracy", ours, other, paper="comparable"))
    return lines


def statements(rows: Rows, data: str) -> list[Line]:
    """GMKL is best for every N_d, above MKL above all; as good as equal weights with fewer features."""
    figures, lines = TABLE_2[data], []
    for count in figures["GMKL"]:
        ours = found(rows, "GMKL", count)
        rivals = {m: found(rows, m, count) for m in RIVALS if count in figures[m]}
        said = ", ".join(f"{m} {figures[m][count][0]}" for m in ("GMKL", *rivals))
        with_few = f"with {count} features" if count != "all" else "with the features it keeps"
        if count != "all":  # the paper says so for a fixed number of features
            what = f"{data}: GMKL is the best method {with_few}"
            lines.append(all_above(what, {"GMKL": ours}, rivals, paper=said, unit=" %"))
        lines += [
            ordering(
                f"{data}: GMKL is above {rival} {with_few}",
                ours,
                rivals[rival],
                paper=f"{figures['GMKL'][count][0]} against {figures[rival][count][0]}",
                unit=" %",
                why=against_large(rows, count) if rival == "MKL" else "",
            )
            for rival in (("MKL", "BAHSIC") if count != "all" else ("MKL",))
        ]
    equal, (figure, _) = found(rows, "uniform GMKL"), figures["uniform GMKL"]["all"]
    told = f"{figures['GMKL']['all'][0]} against {figure}"
    kept, total = found(rows, "GMKL", column="kept"), KEPT[data]["S-SVM"]
    return [
        *lines,
        alike(
            f"{data}: GMKL is as accurate as equal weights (uniform GMKL)",
            found(rows, "GMKL"),
            equal,
            paper=told,
            unit=" %",
        ),
        threshold(
            f"{data}: GMKL needs fewer than all {total:.0f} features",
            list(kept.values()),
            total,
            paper=f"{KEPT[data]['GMKL']}",
            above=False,
            digits=1,
        ),
        ordering(
            f"{data}: GMKL needs fewer features than MKL",
            kept,
            found(rows, "MKL", column="kept"),
            paper=f"{KEPT[data]['GMKL']} against {KEPT[data]['MKL']}",
            higher=False,
            digits=1,
        ),
    ]


def against_large(rows: Rows, count: str) -> str:
    """GMKL against MKL with a large C, which the paper speaks of."""
    ours, theirs = found(rows, "GMKL", count), found(rows, "MKL", count, variant="C = 1000")
    gains = [value - theirs[split] for split, value in ours.items() if split in theirs]
    return (
        f"{with_error(gains, 1, '+')} against MKL with C = 1000, not chosen by cross-validation"
        if gains
        else ""
    )


def without_selection(rows: Rows, data: str) -> list[Line]:
    """Table 3."""
    return [
        compare(
            f"Table 3, {data}: {method}",
            list(found(rows, method).values()),
            accuracy,
            error_of(deviation, SPLITS),
            why=reason(rows, data, method, "all"),
        )
        for method, (accuracy, deviation) in TABLE_3[data].items()
    ]


def with_selection(rows: Rows, data: str) -> list[Line]:
    """Table 2: accuracies, and how many features have a weight."""
    lines = []
    for method, figures in TABLE_2[data].items():
        for count, (accuracy, deviation) in figures.items():
            what = f"{data}, {method}, " + (f"{count} features" if count != "all" else "all features")
            ours, why = list(found(rows, method, count).values()), reason(rows, data, method, count)
            error = None if deviation is None else error_of(deviation, SPLITS)
            lines.append(compare(what, ours, accuracy, error, why=why))
        if method in KEPT[data]:
            ours, why = list(found(rows, method, column="kept").values()), fewest(rows, method)
            lines.append(
                compare(f"{data}, {method}, features with weight", ours, KEPT[data][method], why=why)
            )
    return lines


def found(
    rows: Rows, method: str, features: str = "all", column: str = "accuracy", variant: str = USUAL
) -> dict[Any, float]:
    """Our values of one data set by split."""
    return dict(by(rows.get(method, []), column, features=features, variant=variant))


def named(rows: list[dict]) -> list[dict]:
    """Numbers of features as text, as "all" is."""
    return [{**row, "features": str(row["features"])} for row in rows]


def reason(rows: Rows, data: str, method: str, features: str) -> str:
    """What was tried: the best options on the test part, and variants."""
    said = []
    ceiling = list(found(rows, method, features, "ceiling").values())
    if ceiling:
        said.append(
            f"{with_error(ceiling, 1)} with the options of the grid that do best on the test part itself"
        )
    for variant in VARIANTS.get((data, method), ()):
        values = list(found(rows, method, features, variant=variant).values())
        said += [f"{with_error(values, 1)} {variant}"] if values else []
    return "; ".join(said) if said else ""


def fewest(rows: Rows, method: str) -> str:
    """How many features models have that cross-validation cannot tell from the chosen ones."""
    counts, scores = (
        list(found(rows, method, column=name).values()) for name in ("fewest", "fewest_accuracy")
    )
    if not counts:
        return ""
    return (
        f"of all options within a standard error of the best in cross-validation, those with fewest "
        f"features keep {with_error(counts, 1)}, at {with_error(scores, 1)} %"
    )


def trials(rows: list[dict]) -> Any:
    """All variants."""
    tried = [
        {**row, "trial": f"{row['data']}, {row['method']}, {row['variant']}"}
        for row in rows
        if (row["data"], row["method"]) in VARIANTS
    ]
    return table("What was tried: accuracy (%)", tried, "accuracy", "trial", "features", 1)


def notes(rows: list[dict], sets: dict[str, Rows]) -> list[str]:
    """Splits, and what others reach on pima."""
    said = [how_many(rows)]
    names = ("GMKL", "OWL-QN", "uniform GMKL", "MKL")
    pima = {name: list(found(sets.get("pima", {}), name).values()) for name in names}
    if all(pima.values()):
        told = ", ".join(f"{name} {with_error(values, 1)}" for name, values in pima.items())
        said.append(f"On pima all methods end near each other on the same splits: {told}.")
    return said


def draw(rows: list[dict]) -> Any:
    """Accuracy against the number of features."""
    import matplotlib.pyplot as plt

    sets = [data for data in TABLE_2 if any(row["data"] == data for row in rows)]
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.6 * len(sets) + 0.5, 3.4), layout="constrained", squeeze=False
    )
    for ax, data in zip(axes[0], sets, strict=True):
        here = by_method(named(rows), data)
        for method in ("GMKL", "MKL", "LP-SVM", "BAHSIC"):
            counts = [int(count) for count in TABLE_2[data][method] if count != "all"]
            ours = [mean(list(found(here, method, str(count)).values())) for count in counts]
            (line,) = ax.plot(counts, ours, "o-", label=method, markersize=3)
            papers = [TABLE_2[data][method][str(count)][0] for count in counts]
            ax.plot(counts, papers, ":", color=line.get_color())
        ax.set(title=data, xlabel="features")
    axes[0][0].set_ylabel("accuracy (%), dotted: the paper")
    axes[0][-1].legend(fontsize=8)
    return figure


EXPERIMENT = Experiment(
    title="generalized MKL and selected features on UCI data",
    paper="Varma & Babu (2009), Tables 2 and 3",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=tuple(TABLE_3),
    version="1",
)
