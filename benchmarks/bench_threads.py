"""What a second thread is worth: fits on matrices in memory and on the fly, and what memory itself allows.

Matrices in memory: fifty Gaussian kernels on MNIST, odd against even (n = 4,000, C = 1, hinge loss, gap
1e-3), where nearly all time goes into reading them; on the fly (n = 4,000, 50 kernels), where it goes into
exponentials. "memory" is the rate at which one and two threads sum numbers that are in no cache: no fit that
reads each matrix once can gain more from the second thread than that. "numbers" is the same for arithmetic.

    python benchmarks/bench_threads.py [n]
"""

from __future__ import annotations

import sys
import threading
import time

import numba
import numpy as np
from bench_on_the_fly import digits, widths
from threadpoolctl import threadpool_limits
from workloads import data_folder, mnist_odd_even

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.kernels import RBF
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

REPEATS = 3


@numba.njit(nogil=True, fastmath=True)
def total(values, repeats):
    result = 0.0
    for _ in range(repeats):
        for i in range(values.size):
            result += values[i] * values[i]
    return result


def best_time(run) -> float:
    """Shortest of a few runs after one that is not counted."""
    run()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def sums(arrays: list[np.ndarray], repeats: int, n_threads: int) -> float:
    """Seconds to sum two arrays, one after the other or both at once."""

    def run() -> None:
        threads = [threading.Thread(target=total, args=(array, repeats)) for array in arrays]
        for thread in threads:
            thread.start()
            if n_threads == 1:
                thread.join()
        for thread in threads:
            thread.join()

    return best_time(run)


def report(what: str, one: float, two: float) -> None:
    print(f"{what:42s} {one:8.3f} s {two:8.3f} s   {one / two:5.2f}", flush=True)


def precomputed(Ks: np.ndarray, y: np.ndarray, p: float, n_threads: int) -> float:
    problem, regularizer = Problem(y[:, None], Hinge(), np.ones((len(y), 1))), kw.LpNorm(p)

    def run() -> None:
        solution = choose_solver("auto", regularizer).solve(problem, DenseGram(Ks), regularizer)
        assert solution.state.certificate.gap <= 1e-3

    with threadpool_limits(n_threads):
        return best_time(run)


def on_the_fly(n: int, p: float, n_threads: int) -> float:
    X, y = digits(n)
    kernels = [RBF(gamma=gamma) for gamma in widths()]
    model = kw.MKLClassifier(kernels, regularizer=kw.LpNorm(p), gram="blocked")
    with threadpool_limits(n_threads):
        return best_time(lambda: model.fit(X, y))


def main() -> None:
    if not (data_folder() / "mnist.npz").exists():
        print("mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Nothing measured.")
        return
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    print(f"{'':42s} {'one':>8s}   {'two':>8s} threads, ratio")
    small, large = [np.ones(2000)] * 2, [np.ones(50_000_000), np.ones(50_000_000)]
    report("numbers", sums(small, 100_000, 1), sums(small, 100_000, 2))
    report("memory", sums(large, 1, 1), sums(large, 1, 2))
    del large
    for p in (4 / 3, 2):
        report(f"on the fly, p = {p:.3g}", on_the_fly(n, p, 1), on_the_fly(n, p, 2))
    Ks, y = mnist_odd_even(n)
    for p in (1, 4 / 3, 2, 4):
        report(f"matrices in memory, p = {p:.3g}", precomputed(Ks, y, p, 1), precomputed(Ks, y, p, 2))


if __name__ == "__main__":
    main()
