"""Two checkouts against each other: what a change costs or saves in whole fits, in turns.

Every case is fitted by both checkouts one after the other, in a process of its own, several times over; the
least seconds of the processor (one thread) and their ratio are shown. Who comes first changes from round to
round, and other work on the machine meets both alike. MNIST is read from KERNELWEAVE_DATA; cases that need
it are left out without it.

    git worktree add /tmp/before COMMIT
    python benchmarks/turns.py /tmp/before [--rounds 3] [--cases NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from workloads import data_folder

HERE = Path(__file__).resolve().parents[1]

#: a fit of a small problem, which compiles, and of the one that is measured
Fits = tuple[Callable[[], object], Callable[[], object]]


def user_loop(n: int, p: float, n_kernels: int = 50) -> Fits:
    """Gaussian kernels on MNIST, precomputed."""
    from workloads import mnist_odd_even

    import kernelweave as kw

    Ks, y = mnist_odd_even(n, n_kernels)
    model = kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p), normalize=None)
    some = kw.KernelStack(list(Ks[:, :300, :300].copy()))
    stack = kw.KernelStack(list(Ks))
    return lambda: model.fit(some, y[:300]), lambda: model.fit(stack, y)


def on_the_fly(n: int) -> Fits:
    """Fifty Gaussian kernels on MNIST that fit nowhere."""
    from bench_on_the_fly import digits, widths

    import kernelweave as kw
    from kernelweave.kernels import RBF

    X, y = digits(n)
    model = kw.MKLClassifier([RBF(gamma=gamma) for gamma in widths()], memory_limit="2GB")
    small = kw.MKLClassifier(model.kernels, memory_limit="40MB")
    return lambda: small.fit(X[:1000], y[:1000]), lambda: model.fit(X, y)


def many_kernels(n_kernels: int, p: float) -> Fits:
    """Gaussian kernels on random columns."""
    import kernelweave as kw
    from kernelweave.kernels import random_subsets

    X, y = numbers(500, 40)
    models = [
        kw.MKLClassifier(random_subsets(m, random_state=0), regularizer=kw.LpNorm(p))
        for m in (2500, n_kernels)
    ]
    return lambda: models[0].fit(X[:60], y[:60]), lambda: models[1].fit(X, y)


def greedy(n: int, n_kernels: int) -> Fits:
    """Twenty of many Gaussian kernels by orthogonal matching pursuit."""
    import kernelweave as kw
    from kernelweave.kernels import RBF

    X, y = numbers(n, n_kernels)
    model = kw.GroupOMPRegressor([RBF(columns=[m]) for m in range(n_kernels)], n_kernels=20)
    return lambda: model.fit(X[:100], y[:100]), lambda: model.fit(X, y)


def generalized(n: int, n_columns: int) -> Fits:
    """The width of a product of Gaussian kernels in every column."""
    import kernelweave as kw

    X, y = numbers(n, n_columns)
    model = kw.GMKLClassifier()
    return lambda: model.fit(X[:100], y[:100]), lambda: model.fit(X, y)


def path(p: float) -> Fits:
    """Fifty costs."""
    from bench_path import COSTS, simulated

    import kernelweave as kw

    X, y, kernels = simulated(500)
    model = kw.MKLClassifier(kernels, regularizer=kw.LpNorm(p))
    return lambda: kw.mkl_path(model, X[:100], y[:100], values=COSTS[:2]), lambda: kw.mkl_path(
        model, X, y, values=COSTS
    )


def low_rank(n: int) -> Fits:
    """Ten kernels by 100 landmarks each."""
    from bench_low_rank import covertype_like, kernels

    import kernelweave as kw

    X, y = covertype_like(n, 1)
    model = kw.MKLClassifier(kernels(), approximation="nystroem", rank=100, random_state=0)
    return lambda: model.fit(X[:500], y[:500]), lambda: model.fit(X, y)


def bayes(n: int) -> Fits:
    """Evidence of ten Gaussian kernels."""
    import kernelweave as kw
    from kernelweave.kernels import RBF

    X, y = numbers(n, 10)
    model = kw.EmpiricalBayesRegressor([RBF(columns=[m]) for m in range(10)])
    return lambda: model.fit(X[:100], y[:100]), lambda: model.fit(X, y)


def numbers(n: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of which five matter, and a sign."""
    X = np.random.default_rng(0).normal(size=(n, n_columns))
    return X, np.sign(X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + 0.5 * X[:, 4] + 0.1)


CASES: dict[str, Callable[[], Fits]] = {
    "user loop 1000, p = 1": lambda: user_loop(1000, 1.0),
    "user loop 1000, p = 2": lambda: user_loop(1000, 2.0),
    "user loop 4000, p = 4/3": lambda: user_loop(4000, 4 / 3, 25),
    "on the fly 10,000": lambda: on_the_fly(10_000),
    "10,000 kernels, p = 1": lambda: many_kernels(10_000, 1.0),
    "greedy 1000 x 200": lambda: greedy(1000, 200),
    "GMKL 500 x 20": lambda: generalized(500, 20),
    "path of 50, p = 4/3": lambda: path(4 / 3),
    "low rank 100,000": lambda: low_rank(100_000),
    "empirical Bayes 500": lambda: bayes(500),
}


def one(name: str) -> float:
    """Seconds of the processor for a fit, once everything is compiled."""
    first, fit = CASES[name]()
    first()
    start = time.process_time()
    fit()
    return time.process_time() - start


def measured(name: str, checkout: Path) -> float:
    """The same in a process of its own, with the package of a checkout."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found = json.loads(done.stdout)
    assert Path(found["package"]).is_relative_to(checkout), found
    return float(found["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", nargs="?", type=Path, help="another checkout of the repository")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES), metavar="NAME")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        import kernelweave

        with threadpool_limits(1):
            print(json.dumps({"seconds": one(options.one), "package": kernelweave.__file__}))
        return
    if options.before is None:
        parser.error("which other checkout?")
    print(f"{'least seconds of a fit':28s} {'before':>8s} {'after':>8s}   after / before")
    for name in options.cases:
        if ("user loop" in name or "fly" in name) and not (data_folder() / "mnist.npz").exists():
            print(f"{name:28s} left out: mnist.npz not found")
            continue
        seconds: dict[Path, list[float]] = {options.before.resolve(): [], HERE: []}
        for turn in range(options.rounds):
            for checkout in list(seconds)[:: -1 if turn % 2 else 1]:
                seconds[checkout].append(measured(name, checkout))
        before, after = map(min, seconds.values())
        print(f"{name:28s} {before:8.2f} {after:8.2f}   {after / before:.2f}", flush=True)


if __name__ == "__main__":
    main()
