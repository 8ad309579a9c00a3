"""What people would pick instead: all settings chosen inside, on sets of several views or bands.

Sets of several views come as they are; spectra in eight bands of neighbouring columns, the UCI sets in
groups of columns, protein sequences as shares of amino acids. At most 300 training samples and 600 test
samples, drawn again for every split; every setting of every method by three-fold cross-validation on the
training samples (its own leave-one-out or out-of-bag error where a method has one). Columns are standardised
by the training samples for all methods but `MKLAuto`, which gets the data as they are and no argument.

Ranks are means over the sets, of mean scores over the splits that all methods have been run on; two methods
differ where their mean ranks do by more than the critical difference of Nemenyi's test at 5 % (Demsar 2006,
Journal of Machine Learning Research 7). What is judged was fixed beforehand: on no set is `MKLAuto` below the
best other method by more than two points (0.02 of R2) and two standard errors, and its mean rank is the best.
The best other method is another one on every set, chosen by the test samples themselves, which is in its
favour. Targets of the same spectra, and instruments of the same samples, are not independent sets: the
critical difference of regression is on the small side.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from reproduce import OWN, Experiment, Line, Mode, Summary, Table, by, mean, select, table, within
from reproduce import ranks as ranking
from reproduce.diagram import draw_ranks
from sklearn.base import BaseEstimator
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNetCV, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import RBF, Linear

#: groups of columns of the sets that have one table: cuts between them
GROUPS = {
    "ionosphere": [2, 10, 18, 26],
    "sonar": [10, 20, 30, 40, 50],
    "pima": [1, 2, 3, 4, 5, 6, 7],
    "liver": [1, 2, 3, 4, 5],
    "wpbc": [1, 11, 21, 31],
    "spambase": [48, 54],
    "magic04": [3, 6, 8],
}
VIEWS = ("mfeat", "bbcsport", "proteinfold_kpca27", "rosmap_mogonet", "nutrimouse")

#: spectra with what is predicted: arrays of the columns and of the targets, and which target
SPECTRA = {
    **{f"tecator, {k}": ("tecator", "X", "Y", k) for k in range(3)},
    **{f"corn {i}, {k}": ("corn_nir", f"X_{i}", "Y", k) for i in ("m5", "mp5", "mp6") for k in range(4)},
    "gasoline": ("gasoline", "X", "y", None),
    **{f"diesel, {k}": ("swri_diesel", "X", "Y", k) for k in (0, 1, 2)},
    **{f"soil, {k}": ("nirsoil", "X", "Y", k) for k in range(3)},
}
BANDS, TRAIN, TEST = 8, 300, 600
PLACES = ("chloroplast", "mitochondrial", "extracellular", "cytoplasmic", "nuclear")
AUTO = "MKLAuto"

#: which version of the choices of MKLAuto, for classes and for regression, and of our searches: part of their
#: own cells alone, so that others are not run again with them
RULE, REGRESSION_RULE, SEARCH = 4, 5, 1

#: the method that costs are ratios to
BASE = "SVM"
CLASSES = (*VIEWS, "ovarian_216x4000", *GROUPS, "mushroom", "multiloc_sequences")


def load(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Views by name, and the target."""
    if name in SPECTRA:
        file, X, Y, k = SPECTRA[name]
        arrays = datasets.load_arrays(file)
        y = arrays[Y].astype(float) if k is None else arrays[Y][:, k].astype(float)
        known = np.isfinite(y)
        return bands(arrays[X][known]), y[known]
    arrays = datasets.load_arrays(name)
    if name in VIEWS:
        return {str(v): arrays[f"X_{v}"].astype(float) for v in arrays["view_names"]}, arrays["y"]
    if name in GROUPS:
        parts = np.split(arrays["X"].astype(float), GROUPS[name], axis=1)
        return {f"group {k + 1}": part for k, part in enumerate(parts)}, arrays["y"]
    if name == "mushroom":
        return mushrooms(arrays), arrays["y"]
    if name == "multiloc_sequences":
        return proteins(arrays)
    return bands(arrays["X"]), arrays["y"]


def bands(X: np.ndarray) -> dict[str, np.ndarray]:
    """Neighbouring columns."""
    return {f"band {k + 1}": part for k, part in enumerate(np.array_split(X.astype(float), BANDS, axis=1))}


