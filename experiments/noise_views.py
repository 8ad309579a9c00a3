"""Views of pure noise beside the real ones: what learning the weights is for.

mfeat, protein fold and rosmap (all its samples, those held out by its authors included) with 0, 5, 20 and 100
further views of standard normal numbers, each with as many columns as the median view of the set, at most 30.
At most 300 training samples and 600 test samples, drawn again for every split; the noise of a split is the
same for all methods, and fewer views of it are the first of more.

Kernels, methods and choice of settings are those of the experiment `alternatives`: columns standardised by
the training samples, a linear and three Gaussian kernels per view, every setting by three-fold
cross-validation on the training samples. The uniform sum, p = 2 and p = 1 choose C; GOMP its ridge and the
number of kernels; the SVM, on all columns, C and its width. `MKLAuto` gets the data as they are and no
argument.

What is judged was fixed beforehand: with 20 views of noise, `MKLAuto` loses at most 1.5 points against itself
without any, on each set and on the mean of the three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from alternatives import KERNELS, TEST, TRAIN, ours, rivals, version
from reproduce import (
    OWN,
    Experiment,
    Line,
    Mode,
    Summary,
    by,
    mean,
    select,
    standard_error,
    table,
    threshold,
    with_error,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import datasets

SETS = {"mfeat": "mfeat", "protein fold": "proteinfold_kpca27", "rosmap": "rosmap_mogonet"}
COUNTS = (0, 5, 20, 100)

#: columns of a view of noise, at most
WIDEST = 30

#: what MKLAuto may lose, in points, and with how many views of noise
BOUND, JUDGED = 1.5, 20

#: the first split; those before are for trials
FIRST = 100


#: methods on standardised views
OURS: dict[str, Callable[[], Any]] = {
    "GOMP": ours(True)["GOMP"],
    "p = 1": lambda: kw.MKLClassifierCV(KERNELS, regularizers=kw.LpNorm(1.0), cv=3, tol=1e-2),
    "p = 2": lambda: kw.MKLClassifierCV(KERNELS, regularizers=kw.LpNorm(2.0), cv=3, tol=1e-2),
    "uniform sum": ours(True)["uniform sum"],
}
#: methods on the standardised columns of all views side by side
JOINED = {name: rivals(True, [1])[name] for name in ("random forest", "SVM")}
METHODS = ("MKLAuto", *OURS, *JOINED)


def cells(mode: Mode) -> list[dict]:
    """Data sets, views of noise, methods and splits."""
    sets = mode.pick(quick=["rosmap"], full=list(SETS))
    counts = mode.pick(quick=[0, 5], full=list(COUNTS))
    methods = mode.pick(quick=["uniform sum", "p = 1", "MKLAuto"], full=list(METHODS))
    splits = range(FIRST, FIRST + mode.count(quick=1, full=5))
    return [
        {"data": name, "noise": count, "method": method, "split": split, **version(method, True)}
        for split in splits
        for name in sets
        for count in counts
        for method in methods
    ]


def load(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Views by name, and classes; of all samples, where some are kept apart."""
    arrays = datasets.load_arrays(name)
    parts = [part for part in ("", "_test") if f"y{part}" in arrays]
    views = {
        str(v): np.concatenate([arrays[f"X{part}_{v}"].astype(float) for part in parts])
        for v in arrays["view_names"]
    }
    return views, np.concatenate([arrays[f"y{part}"] for part in parts])


def with_noise(views: dict[str, np.ndarray], count: int, split: int) -> dict[str, np.ndarray]:
    """The views, and `count` more of standard normal numbers."""
    width = min(WIDEST, int(np.median([X.shape[1] for X in views.values()])))
    n = len(next(iter(views.values())))
    rng = np.random.default_rng(split)
    return {**views, **{f"noise {k + 1}": rng.standard_normal((n, width)) for k in range(count)}}


