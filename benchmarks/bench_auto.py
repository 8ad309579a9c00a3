"""What it costs to have no choice to make: MKLAuto against one search over C.

500 samples, five views, a linear and three Gaussian kernels each: 20 kernels. Processor seconds of whole
fits, one thread, the two in turn, the least of several: `MKLClassifierCV` (or `MKLRegressorCV`) with its
defaults, which searches C for p = 2, and `MKLAutoClassifier` (or `MKLAutoRegressor`) with its defaults, where
all candidates compete. Simulated views, of which two have to do with the target; five views of mfeat, digits
below five against the others; soil spectra in five bands.

The promise: at most 10 times.

    python benchmarks/bench_auto.py [N] [--repeats R]
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable

import numpy as np

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import RBF, Linear

KERNELS = [
    Linear(standardize=True),
    *(RBF("median", factor=factor, standardize=True) for factor in (0.1, 1.0, 10.0)),
]
MOST_RATIO, VIEWS = 10.0, 5

Problem = tuple[dict[str, np.ndarray], np.ndarray]


def simulated(n: int) -> Problem:
    """Views of 8 columns; the target is a product of the first two and a sum of the next, with noise."""
    rng = np.random.default_rng(0)
    views = {f"view {k + 1}": rng.normal(size=(n, 8)) for k in range(VIEWS)}
    first, second = views["view 1"], views["view 2"]
    return views, first[:, 0] * first[:, 1] + second.sum(axis=1) / 4.0 + 0.5 * rng.normal(size=n)


def two_classes(n: int) -> Problem:
    """The simulated target, above 0 or not."""
    views, y = simulated(n)
    return views, y > 0.0


def mfeat(n: int) -> Problem:
    """Digits below five or not."""
    arrays = datasets.load_arrays("mfeat")
    rows = np.random.default_rng(0).permutation(len(arrays["y"]))[:n]
    names = arrays["view_names"].tolist()[:VIEWS]
    return {name: arrays[f"X_{name}"][rows].astype(float) for name in names}, arrays["y"][rows] < 5


def soil(n: int) -> Problem:
    """Spectra of soils, and their first property."""
    arrays = datasets.load_arrays("nirsoil")
    known = np.flatnonzero(np.isfinite(arrays["Y"][:, 0]))
    rows = np.random.default_rng(0).permutation(known)[:n]
    parts = np.array_split(arrays["X"][rows].astype(float), VIEWS, axis=1)
    return {f"band {k + 1}": part for k, part in enumerate(parts)}, arrays["Y"][rows, 0].astype(float)


CLASSES: dict[str, Callable[[int], Problem]] = {"simulated classes": two_classes, "mfeat": mfeat}
TARGETS: dict[str, Callable[[int], Problem]] = {"simulated targets": simulated, "soil": soil}


def seconds(model: kw.MKLAutoClassifier | kw.MKLClassifierCV, X: kw.Views, y: np.ndarray) -> float:
    """Processor seconds of a fit."""
    gc.collect()  # what the fit before left
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def compared(name: str, n: int, repeats: int) -> float:
    """Print a line, and return the ratio of the two."""
    classes = name in CLASSES
    views, y = (CLASSES if classes else TARGETS)[name](n)
    X = kw.Views(views)
    search, auto = (
        (kw.MKLClassifierCV, kw.MKLAutoClassifier) if classes else (kw.MKLRegressorCV, kw.MKLAutoRegressor)
    )
    for one in (search, auto):  # compiles
        one(KERNELS, Cs=3, cv=2).fit(X[:60], y[:60])
    turns = [[seconds(one(KERNELS), X, y) for one in (search, auto)] for _ in range(repeats)]
    plain, whole = np.min(turns, axis=0)
    print(f"{name:<18} {len(y):6d}  {plain:8.2f} s  {whole:8.2f} s  {whole / plain:6.1f}", flush=True)
    return float(whole / plain)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("n", nargs="?", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    print("data                    n  one search     MKLAuto   ratio")
    ratios = []
    for name in (*CLASSES, *TARGETS):
        try:
            ratios.append(compared(name, options.n, options.repeats))
        except datasets.DataNotFoundError:
            print(f"{name} is not here: left out")
    return int(any(ratio > MOST_RATIO for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