def mushrooms(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Indicators of categories, by the part of the mushroom they are of."""
    parts = np.array([str(name).split("-")[0].split("=")[0] for name in arrays["onehot_names"]])
    parts = np.where(np.isin(parts, ("cap", "gill", "stalk")), parts, "rest")
    return {str(part): arrays["X_onehot"][:, parts == part].astype(float) for part in np.unique(parts)}


def proteins(arrays: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Shares of amino acids in sequences and in their first and last 40 letters; shares of pairs."""
    letters = np.full(256, 20)
    letters[np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", dtype=np.uint8)] = np.arange(20)
    codes, ends = letters[arrays["seq_bytes"]], arrays["offsets"]
    y = arrays["classes"][arrays["y"]]
    found: dict[str, list[np.ndarray]] = {"whole": [], "first 40": [], "last 40": [], "pairs": []}
    chosen = np.flatnonzero(np.isin(y, PLACES))
    for i in chosen:
        sequence = codes[ends[i] : ends[i + 1]]
        parts = {"whole": sequence, "first 40": sequence[:40], "last 40": sequence[-40:]}
        for part, own in parts.items():
            found[part].append(np.bincount(own, minlength=21)[:20] / len(own))
        pairs = 21 * sequence[:-1] + sequence[1:]
        found["pairs"].append(np.bincount(pairs, minlength=441) / len(pairs))
    return {part: np.array(rows) for part, rows in found.items()}, y[chosen]


def picked(start: int, stop: int) -> FunctionTransformer:
    """Some columns."""
    return FunctionTransformer(lambda X: X[:, start:stop])


def per_view(machine: Callable[[], BaseEstimator], sizes: list[int]) -> list[tuple[str, BaseEstimator]]:
    """A machine on the columns of each view."""
    ends = np.cumsum(sizes)
    starts = ends - sizes
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [(f"v{start}", make_pipeline(picked(start, end), machine())) for start, end in pairs]


def svm(classes: bool) -> BaseEstimator:
    """A machine with a Gaussian kernel on all columns."""
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": ["scale", 0.001, 0.01, 0.1]}
    return GridSearchCV(SVC() if classes else SVR(epsilon=0.01), grid, cv=3)


RULES = [kw.LpNorm(1.0), kw.LpNorm(4 / 3), kw.LpNorm(2.0)]
KERNELS = [Linear(), RBF("median", factor=0.1), RBF("median"), RBF("median", factor=10.0)]


def rivals(classes: bool, sizes: list[int]) -> dict[str, Callable[[], BaseEstimator]]:
    """Methods on the standardised columns of all views side by side."""
    boosted = {"max_leaf_nodes": 15, "max_features": min(1.0, 300 / sum(sizes)), "random_state": 0}
    if classes:
        return {
            "random forest": lambda: RandomForestClassifier(500, random_state=0),
            "gradient boosting": lambda: GridSearchCV(
                HistGradientBoostingClassifier(**boosted),
                {"learning_rate": [0.03, 0.1], "min_samples_leaf": [5, 20]},
                cv=3,
            ),
            "logistic regression": lambda: LogisticRegressionCV(
                Cs=8, cv=3, max_iter=2000, use_legacy_attributes=False, scoring="accuracy", l1_ratios=(0,)
            ),
            "SVM": lambda: svm(True),
            "stacked SVMs of views": lambda: StackingClassifier(per_view(lambda: svm(True), sizes), cv=3),
        }
    return {
        "random forest": lambda: RandomForestRegressor(500, random_state=0),
        "gradient boosting": lambda: GridSearchCV(
            HistGradientBoostingRegressor(**boosted),
            {"learning_rate": [0.03, 0.1], "min_samples_leaf": [5, 20]},
            cv=3,
        ),
        "elastic net": lambda: ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], alphas=30, cv=3, max_iter=5000),
        "partial least squares": lambda: GridSearchCV(
            PLSRegression(), {"n_components": [2, 4, 6, 8, 10, 12, 15]}, cv=3
        ),
        "SVM": lambda: svm(False),
        "stacked ridge of views": lambda: StackingRegressor(
            per_view(lambda: RidgeCV(np.geomspace(1e-6, 1e4, 21)), sizes),
            RidgeCV(np.geomspace(1e-6, 1e4, 21)),
            cv=3,
        ),
    }