def run(data: str, noise: int, method: str, split: int, rule: int = 0) -> list[dict]:
    """Test accuracy of one method in %."""
    views, y = load(SETS[data])
    views, size = with_noise(views, noise, split), min(TRAIN, int(0.7 * len(y)))
    train, test = train_test_split(np.arange(len(y)), train_size=size, stratify=y, random_state=split)
    test = test[:TEST]
    scaled = {name: StandardScaler().fit(X[train]).transform(X) for name, X in views.items()}
    if method in JOINED:
        model, X = JOINED[method](), np.hstack(list(scaled.values()))
    elif method in OURS:
        model, X = OURS[method](), kw.Views(scaled)
    else:
        model, X = kw.MKLAutoClassifier(), kw.Views(views)
    model.fit(X[train], y[train])
    chosen = model.cv_results_["candidate"][model.best_index_] if method == "MKLAuto" else ""
    return [{"accuracy": 100.0 * model.score(X[test], y[test]), "chosen": chosen}]


def averaged(rows: list[dict]) -> list[dict]:
    """Means over the three sets, where a method has been run on all of them with the same split and noise."""
    found = []
    for key in dict.fromkeys((row["noise"], row["method"], row["split"]) for row in rows):
        settings = dict(zip(("noise", "method", "split"), key, strict=True))
        values = select(rows, "accuracy", **settings)
        if len(values) == len(SETS):
            found.append({**settings, "data": "mean of the sets", "accuracy": mean(values)})
    return found


def losses(rows: list[dict], data: str, method: str) -> list[float]:
    """Points that a method loses with as many views of noise as are judged, one per split."""
    clean, noisy = (by(rows, "accuracy", data=data, method=method, noise=count) for count in (0, JUDGED))
    return [clean[split] - noisy[split] for split in clean if split in noisy]


def lines_of(rows: list[dict]) -> list[Line]:
    """What is judged, of the sets that there are."""
    return [
        threshold(
            f"{data}: points MKLAuto loses with {JUDGED} views of noise",
            losses(rows, data, "MKLAuto"),
            BOUND,
            paper=f"at most {BOUND}",
            above=False,
        )
        for data in dict.fromkeys(row["data"] for row in rows)
    ]


def summarise(rows: list[dict]) -> Summary:
    """Verdicts, accuracies, losses and costs."""
    every = [*rows, *averaged(rows)]
    sets, methods = (list(dict.fromkeys(row[name] for row in every)) for name in ("data", "method"))
    lost = [
        {"data": data, "method": method, "points": points}
        for data in sets
        for method in methods
        for points in losses(every, data, method)
    ]
    notes = []
    for data in sets[len(SETS) :]:  # their mean, once it is there
        points = {method: losses(every, data, method) for method in methods}
        listed = ", ".join(f"{method} {with_error(own, 1)}" for method, own in points.items() if own)
        notes.append(f"Points lost with {JUDGED} views of noise, {data}: {listed}.")
    layout = {"down": "method", "across": "noise"}
    return Summary(
        lines=lines_of(every),
        tables=[
            table(f"Points lost with {JUDGED} views of noise", lost, "points", "method", "data"),
            *(table(f"Test accuracy in %, {data}", every, "accuracy", **layout, data=data) for data in sets),
            table("Processor seconds by the number of views of noise", rows, "seconds", **layout, digits=1),
        ],
        notes=notes,
    )


def draw(rows: list[dict]) -> Any:
    """Accuracy by the number of views of noise, a panel for the mean and one per set."""
    import matplotlib.pyplot as plt

    every = [*averaged(rows), *rows]
    sets, methods = (list(dict.fromkeys(row[name] for row in every)) for name in ("data", "method"))
    figure, panels = plt.subplots(1, len(sets), figsize=(1.2 + 2.5 * len(sets), 3.4), squeeze=False)
    for axes, data in zip(panels[0], sets, strict=True):
        for number, method in enumerate(methods):
            found = {c: select(every, "accuracy", data=data, method=method, noise=c) for c in COUNTS}
            places = [place for place, count in enumerate(COUNTS) if found[count]]
            means, errors = ([of(found[COUNTS[p]]) for p in places] for of in (mean, standard_error))
            style = {"color": "black", "linewidth": 2.5} if method == "MKLAuto" else {"color": f"C{number}"}
            axes.errorbar(places, means, errors, marker="o", markersize=3, capsize=2, label=method, **style)
        axes.set(title=data, xlabel="views of noise", xticks=range(len(COUNTS)), xticklabels=COUNTS)
    panels[0, 0].set_ylabel("test accuracy (%)")
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(methods), frameon=False, fontsize=8)
    return figure


EXPERIMENT = Experiment(
    title="views of noise",
    paper=OWN,
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=tuple(SETS.values()),
    version="1",
)
