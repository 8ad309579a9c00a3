"""Figure 7 of Kloft et al. (2011): time against the number of samples and of kernels.

MNIST, odd against even digits, Gaussian kernels, C = 1, hinge loss, to a relative duality gap of 1e-3.
Against n with 50 kernels, 2 sigma^2 = 1.2^0 .. 1.2^49, and against M with 1,000 samples and M widths spread
evenly over the same range: the paper's own, up to 1.2^(M-1), are constant to rounding from M = 150 on, and
scaling them to variance 1 leaves nothing but noise. Matrices are computed beforehand (and their time is left
out) or on the fly (their time is included, and they are never kept; the interleaved solver has a cache of 100
MB for rows, as SVMlight has, and of 160 MB at 4,000 samples, where the weighted sum takes 128). Compared are
the solvers of kernelweave ("silp" are cutting planes around whole fits: the SILP wrapper for p = 1, the SIP
for p > 1), the loop a user would write around scikit-learn's SVC (closed form for p > 1, cutting planes for
p = 1), SVC on the plain sum, and MKLpy where it is installed. The conic program ("qcqp") is left out: it
takes over 5 seconds at 150 samples and 20 kernels, which no other method does. Seconds are processor seconds
of one thread.

What the paper says of its interleaved algorithm is judged on the solver "interleaved", not on the default
("auto"). The paper continues to n = 20,000; its SimpleMKL and HessianMKL are not included.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    alike,
    all_above,
    by,
    mean,
    ordering,
    select,
    table,
    untestable,
)

import kernelweave as kw
from kernelweave import datasets
from kernelweave.gram import DenseGram
from kernelweave.kernels import RBF
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

NORMS = {"p=1": 1.0, "p=4/3": 4 / 3, "p=2": 2.0}
SUM = "SVC on the plain sum"
#: the algorithm of the paper
OURS = "kernelweave interleaved"
#: axis -> (n, M) of its points; 4,000 samples take 7 GB
FULL = {"n": [(n, 50) for n in (250, 500, 1000, 2000, 4000)], "M": [(1000, M) for M in (25, 50, 100, 200)]}
QUICK = {"n": [(n, 20) for n in (150, 300, 600)], "M": [(200, M) for M in (10, 20, 40)]}
INTERLEAVED = "interleaved on the fly"
#: bytes for rows, and those beside a weighted sum that needs more
SMALL_MEMORY, WORK = 100_000_000, 32_000_000
TOL = 1e-3


def methods() -> list[str]:
    """What is timed: solver and norm, where the matrices are."""
    ours = [f"kernelweave {solver}, {norm}" for solver in ("auto", "interleaved", "silp") for norm in NORMS]
    ours += ["kernelweave alternating, p=4/3", "kernelweave alternating, p=2"]
    ours += [f"kernelweave {how}, {norm}" for how in ("on the fly", INTERLEAVED) for norm in ("p=1", "p=2")]
    loops = ["user loop cutting planes, p=1", "user loop closed form, p=4/3", "user loop closed form, p=2"]
    rivals = ["MKLpy EasyMKL"] if importlib.util.find_spec("MKLpy") else []
    return [*ours, *loops, SUM, *rivals]


def cells(mode: Mode) -> list[dict[str, Any]]:
    """Every method at every size."""
    sizes = mode.pick(quick=QUICK, full=FULL)
    points = list(dict.fromkeys(point for axis in sizes.values() for point in axis))
    count = mode.count(quick=1, full=5)
    found = [(n, M, m, s) for s in range(count) for n, M in points for m in methods()]
    return [dict(zip(("n", "M", "method", "seed"), values, strict=True)) for values in found]


def run(n: int, M: int, method: str, seed: int) -> dict[str, Any]:
    """Seconds of a fit, after one on a few samples that compiles what has to be compiled."""
    X, y = digits(n, seed)
    fit(method, X[:80], y[:80], widths(min(M, 3)), matrices)()
    prepared = fit(method, X, y, widths(M), lambda *_: held(n, M, seed))
    start = time.process_time()
    found = prepared()
    return {"fit_seconds": time.process_time() - start, **found}


@lru_cache(maxsize=1)
def pictures() -> tuple[np.ndarray, np.ndarray]:
    """All of MNIST, read once."""
    data = datasets.load("mnist")
    return data.X, data.y


def digits(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1], and odd against even."""
    X, y = pictures()
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return X[rows] / 255.0, np.where(y[rows] % 2, 1.0, -1.0)


def widths(M: int) -> np.ndarray:
    """1 / (2 sigma^2) of M kernels."""
    return 1.2 ** -np.linspace(0.0, 49.0, M)


