"""Cost of a greedy path (MKL-GOMP) in units of the factorizations it must do, and with thin kernels.

Two promises:

* 25 of 69 full-rank kernels, n = 1444, 5 outputs (the shape of the PSORT- protein data): the whole path,
  from Gram matrices to the last model, costs at most 3 times the 69 factorizations of K_m + lambda l I
  that scoring needs, each kept. The same time in units of the bare Cholesky routine, run in memory that
  is there already and thrown away, is printed too; so is that of 69 eigendecompositions, the other way
  to factor once.
* 25 of 1,000 linear kernels on 5 columns each, n = 5,000: under a minute on two cores.

Times are the best of a few runs in one process, taken in turn, with one BLAS thread and with two.

    python benchmarks/bench_gomp.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, lapack
from threadpoolctl import threadpool_limits

import kernelweave as kw
from kernelweave.gram import KernelStack, StackSource
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import Squared
from kernelweave.solvers.greedy import FactorDictionary, GreedyTask, GroupOMP

PROMISE, MINUTE, REPEATS = 3.0, 60.0, 3
ALPHA = 1e-3


def timed(run: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def proteins(n: int = 1444, n_kernels: int = 69, n_outputs: int = 5) -> tuple[list[np.ndarray], np.ndarray]:
    """Full-rank Gaussian kernels on 5 columns each, and outputs that depend on a few of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5 * n_kernels))
    Y = np.sin(X[:, ::23]) @ rng.normal(size=(15, n_outputs)) + rng.normal(size=(n, n_outputs))
    return [RBF(gamma=0.2, columns=slice(5 * m, 5 * m + 5))(X) for m in range(n_kernels)], Y


def bare_cholesky(Ks: list[np.ndarray], shift: float) -> float:
    """Time of the routine alone."""
    n, total = len(Ks[0]), 0.0
    A = np.empty((n, n), order="F")
    for K in Ks:
        A[:] = K
        A.flat[:: n + 1] += shift
        start = time.perf_counter()
        lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
        total += time.perf_counter() - start
    return total


def full_rank(threads: int) -> float:
    """Print the times of the first promise, and return the ratio."""
    Ks, Y = proteins()
    task = GreedyTask(Y, np.ones(len(Y)), Squared(), ALPHA)
    diagonal = task.shift * np.eye(len(Y))

    def factors() -> object:
        return [cho_factor(K + diagonal, lower=True, check_finite=False) for K in Ks]

    def path() -> object:
        source = StackSource(KernelStack(Ks))
        dictionary = FactorDictionary(source, "variance", task.weight, True, task.shift)
        return GroupOMP(n_kernels=25, tol=0.0).solve(dictionary, task)

    with threadpool_limits(threads, user_api="blas"):
        path()  # compiles what is not compiled yet
        turns = [(bare_cholesky(Ks, task.shift), timed(factors), timed(path)) for _ in range(REPEATS)]
        eigen = len(Ks) * timed(lambda: np.linalg.eigh(Ks[0]))
    bare, kept, whole = np.min(turns, axis=0)
    print(f"{threads} BLAS thread(s), n = {len(Y)}, {len(Ks)} full-rank kernels, {Y.shape[1]} outputs:")
    print(f"  69 factorizations, kept   {kept:6.2f} s   (bare Cholesky {bare:.2f} s, eigh {eigen:.0f} s)")
    print(f"  path of 25 kernels        {whole:6.2f} s")
    print(f"  ratio {whole / kept:.2f} (promise: {PROMISE:g}); to bare Cholesky {whole / bare:.2f}")
    return float(whole / kept)


def thin(threads: int) -> float:
    """Print the times of the second promise, and return the longest fit."""
    n, n_kernels, seconds = 5000, 1000, 0.0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5 * n_kernels))
    y = X[:, ::97] @ rng.normal(size=52) + rng.normal(size=n)
    kernels = [Linear(columns=slice(5 * m, 5 * m + 5)) for m in range(n_kernels)]
    print(f"{threads} BLAS thread(s), n = {n}, {n_kernels} linear kernels on 5 columns:")
    with threadpool_limits(threads, user_api="blas"):
        for count in (25, 100):
            model = kw.GroupOMPRegressor(kernels, n_kernels=count, tol=0.0, alpha=ALPHA)
            seconds = timed(lambda model=model: model.fit(X, y))
            print(f"  path of {count:3d} kernels       {seconds:6.2f} s   (promise: {MINUTE:g} s)")
    return seconds


def main() -> int:
    """Check both promises with one thread and with two; return 1 if one is broken."""
    ratios = [full_rank(threads) for threads in (1, 2)]
    times = [thin(threads) for threads in (1, 2)]
    return int(max(ratios) > PROMISE or times[-1] > MINUTE)


if __name__ == "__main__":
    sys.exit(main())
