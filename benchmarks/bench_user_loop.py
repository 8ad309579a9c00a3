"""Time to a certified gap of 1e-3 against the loop a user would write today (Figure 7 workload).

Variance-normalised Gaussian kernels on MNIST, odd against even, C = 1, hinge loss, precomputed, one
thread; fifty of them unless --kernels says otherwise, with widths over the same range. "estimator" is
``MKLClassifier("precomputed").fit``, checks of the matrices included (`bench_end_to_end` takes it apart);
"solver" is the optimisation alone, as the loop is.

    python benchmarks/bench_user_loop.py [--kernels M] [n ...]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits
from user_loops import closed_form, cutting_planes
from workloads import data_folder, mnist_odd_even

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

REPEATS = 3


def best_time(run):
    """Shortest of a few runs, and the last result: other work on the machine only adds time."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def compare(Ks: np.ndarray, y: np.ndarray, p: float) -> str:
    n, regularizer = len(y), kw.LpNorm(p)
    problem, stack = Problem(y[:, None], Hinge(), np.ones((n, 1))), kw.KernelStack(list(Ks))

    def solver():
        gram = DenseGram(Ks)
        return gram, choose_solver("auto", regularizer).solve(problem, gram, regularizer)

    def estimator():
        return kw.MKLClassifier("precomputed", regularizer=regularizer, normalize=None).fit(stack, y)

    loop_time, loop = best_time(lambda: cutting_planes(Ks, y, 1.0) if p == 1 else closed_form(Ks, y, 1.0, p))
    solver_time, (gram, solution) = best_time(solver)
    estimator_time, model = best_time(estimator)
    assert model.dual_gap_ <= 1e-3
    assert solution.state.certificate.gap <= 1e-3
    return (
        f"{n:6d} {p:6.3g}  {loop_time:8.3f} ({loop.n_machines:3d})  {solver_time:8.3f} ({solution.n_iter:3d},"
        f" {gram.n_passes:4.1f} passes)  {estimator_time:8.3f}  {loop_time / solver_time:7.2f}"
        f"  {loop_time / estimator_time:9.2f}"
    )


def main() -> None:
    if not (data_folder() / "mnist.npz").exists():
        print("mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Nothing measured.")
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[1000, 2000])
    parser.add_argument("--kernels", type=int, default=50)
    arguments = parser.parse_args()
    warm_up, labels = mnist_odd_even(700, 9)
    for p in (1, 2):
        compare(warm_up, labels, p)
    print("seconds (machines); ratios are loop / ours")
    print(
        "     n      p    user's loop              ours (solver)        estimator  ratio    ratio(estimator)"
    )
    for n in arguments.sizes:
        Ks, y = mnist_odd_even(n, arguments.kernels, ratio=1.2 ** (49.0 / (arguments.kernels - 1)))
        for p in (1, 4 / 3, 2, 4):
            print(compare(Ks, y, p), flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
