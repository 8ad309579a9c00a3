"""New weights between the steps of one machine, against a machine for each weighting: kernels on the fly.

Gaussian kernels of 25 widths, hinge loss, C = 1, to a certified gap of 1e-3: ``solver="interleaved"`` against
the default solver, in turns, where matrices are in memory ("dense"), where rows of distances are kept in a
cache ("cached"), and where nothing is kept ("blocked"). Seconds are processor seconds of one thread, the
least of a few runs; what the engines compute of the kernels is included, matrices in memory are not. "passes"
are the kernel values read or computed, in units of all matrices once. Two data sets: MNIST, odd against even
digits, and simulated ones with few support vectors.

    python benchmarks/bench_interleaved.py [n] [--rounds R] [--p P ...]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.datasets import make_classification
from workloads import data_folder

import kernelweave as kw
from kernelweave.gram import GRAMS, DenseGram, Gram
from kernelweave.gram.blocks import Blocks, normalised
from kernelweave.kernels import RBF
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

N_KERNELS, TOL = 25, 1e-3


def mnist(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1], and odd against even."""
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(0).permutation(len(file["y"]))[:n]
        return file["X"][rows] / 255.0, np.where(file["y"][rows] % 2, 1.0, -1.0)


def simulated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten columns of numbers, classes that are far apart."""
    X, labels = make_classification(
        n, 10, n_informative=8, class_sep=2.0, flip_y=0.01, n_clusters_per_class=2, random_state=0
    )
    return X, np.where(labels, 1.0, -1.0)


def kernels_of(X: np.ndarray) -> tuple[Blocks, np.ndarray]:
    """Widths from a tenth to ten times the usual one, normalised to variance 1."""
    usual = 1.0 / (X.shape[1] * X.var())
    kernels = [RBF(gamma=factor * usual).fit(X) for factor in np.geomspace(0.1, 10.0, N_KERNELS)]
    blocks, rules = normalised(Blocks.of_kernels(kernels, X), "variance", None)
    return blocks, np.array([rule.scale_ for rule in rules])


def engine(name: str, blocks: Blocks, scales: np.ndarray) -> Gram:
    """The kernels in an engine that has computed nothing yet, or all of them."""
    if name != "dense":
        return GRAMS[name](blocks, scales)
    every = slice(0, blocks.n_samples)
    return DenseGram([K for _, K in blocks.each(every, every)], scales)


def measured(solver: str, gram: Gram, y: np.ndarray, p: float) -> dict[str, float]:
    """A fit from nothing."""
    problem, rule = Problem(y[:, None], Hinge(), np.ones((len(y), 1))), kw.LpNorm(p)
    start = time.process_time()
    found = choose_solver(solver, rule).solve(problem, gram, rule, TOL)
    seconds = time.process_time() - start
    assert found.converged
    support = np.count_nonzero(found.state.alpha)
    return {"seconds": seconds, "passes": gram.n_passes, "support": support}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="?", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--p", nargs="*", type=float, default=[1.0, 2.0])
    parser.add_argument("--engines", nargs="*", default=["dense", "cached", "blocked"])
    options = parser.parse_args()
    data = {"simulated": simulated}
    if (data_folder() / "mnist.npz").exists():
        data["MNIST"] = mnist
    else:
        print("MNIST is left out: mnist.npz not found")
    print(f"n = {options.n}, {N_KERNELS} kernels: seconds (passes)")
    print("data       support engine      p          default       interleaved   ratio")
    for name, draw in data.items():
        X, y = draw(options.n)
        blocks, scales = kernels_of(X)
        some, few = kernels_of(X[:300])
        for kind in options.engines:
            kept = engine(kind, blocks, scales) if kind == "dense" else None
            for p in options.p:
                for solver in ("auto", "interleaved"):
                    measured(solver, engine(kind, some, few), y[:300], p)  # compiled
                best: dict[str, dict[str, float]] = {}
                for _ in range(options.rounds):
                    for solver in ("auto", "interleaved"):
                        gram = (
                            engine(kind, blocks, scales) if kept is None else DenseGram(kept.matrices, scales)
                        )
                        found = measured(solver, gram, y, p)
                        best[solver] = min(found, best.get(solver, found), key=lambda one: one["seconds"])
                ours, other = best["auto"], best["interleaved"]
                cells = [f"{one['seconds']:7.2f} s ({one['passes']:5.2f})" for one in (ours, other)]
                line = f"{name:10s} {ours['support']:7d} {kind:8s} {p:5.3g}  {cells[0]}  {cells[1]}"
                print(f"{line}   {other['seconds'] / ours['seconds']:5.2f}", flush=True)


if __name__ == "__main__":
    main()
