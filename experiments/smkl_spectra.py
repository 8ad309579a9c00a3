"""Tables 4 to 6 of Subrahmanya & Shin (2010), Sparse Multiple Kernel Learning: near-infrared spectra.

Every spectrum is standardised (zero mean, unit deviation) and augmented by its second differences. Each of 10
bands has one linear, one cubic and two Gaussian kernels, 40 in all. There are 30 random splits with 80 % of
the samples for training, and 10-fold cross-validation on the training part. Five adjacent wavelengths are
averaged first, as the paper does with its wheat, except on tecator, which has only 100. NMSE is the mean
squared error over the variance of the target on all samples. Of the paper's three sets one is here, diesel
(cetane number), as 381 samples in place of 245; the others are tecator (fat), gasoline (octane) and corn
(protein). The paper's diesel is without outliers, by a rule it does not give; "swri_diesel 373" leaves out
the 8 samples (2 %) that partial least squares predicts worst when they are held out, to see how much outliers
matter.

The loss is the squared loss where the paper tunes the width of a tube as well; the single-kernel SVR tunes
its tube here too. For SMKL, the strength of its penalty and the ratio of its two terms are chosen by
cross-validation. "SMKL, half" is the best in cross-validation of those that have at most half the bands of
MKL, tuned on the same folds; the paper's statements are judged on SMKL without this limit.

How the set-up was chosen: averaging, scaling and the two widths by cross-validation on the training part of
split 0. The grid of SMKL and the rule that chooses on it were changed five times. Test figures of splits 0
to 29 were seen before the last change: with strengths down to 0.05 and ratios from 0.2 up, SMKL had 2.3, 3.4,
1.7 and 3.7 bands (tecator, corn, gasoline, diesel) against 9.6, 8.3, 3.6 and 9.2, and a larger NMSE by 0.7,
1.3, 3.5 and 1.6 standard errors: one of four. Cross-validation on training parts alone then showed that the
grid ended too early (on tecator the weakest strength was the best) and was too sparse throughout; it was
extended to its present form. The splits shown here are numbered from 30, and were not looked at before that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from _smkl import best_within, grid, n_bands, n_kernels
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    alike,
    by,
    compare,
    mean,
    ordering,
    select,
    standard_error,
    table,
    threshold,
)
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, train_test_split
from sklearn.svm import SVR

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import RBF, Linear, Polynomial

DATA = ("tecator", "corn_nir", "gasoline", "swri_diesel")
N_BANDS, WIDTHS = 10, (0.01, 0.1)
COSTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
STRENGTHS, RATIOS = (5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01), (1.0, 0.5, 0.2, 0.1)
SCORE = "neg_mean_squared_error"
#: diesel: NMSE, half width of its 95 % interval, and bands
PAPER = {
    "SMKL": (0.265, 0.030, 3.0),
    "MKL": (0.270, 0.034, 7.0),
    "SVR": (0.274, 0.030, None),
    "PLS": (0.367, None, None),
}
#: NMSE of a network on chosen wavelengths (B-splines+MI+RBFN), reported before
BEFORE = 0.375
SEEN = 30  # splits below this were looked at while the set-up was chosen
METHODS = ("SMKL", "SMKL, half", "MKL", "uniform", "SVR", "PLS")


class Split(NamedTuple):
    """Standardised features and targets; `unit` is the variance of all targets in these units."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    unit: float