def fit(
    method: str, X: np.ndarray, y: np.ndarray, gammas: np.ndarray, matrices_of: Callable[..., np.ndarray]
) -> Callable[[], dict[str, Any]]:
    """What is to be timed; returns the gap reached and, for our solvers, how many kernels have weight."""
    p = NORMS.get(method.rpartition(", ")[2], np.inf)
    if "on the fly" in method:
        return partial(on_the_fly, X, y, gammas, p, "interleaved" if INTERLEAVED in method else "auto")
    Ks = matrices_of(X, gammas)
    if method.startswith("kernelweave"):
        return partial(precomputed, Ks, y, p, method.split()[1].rstrip(","))
    return partial(_others()[method.rpartition(", ")[0] or method], Ks, y, p)


@lru_cache(maxsize=1)
def held(n: int, M: int, seed: int) -> np.ndarray:
    """The matrices of one size and draw, for all methods on it."""
    return matrices(digits(n, seed)[0], widths(M))


def matrices(X: np.ndarray, gammas: np.ndarray) -> np.ndarray:
    """Matrices of variance 1."""
    from sklearn.metrics.pairwise import euclidean_distances

    distances = euclidean_distances(X, squared=True)
    Ks = np.empty((len(gammas), len(X), len(X)))
    for K, gamma in zip(Ks, gammas, strict=True):
        np.exp(-gamma * distances, out=K)
        K /= K.diagonal().mean() - K.mean()
    return Ks


def precomputed(Ks: np.ndarray, y: np.ndarray, p: float, solver: str) -> dict[str, Any]:
    """A solver of ours on matrices in memory."""
    problem, regularizer = Problem(y[:, None], Hinge(), np.ones((len(y), 1))), kw.LpNorm(p)
    state = choose_solver(solver, regularizer).solve(problem, DenseGram(Ks), regularizer, TOL).state
    return {"gap": float(state.certificate.gap), "kernels": int((state.weights > 0).sum())}


def on_the_fly(X: np.ndarray, y: np.ndarray, gammas: np.ndarray, p: float, solver: str) -> dict[str, Any]:
    """Engines that keep no matrix: one that computes blocks when they are asked for, one that caches rows."""
    model = kw.MKLClassifier([RBF(gamma=gamma) for gamma in gammas], regularizer=kw.LpNorm(p), tol=TOL)
    gram = "cached" if solver == "interleaved" else "blocked"
    limit = max(SMALL_MEMORY, 8 * len(X) ** 2 + WORK)
    model.set_params(solver=solver, gram=gram, memory_limit=limit).fit(X, y)
    return {"gap": float(model.dual_gap_), "kernels": int((model.weights_ > 0).sum())}


def _others() -> dict[str, Callable[..., dict[str, Any]]]:
    return {
        "user loop closed form": closed_form,
        "user loop cutting planes": cutting_planes,
        SUM: plain_sum,
        "MKLpy EasyMKL": easy_mkl,
    }


def closed_form(Ks: np.ndarray, y: np.ndarray, p: float) -> dict[str, Any]:
    """SVC and weights in turns."""
    from user_loops import closed_form as loop

    return {"gap": float(loop(Ks, y, 1.0, p, TOL).gap)}


def cutting_planes(Ks: np.ndarray, y: np.ndarray, p: float) -> dict[str, Any]:
    """SVC and a linear program in turns."""
    from user_loops import cutting_planes as loop

    return {"gap": float(loop(Ks, y, 1.0, TOL).gap)}


def plain_sum(Ks: np.ndarray, y: np.ndarray, p: float) -> dict[str, Any]:
    """One single-kernel fit, no weights to learn."""
    from sklearn.svm import SVC

    SVC(kernel="precomputed", C=1.0, tol=1e-3).fit(Ks.sum(axis=0), y)
    return {"gap": 0.0}


def easy_mkl(Ks: np.ndarray, y: np.ndarray, p: float) -> dict[str, Any]:
    """Another problem: its gap is not that of lp-norm MKL."""
    import torch
    from MKLpy.algorithms import EasyMKL

    torch.set_num_threads(1)
    EasyMKL(lam=0.1).combine_kernels([torch.from_numpy(K) for K in Ks], torch.from_numpy(y))
    return {"gap": 0.0}


