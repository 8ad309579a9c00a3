"""Figures 1 to 3 of Tomioka & Suzuki (2011), Regularization Strategies and Empirical Bayesian Learning.

Accuracy with two classes against the number of samples per class, with many kernels made by combining
factors. The paper has three pairs of classes of Caltech 101, which is no longer available, with 1,760
kernels: four kinds of local features, 22 regions of the picture (whole, quarters, sixteenths, spatial
pyramid), two kernel functions (Gaussian and chi-square) and ten bandwidths. This page has six problems on
other data.

"pictures": pairs of MNIST digits with 1,760 kernels made as in the paper: patches of 5 and 9 pixels and
gradient histograms in cells of 4 and 8 pixels in place of four kinds of SIFT, on a grid; 200 of them, drawn
from the training pictures, as visual words; the same 22 regions, kernel functions and bandwidths. "digits":
the handwritten digits mfeat in six feature sets (120 kernels), 6 against 9, where two of the sets do not
change when a picture is turned, and odd against even. "news": sports news in two segments (40 kernels), rugby
against football. For digits and news, features are scaled to [0, 1] and the ten bandwidths of each kernel
function are multiples of the median distance; scales and distances are those of the training samples.

With 1,760 kernels the matrices of up to 100 training samples fit into memory. "on the fly" shows that they
need not: the elastic net (0.5) at the same C, on kernels that are computed from the pictures' histograms and
never kept (30 samples per class, first draw, 64 MB). Its weights are compared with those of the fit in
memory.

The methods are the uniform sum (logistic and squared loss), the block 1-norm, the elastic net with
lambda = 0.5 and with lambda by cross-validation, the l2-norm (hinge loss), and empirical Bayes (targets -1
and +1, as in the paper). C is chosen by 4-fold cross-validation on the training samples, repeated twice (once
for the pictures, to save time). "best kernel" is the support vector machine with the one kernel of best
cross-validated accuracy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import _pictures as pictures
import numpy as np
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    alike,
    all_above,
    by,
    compare,
    mean,
    ordering,
    select,
    standings,
    table,
    threshold,
)
from sklearn.metrics import accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.svm import SVC

import kernelweave as kw
from kernelweave import KernelStack, datasets
from kernelweave.kernels.bases import chi2, squared_euclidean

WIDTHS = np.geomspace(0.03, 30.0, 10)
COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
LAMBDAS = (0.0, 0.2, 0.4, 0.6, 0.8)
N_TEST = 400
#: kind of problem -> data set
DATA = {"pictures": "mnist", "digits": "mfeat", "news": "bbcsport"}
#: pictures -> two digits
PICTURES = {"pictures 3/5": (3, 5), "pictures 4/9": (4, 9), "pictures 7/9": (7, 9)}
PROBLEMS = (*PICTURES, "digits 6/9", "digits odd/even", "news rugby/football")
#: where kernels are also computed on the fly: samples per class, draw, memory
FLY_SIZE, FLY_SEED, FLY_MEMORY = 30, 0, "64MB"
FLY = "elastic net 0.5, on the fly"
GOOD = ("uniform", "elastic net 0.5", "elastic net", "l2")
SPARSE = ("block 1", "empirical Bayes")
METHODS = (
    "uniform",
    "uniform, squared",
    "block 1",
    "elastic net 0.5",
    "elastic net",
    "l2",
    "empirical Bayes",
    "best kernel",
)
#: methods under the names all experiments share; the block 1-norm is l1-MKL with another C
SHARED = {
    "uniform": "uniform sum",
    "block 1": "l1-MKL",
    "elastic net": "elastic net",
    "l2": "lp-MKL (p = 2)",
    "empirical Bayes": "empirical Bayes",
    "best kernel": "best single kernel",
}


class Task(NamedTuple):
    """Kernel matrices between training samples, and of test samples with them."""

    train: KernelStack
    y: np.ndarray
    test: KernelStack
    y_test: np.ndarray


def samples(problem: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Feature sets and labels -1, +1."""
    data = datasets.load(DATA[problem.split()[0]])
    if problem == "digits odd/even":
        return data.views, np.where(data.y % 2, 1, -1)
    names = [str(name) for name in data.classes]
    first, second = problem.split()[1].split("/")
    chosen = np.isin(data.y, [names.index(first), names.index(second)])
    views = {name: X[chosen] for name, X in data.views.items()}
    return views, np.where(data.y[chosen] == names.index(first), 1, -1)


