"""Growth of the time of SMKL fits with kernels K and samples n, beside the exponents of its paper.

Subrahmanya & Shin (2010), section 4, report times proportional to K^1.0 and n^1.6 for the log and group lasso
terms, beside K^1.1 and n^1.4 of an SMO-like algorithm for MKL. Here as there: Gaussian kernels on random
subsets of the features with different widths, traces of all kernels equal, hinge loss, stationarity to 1e-3;
C = 1. Against K: Ionosphere and Breast Cancer (Wisconsin, diagnostic). Against n: nested subsets of Spambase
and of simulated data, in place of the paper's Adult data, with 12 kernels. Processor seconds of the
optimisation alone, matrices in memory, one thread, best of 2 runs; exponents by least squares in the
logarithms, and their mean over the data sets.

A kernel whose weight has fallen below 1e-6 of the largest is left out from then on, so that most machines see
only a few of the K kernels, and K matters less than in the paper.

The promise: mean exponents no larger than those of the paper, which were measured with other code on other
hardware.

    python benchmarks/bench_smkl.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits
from workloads import data_folder

from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.regularizers import SMKL
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

REPEATS = 2
#: largest mean exponents, those of the paper
PROMISES = {"K": 1.0, "n": 1.6}
KERNELS, SAMPLES, FIXED = (6, 12, 24, 48, 96, 192, 384), (200, 400, 800, 1600), 12

Data = tuple[np.ndarray, np.ndarray]


def stored(name: str) -> Data:
    """A data set of the data folder."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as file:
        return file["X"].astype(np.float64), file["y"].astype(np.float64)


def breast_cancer() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.where(y, 1.0, -1.0)


def simulated() -> Data:
    """40 features, 8 of which matter and 4 more follow them; 5 % of the labels flipped."""
    options: dict[str, Any] = {"n_informative": 8, "n_redundant": 4, "flip_y": 0.05, "random_state": 0}
    X, y = make_classification(1600, 40, **options)
    return X, np.where(y, 1.0, -1.0)


#: what is varied on which data
SETS: dict[str, dict[str, Callable[[], Data]]] = {
    "K": {"ionosphere": lambda: stored("ionosphere"), "breast cancer": breast_cancer},
    "n": {"spambase": lambda: stored("spambase"), "simulated": simulated},
}


def matrices(X: np.ndarray, n_kernels: int) -> np.ndarray:
    """Gaussian kernels on random subsets of the columns, of widths that vary by a factor of ten."""
    X, rng = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), np.random.default_rng(0)
    Ks = np.empty((n_kernels, len(X), len(X)))
    for K in Ks:
        columns = rng.choice(X.shape[1], size=rng.integers(1, X.shape[1] // 2), replace=False)
        gamma = 10.0 ** rng.uniform(-1.0, 1.0) / len(columns)
        np.exp(-gamma * euclidean_distances(X[:, columns], squared=True), out=K)
    return Ks


def measure(X: np.ndarray, y: np.ndarray, n_kernels: int, repeats: int = REPEATS) -> dict[str, Any]:
    """Best time of a few fits, and what the fit was."""
    problem, gram = Problem(y[:, None], Hinge(), np.ones((len(y), 1))), DenseGram(matrices(X, n_kernels))
    times = []
    for _ in range(repeats):
        start = time.process_time()
        found = choose_solver("auto", SMKL()).solve(problem, gram, SMKL(), tol=1e-3)
        times.append(time.process_time() - start)
    state = found.state
    return {
        "seconds": min(times),
        "machines": found.n_iter,
        "selected": int(np.count_nonzero(state.weights)),
        "residual": float(state.residual),
    }


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(along: str, name: str, X: np.ndarray, y: np.ndarray) -> float:
    """Measure one data set, print the times, and return the exponent."""
    order = np.random.default_rng(0).permutation(len(y))
    sizes = [(len(y), K) for K in KERNELS] if along == "K" else [(n, FIXED) for n in SAMPLES]
    points = []
    for n, n_kernels in sizes:
        point = measure(X[order[:n]], y[order[:n]], n_kernels)
        points.append(point)
        print(
            f"{name:14s} {n:5d} {n_kernels:4d}   {point['seconds']:8.3f}   {point['machines']:4d}"
            f"   {point['selected']:4d}    {point['residual']:.1e}",
            flush=True,
        )
    varied = [n_kernels if along == "K" else n for n, n_kernels in sizes]
    return exponent(varied, [point["seconds"] for point in points])


def main() -> int:
    """Measure both exponents; return 1 if one is larger than promised."""
    measure(*(part[:60] for part in breast_cancer()), 5, repeats=1)  # compiles
    print("data               n    K    seconds   machines  kernels  residual")
    found: dict[str, dict[str, float]] = {"K": {}, "n": {}}
    for along, sets in SETS.items():
        for name, load in sets.items():
            try:
                X, y = load()
            except FileNotFoundError:
                print(f"{name} is left out: it is not in the data folder")
                continue
            found[along][name] = growth(along, name, X, y)
    kept = True
    for along, exponents in found.items():
        mean = float(np.mean(list(exponents.values())))
        kept &= mean <= PROMISES[along]
        each = ", ".join(f"{name} {value:.2f}" for name, value in exponents.items())
        print(f"seconds proportional to {along}^{mean:.2f} (paper: {along}^{PROMISES[along]:.1f}): {each}")
    return int(not kept)


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