def ours(classes: bool) -> dict[str, Callable[[], BaseEstimator]]:
    """Our methods, on standardised views."""
    search = kw.MKLClassifierCV if classes else kw.MKLRegressorCV
    greedy = kw.GroupOMPClassifierCV if classes else kw.GroupOMPRegressorCV
    return {
        "lp, p and C chosen": lambda: search(KERNELS, regularizers=RULES, cv=3, tol=1e-2),
        "uniform sum": lambda: search(KERNELS, regularizers="uniform", cv=3, tol=1e-2),
        "GOMP": lambda: greedy(KERNELS, cv=3),
    }


def best_single(classes: bool, views: dict[str, np.ndarray], y: np.ndarray) -> tuple[str, BaseEstimator]:
    """The view and the kernel of the best score in cross-validation, at its best cost."""
    search = kw.MKLClassifierCV if classes else kw.MKLRegressorCV
    found = [
        (name, search([kernel], regularizers="uniform", cv=3, tol=1e-2).fit(kw.Views({name: X}), y))
        for name, X in views.items()
        for kernel in KERNELS
    ]
    return max(found, key=lambda pair: pair[1].best_score_)


def cells(mode: Mode) -> list[dict]:
    """Data sets, splits and methods."""
    sets = mode.pick(quick=["nutrimouse", "gasoline"], full=[*CLASSES, *SPECTRA])
    found = []
    for name in sets:
        classes = name in CLASSES
        names = [*rivals(classes, [1, 1]), *ours(classes), "best single kernel", AUTO]
        count = mode.count(quick=1, full=5)
        found += [{"data": name, "method": method, "split": s} for method in names for s in range(count)]
    found = [{**cell, **version(cell["method"], cell["data"] in CLASSES)} for cell in found]
    return sorted(found, key=lambda cell: cell["split"])


def version(method: str, classes: bool) -> dict[str, int]:
    """Of one of our methods, the version of how it chooses."""
    if method == AUTO:
        return {"rule": RULE if classes else REGRESSION_RULE}
    return {} if method in rivals(classes, [1]) else {"rule": SEARCH}