def spectra(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised spectra beside their second differences, and targets."""
    name, _, part = data.partition(" ")
    found = datasets.load(name)
    X = found.views["m5"] if name == "corn_nir" else found.X
    if name != "tecator":
        X = X[:, : X.shape[1] // 5 * 5].reshape(len(X), -1, 5).mean(axis=2)
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    X = np.hstack([X, np.pad(np.diff(X, 2, axis=1), ((0, 0), (1, 1)))])
    kept = ordinary(X, found.y, int(part)) if part else np.arange(len(X))
    return X[kept], found.y[kept]


def ordinary(X: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    """The `size` samples whose targets partial least squares predicts best when they are held out."""
    folds = KFold(10, shuffle=True, random_state=0)
    found = cross_val_predict(PLSRegression(10), X, y, cv=folds)
    return np.sort(np.abs(np.ravel(found) - y).argsort(kind="stable")[:size])


def divided(data: str, split: int) -> Split:
    """One random split, columns and targets of zero mean and unit variance on the training part."""
    X, y = spectra(data)
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=split)
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 1e-10, spread, 1.0)
    unit = y[train].std()
    y, all_of_it = (y - y[train].mean()) / unit, float(y.var() / unit**2)
    return Split(X[train], y[train], X[test], y[test], all_of_it)


def band_kernels(n_columns: int) -> dict[str, Any]:
    """Four kernels on each band: spectrum and second differences of the same wavelengths."""
    half, kernels = n_columns // 2, {}
    for number, band in enumerate(np.array_split(np.arange(half), N_BANDS), 1):
        columns = [*band.tolist(), *(band + half).tolist()]
        kernels[f"{number} linear"] = Linear(columns=columns)
        kernels[f"{number} cubic"] = Polynomial(3, gamma=1.0 / len(columns), columns=columns)
        kernels |= {f"{number} rbf {width:g}": RBF("scale", width, columns=columns) for width in WIDTHS}
    return kernels


def search(parts: Split, regularizers: Any, costs: Any, folds: KFold) -> kw.MKLRegressorCV:
    """Cross-validation on the training part, not yet run."""
    kernels = band_kernels(parts.X.shape[1])
    return kw.MKLRegressorCV(kernels, regularizers=regularizers, Cs=costs, cv=folds, scoring=SCORE, tol=1e-2)


def single(parts: Split, folds: KFold) -> Any:
    """Support vector regression with one kernel on all features."""
    p = parts.X.shape[1]
    shared = {"C": [1.0, 10.0, 100.0], "epsilon": [0.02, 0.1]}
    options = [
        {"kernel": ["linear"], "C": [0.001, 0.01, 0.1], "epsilon": [0.02, 0.1]},
        {"kernel": ["poly"], "coef0": [1.0], "gamma": [1.0 / p], **shared},
        {"kernel": ["rbf"], "gamma": [0.01 / p, 0.1 / p, 1.0 / p], **shared},
    ]
    return GridSearchCV(SVR(), options, cv=folds, scoring=SCORE)


def run(data: str, split: int, folds: int) -> list[dict]:
    """All methods on one split."""
    parts, cv = divided(data, split), KFold(folds, shuffle=True, random_state=split)
    X, y = parts.X, parts.y
    mkl = search(parts, kw.LpNorm(1), COSTS, cv).fit(X, y)
    smkl = search(parts, grid(STRENGTHS, RATIOS), [1.0], cv).fit(X, y)
    models = {
        "SMKL": smkl.best_estimator_,
        "SMKL, half": best_within(smkl, X, y, n_bands(mkl.best_estimator_) // 2),
        "MKL": mkl.best_estimator_,
        "uniform": search(parts, "uniform", (1e-4, 1e-3, 1e-2, 0.1, 1.0), cv).fit(X, y).best_estimator_,
        "SVR": single(parts, cv).fit(X, y),
        "PLS": GridSearchCV(
            PLSRegression(scale=False), {"n_components": list(range(2, 17, 2))}, cv=cv, scoring=SCORE
        ).fit(X, y),
    }
    return [row(method, model, parts) for method, model in models.items()]


def row(method: str, model: Any, parts: Split) -> dict:
    """NMSE on the test part, bands and kernels."""
    found = np.ravel(model.predict(parts.X_test))
    weighted = hasattr(model, "weights_")
    return {
        "method": method,
        "nmse": float(np.mean((found - parts.y_test) ** 2) / parts.unit),
        "bands": n_bands(model) if weighted else N_BANDS,
        "kernels": n_kernels(model) if weighted else 1,
    }


def cells(mode: Mode) -> list[dict]:
    """One per data set and split; diesel also without the 8 samples that are predicted worst."""
    sets, folds = [*DATA, *mode.pick(quick=[], full=["swri_diesel 373"])], mode.pick(quick=5, full=10)
    splits = range(mode.count(quick=2, full=30))
    return [{"data": data, "split": SEEN + split, "folds": folds} for split in splits for data in sets]


def summarise(rows: list[dict]) -> Summary:
    """Diesel beside Table 6, and what the paper says of its three sets, on every set."""
    sets = {data: [row for row in rows if row["data"] == data] for data in DATA}
    lines = [line for method in PAPER for line in diesel(rows, method)]
    lines += [line for data, some in sets.items() if some for line in statements(some, data)]
    lines += [
        threshold(
            f"swri_diesel: {method} is below the NMSE reported before (B-splines+MI+RBFN, {BEFORE})",
            select(sets["swri_diesel"], "nmse", method=method),
            BEFORE,
            paper=f"{PAPER[method][0]:.3f}",
            above=False,
            digits=3,
        )
        for method in ("SMKL", "MKL")
        if sets["swri_diesel"]
    ]
    tables = [
        table("Test NMSE", rows, "nmse", "method", "data", digits=4),
        table("Bands used, of 10", rows, "bands", "method", "data", digits=1),
        table("Kernels used, of 40", rows, "kernels", "method", "data", digits=1),
    ]
    return Summary(lines, tables)


def statements(rows: list[dict], data: str) -> list[Line]:
    """Fewer bands than MKL at the same error; both are better than partial least squares."""
    nmse = {method: by(rows, "nmse", method=method) for method in METHODS}
    few, many = (by(rows, "bands", method=method) for method in ("SMKL", "MKL"))
    name = data if data == "swri_diesel" else f"{data} (other data)"
    lines = [
        ordering(
            f"{name}: SMKL has fewer bands than MKL",
            few,
            many,
            paper="3.0 to 3.1 against 7.0 to 9.2",
            higher=False,
            digits=1,
        ),
        alike(
            f"{name}: SMKL and MKL are as accurate as each other (NMSE)",
            nmse["SMKL"],
            nmse["MKL"],
            paper="comparable",
            higher=False,
            digits=4,
            why=sparser(rows),
        ),
        *(
            ordering(
                f"{name}: {method} outperforms partial least squares (NMSE)",
                nmse[method],
                nmse["PLS"],
                paper="0.024 against 0.029, 0.120 against 0.151, 0.265 and 0.270 against 0.367",
                higher=False,
                digits=4,
            )
            for method in ("SMKL", "MKL")
        ),
    ]
    if data == "swri_diesel":
        what = "swri_diesel: one kernel on the whole spectrum is comparable to {} (NMSE)"
        lines += [
            alike(what.format(m), nmse["SVR"], nmse[m], paper="comparable", higher=False, digits=4)
            for m in ("SMKL", "MKL")
        ]
    return lines


def diesel(rows: list[dict], method: str) -> list[Line]:
    """NMSE and bands beside the paper's, on all samples and without outliers."""
    nmse, width, bands = PAPER[method]
    error = None if width is None else width / 1.96
    sets = [data for data in ("swri_diesel", "swri_diesel 373") if select(rows, "nmse", data=data)]
    values = {data: select(rows, "nmse", data=data, method=method) for data in sets}
    lines = [
        compare(f"{data}, {method}, NMSE", found, nmse, error, digits=3, why=outliers(values))
        for data, found in values.items()
    ]
    if bands is not None and "swri_diesel" in sets:
        used = select(rows, "bands", data="swri_diesel", method=method)
        lines.append(compare(f"swri_diesel, {method}, bands", used, bands))
    return lines


def outliers(values: dict[str, list[float]]) -> str:
    """What leaving out the samples predicted worst is worth: the paper leaves outliers out, too."""
    found = [mean(values[data]) for data in ("swri_diesel", "swri_diesel 373") if data in values]
    if len(found) < 2:
        return ""
    worst = "the 8 samples of 381 that are predicted worst when held out"
    return f"with {worst} left out the NMSE is {found[1]:.3f}, not {found[0]:.3f}"


def sparser(rows: list[dict]) -> str:
    """NMSE and bands of all that are sparse."""
    found = []
    for method in ("SMKL, half", "SMKL", "MKL"):
        nmse, bands = (mean(select(rows, column, method=method)) for column in ("nmse", "bands"))
        found.append(f"{method} {nmse:.4f} with {bands:.1f} bands")
    return "; ".join(found)


def draw(rows: list[dict]) -> Any:
    """NMSE against bands, one panel per set."""
    import matplotlib.pyplot as plt

    sets = [data for data in dict.fromkeys(row["data"] for row in rows)]
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.2 * len(sets), 3.2), layout="constrained", squeeze=False
    )
    for ax, data in zip(axes[0], sets, strict=True):
        for method in METHODS:
            bands, nmse = (select(rows, column, data=data, method=method) for column in ("bands", "nmse"))
            ax.errorbar(
                mean(bands),
                mean(nmse),
                standard_error(nmse) if len(nmse) > 1 else None,
                fmt="o",
                label=method,
            )
        ax.set(title=data, xlabel="bands", xlim=(0, 10.5), ylim=(0, None))
    axes[0][0].set_ylabel("test NMSE")
    axes[0][0].legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    title="bands of near-infrared spectra chosen by SMKL",
    paper="Subrahmanya & Shin (2010), Tables 4 to 6",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=DATA,
    version="4",
)
