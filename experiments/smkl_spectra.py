"""Tables 4 to 6 of Subrahmanya & Shin (2010), Sparse Multiple Kernel Learning: near-infrared spectra.

Every spectrum is standardised (zero mean, unit deviation) and augmented by its second differences; 10 bands,
in each one linear, one cubic and two Gaussian kernels, 40 in all. 30 random splits, 80 % to train, 10-fold
cross-validation on the training part. Five adjacent wavelengths are averaged first, as the paper does with
its wheat, but for tecator, which has 100 only. NMSE is the mean squared error over the variance of the target
on all samples. Of the paper's three sets one is here, diesel (cetane number), as 381 samples in place of 245;
the others are tecator (fat), gasoline (octane) and corn (protein). The paper's diesel is without outliers, by
a rule it does not give; "swri_diesel 373" leaves out the 8 samples (2 %) that partial least squares predicts
worst when they are held out, to see what outliers are worth.

Machines have the squared loss where the paper tunes a tube as well; single-kernel SVR tunes its own. SMKL:
the strength of its penalty and the ratio of its two terms by cross-validation. "SMKL, half" is the best of
them in cross-validation among those that have at most half the bands of MKL, tuned on the same folds: the
comparison is made for SMKL left to choose, whose bands are counted in the mean, and for that.

How this set-up was come by: averaging, scaling and the two widths by cross-validation on the training part
of split 0. The grid of SMKL and the rule that chooses on it were changed five times. Test figures of splits 0
to 29 were seen before the last change: with strengths down to 0.05 and ratios from 0.2 up, SMKL had 2.3, 3.4,
1.7 and 3.7 bands (tecator, corn, gasoline, diesel) against 9.6, 8.3, 3.6 and 9.2, and a larger NMSE by 0.7,
1.3, 3.5 and 1.6 standard errors: one of four. Cross-validation on training parts alone then showed that the
grid ended too early (on tecator the weakest strength was the best) and was too sparse throughout; it was
extended to what it is. The splits shown here are numbered from 30, and were not looked at before that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from _smkl import best_within, grid, n_bands, n_kernels
from reproduce import (
    Experiment,
    Mode,
    Summary,
    claim,
    compare,
    mean,
    select,
    standard_error,
    table,
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
#: NMSE and half width of its 95 % interval, bands and the same
PAPER = {
    "SMKL": (0.265, 0.030, 3.0),
    "MKL": (0.270, 0.034, 7.0),
    "SVR": (0.274, 0.030, 10.0),
    "PLS": (0.367, None, 10.0),
}
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
    """One a data set and split; diesel also without the 8 samples that are predicted worst."""
    sets, folds = [*DATA, *mode.pick(quick=[], full=["swri_diesel 373"])], mode.pick(quick=5, full=10)
    splits = range(mode.count(quick=2, full=30))
    return [{"data": data, "split": SEEN + split, "folds": folds} for split in splits for data in sets]


def halved(rows: list[dict], data: str, method: str) -> tuple[bool, str]:
    """Whether half the bands of MKL have the same NMSE up to a standard error, and figures."""
    few, many = (select(rows, "nmse", data=data, method=m) for m in (method, "MKL"))
    bands = [mean(select(rows, "bands", data=data, method=m)) for m in (method, "MKL")]
    excess, allowed = mean(few) - mean(many), max(standard_error(few), standard_error(many))
    text = f"{bands[0]:.1f} against {bands[1]:.1f} bands, NMSE {excess:+.4f} (se {allowed:.4f})"
    return bool(bands[0] <= bands[1] / 2 and excess <= allowed), text


def summarise(rows: list[dict]) -> Summary:
    """Diesel beside Table 6, and the paper's claim on every set."""
    lines = [line for method in PAPER for line in diesel(rows, method)]
    lines += [line for method in ("SMKL", "SMKL, half") for line in halves(rows, method)]
    tables = [
        table("Test NMSE", rows, "nmse", "method", "data", digits=4),
        table("Bands used, of 10", rows, "bands", "method", "data", digits=1),
        table("Kernels used, of 40", rows, "kernels", "method", "data", digits=1),
    ]
    return Summary(lines, tables)


def halves(rows: list[dict], method: str) -> list[Any]:
    """The claim of half the bands on every set, and how often it holds."""
    lines, failed = [], []
    present = [data for data in DATA if select(rows, "nmse", data=data)]
    for data in present:
        holds, text = halved(rows, data, method)
        what = f"{data}: {method} has at most half the bands of MKL and equal NMSE (one standard error)"
        n, why = len(select(rows, "nmse", data=data, method=method)), fails(rows, data)
        lines.append(claim(what, holds, paper="3.0 to 3.1 against 7.0 to 9.2", ours=text, why=why, n=n))
        failed += [] if holds else [data]
    what = f"{method}: half the bands at equal NMSE on at least three of four sets"
    ours = f"{len(present) - len(failed)} of {len(present)}"
    why = f"Not on {' and '.join(failed)}: see their lines."
    return [*lines, claim(what, len(failed) <= 1, paper="three of three", ours=ours, why=why)]


def diesel(rows: list[dict], method: str) -> list[Any]:
    """NMSE beside the paper's, on all samples and without outliers."""
    nmse, width, _ = PAPER[method]
    # the half width of a 95 % interval of 30 splits, as a standard deviation
    deviation = None if width is None else width / 1.96 * np.sqrt(30)
    sets = [data for data in ("swri_diesel", "swri_diesel 373") if select(rows, "nmse", data=data)]
    values = {data: select(rows, "nmse", data=data, method=method) for data in sets}
    return [
        compare(
            f"{data}, {method}, NMSE", found, nmse, deviation, higher=False, digits=3, why=outliers(values)
        )
        for data, found in values.items()
    ]


def outliers(values: dict[str, list[float]]) -> str:
    """What the samples are worth that are predicted worst: the paper leaves outliers out, too."""
    found = [mean(values[data]) for data in ("swri_diesel", "swri_diesel 373") if data in values]
    if len(found) < 2:
        return ""
    worst = "the 8 samples of 381 that are predicted worst when held out"
    return f"With {worst} left out the NMSE is {found[1]:.3f}, not {found[0]:.3f}."


def fails(rows: list[dict], data: str) -> str:
    """Where the claim does not hold: which half of it."""
    found = []
    for method in ("SMKL, half", "SMKL", "MKL"):
        nmse, bands = (mean(select(rows, column, data=data, method=method)) for column in ("nmse", "bands"))
        found.append(f"{method} {nmse:.4f} with {bands:.1f} bands")
    return f"Fewer bands cost accuracy here: {'; '.join(found)}."


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