def summarise(rows: list[dict[str, Any]]) -> Summary:
    """Order of the methods and exponents; what the paper says of its algorithm, judged on that algorithm."""
    axes = axes_of(rows)
    panels = {axis: on_axis(rows, axes, axis) for axis in axes}
    lines = [*fastest(panels["n"]), *wrappers(panels), *slopes(panels)]
    lines += [constant_sum(panels["M"]), *many_kernels(panels["M"])]
    tables = [
        table(f"Seconds against {axis}", panel, "fit_seconds", "method", axis, 3)
        for axis, panel in panels.items()
    ]
    wide = [row["gap"] for row in rows if row["gap"] > 1.01 * TOL]
    count = len({row["seed"] for row in rows})
    notes = [
        f"{count} repetition{'s' if count > 1 else ''} (the paper: 5); processor seconds. {len(wide)} of "
        f"{len(rows)} fits ended above a gap of {TOL:g}"
        + (f", the worst at {max(wide):.1e}." if wide else ".")
    ]
    return Summary(lines, tables, [*notes, default(panels)])


def axes_of(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Axis -> the value the other size has along it: the one with most points."""
    points = {(row["n"], row["M"]) for row in rows}
    count_m = {M: sum(m == M for _, m in points) for _, M in points}
    count_n = {n: sum(k == n for k, _ in points) for n, _ in points}
    return {"n": max(count_m, key=lambda M: count_m[M]), "M": max(count_n, key=lambda n: count_n[n])}


def on_axis(rows: list[dict[str, Any]], axes: dict[str, int], axis: str) -> list[dict[str, Any]]:
    """Rows of one panel, in the order of its sizes."""
    other = {"n": "M", "M": "n"}[axis]
    return sorted((row for row in rows if row[other] == axes[axis]), key=lambda row: row[axis])


def curve(rows: list[dict[str, Any]], axis: str, method: str) -> tuple[list[int], list[float]]:
    """Sizes and mean seconds of one method."""
    sizes = list(dict.fromkeys(row[axis] for row in rows))
    return sizes, [mean(select(rows, "fit_seconds", method=method, **{axis: size})) for size in sizes]


def seconds(panel: list[dict[str, Any]], axis: str, start: str) -> dict[str, Any]:
    """Seconds by seed at the largest size, of the methods whose names start that way."""
    last = panel[-1][axis]
    names = dict.fromkeys(row["method"] for row in panel if row["method"].startswith(start))
    return {m: by(panel, "fit_seconds", "seed", method=m, **{axis: last}) for m in names}


WRAPPERS = "user loop"


def fastest(panel: list[dict[str, Any]]) -> list[Line]:
    """The plain sum against everything with precomputed matrices, at the largest n."""
    where, plain = f"n = {panel[-1]['n']}", seconds(panel, "n", SUM)
    theirs = {**seconds(panel, "n", OURS), **seconds(panel, "n", WRAPPERS)}
    options: dict[str, Any] = {"paper": "yes", "higher": False, "digits": 3, "unit": " s"}
    what = f"{where}: the support vector machine on the plain sum is the fastest"
    return [
        all_above(f"{what}, of the paper's algorithms", plain, precomputed_only(theirs), **options),
        all_above(
            f"{what}, with the other solvers of kernelweave",
            plain,
            precomputed_only(seconds(panel, "n", "kernelweave")),
            **options,
        ),
    ]


def precomputed_only(found: dict[str, Any]) -> dict[str, Any]:
    """Methods that have the matrices in memory."""
    return {method: values for method, values in found.items() if "on the fly" not in method}


def wrappers(panels: dict[str, list[dict[str, Any]]]) -> list[Line]:
    """Wrappers against the interleaved algorithm, norm by norm, and against kernels computed on the fly."""
    found = []
    for axis, panel in panels.items():
        where = f"{axis} = {panel[-1][axis]}"
        loops, every = seconds(panel, axis, WRAPPERS), seconds(panel, axis, "kernelweave")
        for loop, slow in loops.items():
            norm = loop.rpartition(", ")[2]
            what = f"{where}: the wrapper ({loop.removeprefix('user loop ')}) is slower than interleaved"
            fast = every.get(f"{OURS}, {norm}", {})
            found.append(ordering(what, fast, slow, paper="the slowest", higher=False, digits=3, unit=" s"))
        if axis == "n":
            fly = {m: values for m, values in every.items() if INTERLEAVED in m}
            found += [
                ordering(
                    f"{where}: interleaved on the fly takes longer than with matrices kept, {norm}",
                    every.get(f"{OURS}, {norm}", {}),
                    every.get(f"kernelweave {INTERLEAVED}, {norm}", {}),
                    paper="naturally",
                    higher=False,
                    digits=3,
                    unit=" s",
                )
                for norm in ("p=1", "p=2")
            ]
            what = f"{where}: wrappers are slower than interleaved with kernels computed on the fly"
            found.append(all_above(what, fly, loops, paper="yes", higher=False, digits=3, unit=" s"))
    return found


def exponents(panel: list[dict[str, Any]], axis: str, method: str) -> dict[Any, float]:
    """Slope of log seconds against the log of the size, by seed."""
    points = by(panel, "fit_seconds", (axis, "seed"), method=method)
    sizes = sorted({size for size, _ in points})
    seeds = [seed for seed in dict.fromkeys(s for _, s in points) if all((n, seed) in points for n in sizes)]
    if len(sizes) < 2:
        return {}
    return {s: float(np.polyfit(np.log(sizes), np.log([points[n, s] for n in sizes]), 1)[0]) for s in seeds}


def slopes(panels: dict[str, list[dict[str, Any]]]) -> list[Line]:
    """Exponents of time of the interleaved algorithm: p > 1 as p = 1."""
    return [
        alike(
            f"interleaved, {norm}: time grows with {axis} as for p=1 (exponent)",
            exponents(panel, axis, f"{OURS}, {norm}"),
            exponents(panel, axis, f"{OURS}, p=1"),
            paper="scales similarly",
            higher=False,
            why=few_kernels(panel, axis),
        )
        for axis, panel in panels.items()
        for norm in ("p=4/3", "p=2")
    ]


def constant_sum(panel: list[dict[str, Any]]) -> Line:
    """The plain sum and the number of kernels."""
    found = exponents(panel, "M", SUM)
    what = "the plain sum takes the same time for any number of kernels (exponent)"
    why = "the matrices are added within the time"
    return alike(what, found, dict.fromkeys(found, 0.0), paper="essentially constant", higher=False, why=why)


def many_kernels(panel: list[dict[str, Any]]) -> list[Line]:
    """At the largest M, p = 1 against the other norms, interleaved."""
    found = precomputed_only(seconds(panel, "M", OURS))
    sparse = {name: values for name, values in found.items() if name.endswith("p=1")}
    others = {name: values for name, values in found.items() if name not in sparse}
    what = f"M = {panel[-1]['M']}: p = 1 copes best with many kernels (interleaved)"
    options: dict[str, Any] = {"higher": False, "digits": 3, "unit": " s"}
    closed = "p = 1 in closed form is slower than p > 1"
    return [
        all_above(what, sparse, others, paper="yes, others slightly slower", **options),
        untestable(closed, "yes", "the closed form ends with Newton steps here, where weights become zero"),
    ]


def few_kernels(panel: list[dict[str, Any]], axis: str) -> str:
    """How many kernels p = 1 works with."""
    some = [row for row in panel if row["method"] == f"{OURS}, p=1"]
    counts = {size: mean(select(some, "kernels", **{axis: size})) for size in {row[axis] for row in some}}
    text = ", ".join(f"{count:.1f} at {axis} = {size}" for size, count in sorted(counts.items()))
    return f"p = 1 ends with few kernels ({text}) and sums no others" if counts else ""


def default(panels: dict[str, list[dict[str, Any]]]) -> str:
    """The solver that is taken by default, beside the interleaved one."""
    parts = []
    for axis, panel in panels.items():
        for norm in NORMS:
            ours, auto = (curve(panel, axis, f"{m}, {norm}")[1][-1] for m in (OURS, "kernelweave auto"))
            parts.append(f"{ours / auto:.1f} times at {axis} = {panel[-1][axis]}, {norm}")
    return f"Mean seconds of the interleaved solver against those of the default one: {'; '.join(parts)}."


def draw(rows: list[dict[str, Any]]) -> Any:
    """Two panels, log-log; loops dashed, on the fly dotted."""
    import matplotlib.pyplot as plt

    axes = axes_of(rows)
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharey=True)
    for ax, axis in zip(panels, axes, strict=True):
        panel = on_axis(rows, axes, axis)
        for method in dict.fromkeys(row["method"] for row in panel):
            style = "--" if "loop" in method else ":" if "fly" in method else "-"
            ax.loglog(*curve(panel, axis, method), marker="o", markersize=3, linestyle=style, label=method)
        sizes = list(dict.fromkeys(row[axis] for row in panel))
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        fixed = f"{axes[axis]} {'kernels' if axis == 'n' else 'samples'}"
        ax.set(xlabel={"n": "samples", "M": "kernels"}[axis], title=fixed)
    panels[0].set_ylabel("seconds")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right", fontsize="x-small")
    return figure


EXPERIMENT = Experiment(
    title="time against samples and kernels",
    paper="Kloft, Brefeld, Sonnenburg & Zien (2011), JMLR 12, Figure 7",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
    data=("mnist",),
    version="2",
)