def run(data: str, method: str, split: int, rule: int = 0) -> list[dict]:
    """Test score of one method: accuracy in %, or R2."""
    views, y = load(data)
    classes, n = data in CLASSES, len(y)
    train, test = train_test_split(
        np.arange(n),
        train_size=min(TRAIN, int(0.7 * n)),
        stratify=y if classes else None,
        random_state=100 + split,
    )
    test = test[:TEST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        score = scored(method, classes, views, y, train, test)
    return [{"score": 100.0 * score if classes else score}]


def scored(
    method: str, classes: bool, views: dict, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> float:
    """Test score of one method on one split."""
    if method == AUTO:
        model: Any = kw.MKLAutoClassifier() if classes else kw.MKLAutoRegressor()
        X = kw.Views(views)
        return float(model.fit(X[train], y[train]).score(X[test], y[test]))
    scaled = {name: StandardScaler().fit(X[train]).transform(X) for name, X in views.items()}
    if method == "best single kernel":
        name, model = best_single(classes, {view: X[train] for view, X in scaled.items()}, y[train])
        return float(model.score(kw.Views({name: scaled[name][test]}), y[test]))
    if method in ours(classes):
        X = kw.Views(scaled)
        return float(ours(classes)[method]().fit(X[train], y[train]).score(X[test], y[test]))
    joined = np.hstack(list(scaled.values()))
    model = rivals(classes, [X.shape[1] for X in views.values()])[method]()
    return float(model.fit(joined[train], y[train]).score(joined[test], y[test]))


def shared_splits(rows: list[dict]) -> list[dict]:
    """Rows of the splits on which every method that has been run on a set has been run."""
    splits: dict[str, dict[str, set[int]]] = {}
    for row in rows:
        splits.setdefault(row["data"], {}).setdefault(row["method"], set()).add(row["split"])
    common = {data: set.intersection(*own.values()) for data, own in splits.items()}
    return [row for row in rows if row["split"] in common[row["data"]]]


def mean_ranks(rows: list[dict], sets: list[str]) -> tuple[dict[str, float], float]:
    """Mean ranks of methods that are there on every set, and the critical difference of Nemenyi's test."""
    names = [*dict.fromkeys(row["method"] for row in rows)]
    names = [name for name in names if all(select(rows, "score", data=data, method=name) for data in sets)]
    if not sets or len(names) < 2:
        return {}, np.nan
    means = np.array([[np.mean(select(rows, "score", data=d, method=m)) for m in names] for d in sets])
    places = ranking.ranks(means.round(6)).mean(axis=0)
    return dict(zip(names, places, strict=True)), ranking.critical_difference(len(names), len(sets))


def groups_of(rows: list[dict]) -> Iterator[tuple[str, list[dict], dict[str, float], float]]:
    """Classification and regression: title, rows, mean ranks, and their critical difference."""
    rows = shared_splits(rows)
    for title, sets in (("classification", CLASSES), ("regression", tuple(SPECTRA))):
        own = [row for row in rows if row["data"] in sets]
        done = [name for name in sets if any(row["data"] == name for row in own)]
        yield f"{title}, {len(done)} sets", own, *mean_ranks(own, done)


def against_best(rows: list[dict], name: str) -> Iterator[Line]:
    """MKLAuto beside the method that is the best of the others on a set."""
    others = dict.fromkeys(row["method"] for row in rows if row["data"] == name and row["method"] != AUTO)
    means = {method: mean(select(rows, "score", data=name, method=method)) for method in others}
    if not means or not select(rows, "score", data=name, method=AUTO):
        return
    best = max(means, key=lambda method: means[method])
    margin, digits = (2.0, 2) if name in CLASSES else (0.02, 3)
    first, second = (by(rows, "score", data=name, method=method) for method in (AUTO, best))
    what, stated = f"{name}: {AUTO} against {best}", f"not below by more than {margin:g}"
    yield within(what, first, second, margin, paper=stated, digits=digits)


def rank_line(title: str, n_sets: int, found: dict[str, float], width: float) -> Line:
    """Whether MKLAuto has the best mean rank; undecided where it is behind by no more than the difference."""
    others = {name: rank for name, rank in found.items() if name != AUTO}
    best = min(others, key=lambda name: others[name])
    behind = found[AUTO] - others[best]
    said = "reproduced" if behind < 0 else "undecided" if behind <= width else "contradicted"
    ours = f"{found[AUTO]:.2f}, {best} {others[best]:.2f} (critical difference {width:.2f})"
    verdict = said if n_sets > 1 else "undecided"
    return Line(
        f"{title}: mean rank of {AUTO} among {len(found)} methods", "the best", ours, verdict, n=n_sets
    )


def costs(rows: list[dict]) -> Table:
    """Processor seconds of a fit with all its choices: means, and the median of ratios to the SVM."""
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        line = [name]
        for sets in (CLASSES, tuple(SPECTRA)):
            some = [row for row in rows if row["data"] in sets]
            own, base = (by(some, "seconds", ("data", "split"), method=method) for method in (name, BASE))
            ratios = [own[key] / base[key] for key in own if key in base]
            line += [f"{mean(list(own.values())):.1f}" if own else ""]
            line += [f"{np.median(ratios):.1f}" if ratios else ""]
        lines.append(line)
    head = ["method", "classification, s", f"/ {BASE}", "regression, s", f"/ {BASE}"]
    return Table("Costs: processor seconds of a fit with all its choices", head, lines)


def summarise(rows: list[dict]) -> Summary:
    """Verdicts, ranks, scores and costs."""
    lines, tables, notes, rows = [], [], [], shared_splits(rows)
    for title, own, found, width in groups_of(rows):
        if not own:
            continue
        if found:
            order = sorted(found, key=lambda name: found[name])
            listed = "; ".join(f"{name} {found[name]:.1f}" for name in order)
            notes.append(f"Mean ranks, {title}: {listed}. Critical difference {width:.1f}.")
        if AUTO in found:
            n_sets = len({row["data"] for row in own})
            lines.append(rank_line(title, n_sets, found, width))
        tables.append(table(f"Test scores, {title}", own, "score", down="data", across="method"))
    judged = [line for name in (*CLASSES, *SPECTRA) for line in against_best(rows, name)]
    return Summary(lines=[*lines, *judged], tables=[costs(rows), *tables], notes=notes)


def draw(rows: list[dict]) -> Any:
    """Mean ranks with the critical difference."""
    return draw_ranks(
        {f"mean rank, {title}": (found, width) for title, _, found, width in groups_of(rows) if found}
    )


EXPERIMENT = Experiment(
    title="what people would pick instead",
    paper=OWN,
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=tuple(dict.fromkeys([*CLASSES, *(file for file, *_ in SPECTRA.values())])),
    version="1",
)