def drawn(y: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """`size` samples of each class to train, at most N_TEST of the others to test."""
    order = rng.permutation(len(y))
    train = np.concatenate([order[y[order] == label][:size] for label in (-1, 1)])
    return train, np.setdiff1d(order, train, assume_unique=True)[:N_TEST]


def task(problem: str, size: int, seed: int) -> Task:
    """One draw, its kernels computed once: distances of each kind, then all bandwidths."""
    if problem in PICTURES:
        found, y, train, test = seen(problem, size, seed)
        return split(pictures.matrices(found, len(train)), y[train], y[test])
    views, y = samples(problem)
    train, test = drawn(y, size, np.random.default_rng([seed, size]))
    rows, made = np.concatenate([train, test]), {}
    for name, X in views.items():
        Z = scaled(X[rows], len(train))
        for kind, distance in (("gauss", squared_euclidean), ("chi2", chi2)):
            D = distance(Z, Z[: len(train)])
            D = D / np.median(D[: len(train)][D[: len(train)] > 0])
            made |= {f"{name} {kind} {width:.3g}": np.exp(-width * D) for width in WIDTHS}
    return split(made, y[train], y[test])


def seen(
    problem: str, size: int, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """Histograms of the pictures of one draw, labels of all pictures, and which train and test."""
    X, y = pictures.pair(*PICTURES[problem])
    rng = np.random.default_rng([seed, size])
    train, test = drawn(y, size, rng)
    return pictures.histograms(X[np.concatenate([train, test])], len(train), rng), y, train, test


def split(made: dict[str, np.ndarray], y: np.ndarray, y_test: np.ndarray) -> Task:
    """Kernels of the training samples, the first ones, and those of the others with them."""
    names, n = list(made), len(y)
    parts = [KernelStack([K[part] for K in made.values()], names) for part in (slice(n), slice(n, None))]
    return Task(parts[0], y, parts[1], y_test)


def scaled(X: np.ndarray, n: int) -> np.ndarray:
    """Features in [0, 1] on the first n rows, the others cut to it; those that do not change left out."""
    low, high = X[:n].min(axis=0), X[:n].max(axis=0)
    moving = high > low
    return np.clip((X[:, moving] - low[moving]) / (high - low)[moving], 0.0, 1.0)


def models(seed: int, repeats: int = 2) -> dict[str, Any]:
    """The methods, not yet fitted."""
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=repeats, random_state=seed)

    def search(regularizers: Any, loss: str) -> Any:
        return kw.MKLClassifierCV(
            "precomputed", loss=loss, regularizers=regularizers, Cs=COSTS, cv=folds, tol=1e-2
        )

    nets = [kw.ElasticNet(l1_ratio=1.0 - part) for part in LAMBDAS]
    return {
        "uniform": search("uniform", "logistic"),
        "uniform, squared": search("uniform", "squared"),
        "block 1": search(nets[0], "logistic"),
        "elastic net 0.5": search(kw.ElasticNet(l1_ratio=0.5), "logistic"),
        "elastic net": search([*nets, "uniform"], "logistic"),
        "l2": search(kw.LpNorm(2), "hinge"),
        "empirical Bayes": kw.EmpiricalBayesClassifier("precomputed", method="regression"),
    }


def run(problem: str, size: int, seed: int) -> list[dict]:
    """All methods on one draw."""
    one = task(problem, size, seed)
    learners = models(seed, repeats=1 if problem in PICTURES else 2)
    found = {method: model.fit(one.train, one.y) for method, model in learners.items()}
    rows = [row(method, model, one) for method, model in found.items()]
    rows.append({"method": "best kernel", "accuracy": best_kernel(one), "kernels": 1})
    if problem in PICTURES and (size, seed) == (FLY_SIZE, FLY_SEED):
        rows.append(on_the_fly(problem, found["elastic net 0.5"]))
    return rows


def on_the_fly(problem: str, dense: Any) -> dict:
    """A model of kernels that are functions of the data, beside one of their matrices."""
    found, y, train, test = seen(problem, FLY_SIZE, FLY_SEED)
    functions, X = pictures.kernels(found)
    n, C = len(train), dense.best_params_["C"]
    model = kw.MKLClassifier(functions, loss="logistic", regularizer=kw.ElasticNet(l1_ratio=0.5), C=C)
    model.set_params(gram="blocked", memory_limit=FLY_MEMORY, tol=1e-2).fit(X[:n], y[train])
    apart = np.abs(model.weights_ / model.weights_.sum() - dense.weights_ / dense.weights_.sum())
    return {
        "method": FLY,
        "accuracy": 100.0 * accuracy_score(y[test], model.predict(X[n:])),
        "kernels": int(np.count_nonzero(model.weights_ > 1e-6 * model.weights_.max())),
        "of": len(functions),
        "apart": float(0.5 * apart.sum()),
    }


def best_kernel(one: Task) -> float:
    """Test accuracy in % with the one kernel of best cross-validated accuracy."""
    machine, folds = SVC(C=10.0, kernel="precomputed"), list(StratifiedKFold(4).split(one.y, one.y))

    def score(K: np.ndarray, inside: np.ndarray, held: np.ndarray) -> float:
        machine.fit(K[np.ix_(inside, inside)], one.y[inside])
        return float(machine.score(K[np.ix_(held, inside)], one.y[held]))

    every = (one.train.matrix(m) for m in range(one.train.shape[2]))
    best = int(np.argmax([mean([score(K, *fold) for fold in folds]) for K in every]))
    return 100.0 * machine.fit(one.train.matrix(best), one.y).score(one.test.matrix(best), one.y_test)


def row(method: str, model: Any, one: Task) -> dict:
    """Accuracy in %, kernels used, and the share of the weight of each value of each factor."""
    weights = model.weights_ / model.weights_.sum()
    factors = [[part.partition(":")[0] for part in name.split()] for name in model.kernel_names_]
    values = list(dict.fromkeys(part for factor in factors for part in factor))
    shares = {v: sum(w for w, f in zip(weights, factors, strict=True) if v in f) for v in values}
    return {
        "method": method,
        "accuracy": 100.0 * accuracy_score(one.y_test, model.predict(one.test)),
        "kernels": int(np.count_nonzero(weights > 1e-6 * weights.max())),
        "of": len(weights),
        **{f"weight {value}": float(share) for value, share in shares.items()},
    }


def cells(mode: Mode) -> list[dict]:
    """One per problem, size and draw; of pictures fewer sizes and draws, and when quick one pair."""
    sizes = mode.pick(quick=(10, 30), full=(5, 10, 20, 30, 50))
    count = mode.count(quick=1, full=10)
    large = mode.pick(quick={"pictures 3/5": (5,)}, full=dict.fromkeys(PICTURES, (10, FLY_SIZE)))
    small = {problem: sizes for problem in PROBLEMS if problem not in PICTURES}
    return [
        {"problem": problem, "size": size, "seed": seed}
        for seed in range(count)
        for problem, chosen in (large | small if seed < max(2 * count // 5, 1) else small).items()
        for size in chosen
    ]


def summarise(rows: list[dict]) -> Summary:
    """What the paper says of its figures (it prints no numbers), problem by problem."""
    present = [problem for problem in PROBLEMS if select(rows, "accuracy", problem=problem)]
    lines = [line for problem in present for line in claims(rows, problem)]
    tables = [
        table(f"Accuracy (%), {problem}", rows, "accuracy", "method", "size", problem=problem)
        for problem in present
    ]
    tables += [
        table(f"Kernels used, {problem}", rows, "kernels", "method", "size", digits=1, problem=problem)
        for problem in present
    ]
    notes = [*fly_notes(rows), *(factor_note(rows, problem) for problem in present)]
    return Summary(lines, tables, notes, shared(rows))


def fly_notes(rows: list[dict]) -> list[str]:
    """How far a model of kernels computed on the fly is from that of their matrices."""
    found = [row for row in rows if row["method"] == FLY]
    dense = {
        row["problem"]: row["accuracy"]
        for row in rows
        if row["method"] == "elastic net 0.5" and (row["size"], row["seed"]) == (FLY_SIZE, FLY_SEED)
    }
    return [
        f"{row['problem']}, {row['of']} kernels on the fly: accuracy {row['accuracy']:.2f} % "
        f"({dense[row['problem']]:.2f} % with matrices); {100 * row['apart']:.2g} % of the weight moved."
        for row in found
    ]


def shared(rows: list[dict]) -> list[Any]:
    """Accuracies at the largest size, with the data set each problem is made of."""
    largest = {
        p: max(row["size"] for row in rows if row["problem"] == p) for p in {r["problem"] for r in rows}
    }
    named = [
        {**row, "data": DATA[row["problem"].split()[0]]}
        for row in rows
        if row["size"] == largest[row["problem"]]
    ]
    return standings(named, "accuracy", names=SHARED, problem="problem")


FEW = 20  # samples per class; the paper's line between small and large


def claims(rows: list[dict], problem: str) -> list[Line]:
    """What the paper says of its problems, on one of ours; a repetition is a draw of one size."""
    here = [row for row in rows if row["problem"] == problem]
    name = f"{problem} (other data)"
    return [*accuracy(here, name), *sparsity(here, name)]


def by_draw(rows: list[dict], column: str, method: str) -> dict[Any, float]:
    """Values of a method by size and draw."""
    return dict(by(rows, column, ("size", "seed"), method=method))


def averaged(rows: list[dict], methods: tuple[str, ...]) -> dict[Any, float]:
    """Mean accuracy of some methods by size and draw."""
    found = [by_draw(rows, "accuracy", method) for method in methods]
    return {unit: mean([one[unit] for one in found]) for unit in found[0] if all(unit in f for f in found)}


def accuracy(rows: list[dict], name: str) -> list[Line]:
    """Dense above sparse, above all with few samples; dense alike; losses alike."""
    every = {method: by_draw(rows, "accuracy", method) for method in METHODS}
    small, middle, large = (
        [row for row in rows if some(row["size"])]
        for some in (lambda n: n < FEW, lambda n: n >= FEW, lambda n: n >= 30)
    )
    options: dict[str, Any] = {"unit": " %"}
    good, sparse = ({m: every[m] for m in methods} for methods in (GOOD, SPARSE))
    what = f"{name}: uniform, elastic net and l2 "
    lines = [
        all_above(f"{what}are each above block 1 and empirical Bayes", good, sparse, paper="yes", **options),
        ordering(
            f"{what}are above block 1 and empirical Bayes under {FEW} samples per class (means)",
            averaged(small, GOOD),
            averaged(small, SPARSE),
            paper="especially",
            why=alone(small),
            **options,
        ),
    ]
    if middle:
        lines.append(difference(rows, name))
    if large:
        what = f"{name}: from 30 samples per class on, block 1 and empirical Bayes are comparable to them"
        paper = "on one of three problems"
        lines.append(alike(what, averaged(large, SPARSE), averaged(large, GOOD), paper=paper, **options))
    lines += [
        alike(f"{name}: {m} is as accurate as uniform", every[m], every["uniform"], paper="almost", **options)
        for m in ("elastic net 0.5", "elastic net", "l2")
    ]
    what = f"{name}: uniform, logistic and squared loss are alike"
    losses = every["uniform"], every["uniform, squared"]
    return [*lines, alike(what, *losses, paper="the difference is small", **options)]


def difference(rows: list[dict], name: str) -> Line:
    """Whether dense methods gain more with few samples: by draw, over the sizes on either side."""
    good, sparse = (averaged(rows, methods) for methods in (GOOD, SPARSE))
    gains = {unit: good[unit] - sparse[unit] for unit in good if unit in sparse}
    seeds = dict.fromkeys(seed for _, seed in gains)
    few, many = (
        {
            s: mean([g for (size, seed), g in gains.items() if seed == s and (size < FEW) == side])
            for s in seeds
        }
        for side in (True, False)
    )
    both = [s for s in seeds if np.isfinite(few[s]) and np.isfinite(many[s])]
    what = f"{name}: they are ahead by more under {FEW} samples per class than from {FEW} on"
    one, other = ({s: found[s] for s in both} for found in (few, many))
    return ordering(what, one, other, paper="especially", unit=" %")


def sparsity(rows: list[dict], name: str) -> list[Line]:
    """How many kernels have a weight, and of which kind."""
    shares = {
        m: {unit: 100.0 * count / total[unit] for unit, count in used.items()}
        for m in ("empirical Bayes", "elastic net 0.5", "l2", "block 1")
        for used, total in [(by_draw(rows, "kernels", m), by_draw(rows, "of", m))]
    }
    net = list(shares["elastic net 0.5"].values())
    gauss, chi = (by_draw(rows, f"weight {kind}", "elastic net 0.5") for kind in ("gauss", "chi2"))
    what = f"{name}: empirical Bayes is sparser than "
    options: dict[str, Any] = {"paper": "extremely sparse", "higher": False, "digits": 1, "unit": " %"}
    bayes = {"empirical Bayes": shares["empirical Bayes"]}
    others = {m: shares[m] for m in ("elastic net 0.5", "l2")}
    return [
        all_above(f"{what}the elastic net and l2 (% of kernels)", bayes, others, **options),
        threshold(
            f"{name}: the elastic net (0.5) leaves out kernels (% used)",
            net,
            100.0,
            paper="50 %: 880 of 1,760",
            above=False,
            digits=1,
            unit=" %",
        ),
        compare(f"{name}: kernels used by the elastic net (0.5) in %", net, 50.0),
        compare(f"{name}: kernels used by l2 in %", list(shares["l2"].values()), 100.0),
        ordering(
            f"{name}: the elastic net prefers chi-square to Gaussian kernels (share of the weight)",
            chi,
            gauss,
            paper="792 against 88 kernels",
        ),
    ]


def alone(rows: list[dict]) -> str:
    """What one kernel reaches, and all of them."""
    one, everything = (mean(select(rows, "accuracy", method=m)) for m in ("best kernel", "uniform"))
    return (
        f"one kernel, chosen by cross-validation, reaches {one:.1f} % on the same samples, the sum of all "
        f"{everything:.1f} %"
    )


def factor_note(rows: list[dict], problem: str) -> str:
    """Weights by factor of the elastic net at the largest size."""
    largest = max(row["size"] for row in rows if row["problem"] == problem)
    mine = [
        r for r in rows if r["problem"] == problem and r["size"] == largest and r["method"] == "elastic net"
    ]
    names = [name for name in mine[0] if name.startswith("weight ") and name in mine[0]]
    shares = {name.removeprefix("weight "): mean(select(mine, name)) for name in names}
    shares = {name: share for name, share in shares.items() if np.isfinite(share)}
    parts = ", ".join(f"{name} {share:.2f}" for name, share in shares.items() if share >= 0.005)
    return f"{problem}, {largest} samples per class, weights of the elastic net (0.5) by factor: {parts}."


def draw(rows: list[dict]) -> Any:
    """Accuracy against samples per class."""
    import matplotlib.pyplot as plt

    present = [problem for problem in PROBLEMS if select(rows, "accuracy", problem=problem)]
    figure, axes = plt.subplots(
        1, len(present), figsize=(4 * len(present), 3.4), layout="constrained", squeeze=False
    )
    sizes = sorted({row["size"] for row in rows})
    for ax, problem in zip(axes[0], present, strict=True):
        for method in METHODS:
            values = [select(rows, "accuracy", problem=problem, size=n, method=method) for n in sizes]
            ax.plot(sizes, [mean(found) for found in values], "o-", markersize=3, label=method)
        ax.set(title=problem, xlabel="samples per class")
    axes[0][0].set_ylabel("test accuracy (%)")
    axes[0][0].legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    title="accuracy against samples with kernels made of factors",
    paper="Tomioka & Suzuki (2011), Figures 1 to 3",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=tuple(DATA.values()),
)
