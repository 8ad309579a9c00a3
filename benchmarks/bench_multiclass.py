"""Ten classes against two: what they share of the passes over the kernels.

Fifty variance-normalised Gaussian kernels on MNIST, p = 2, C = 1, hinge loss, precomputed, gap 1e-3: odd
against even digits, the ten digits one-vs-rest, and with shared weights. Processor seconds of one thread, the
least of twelve fits in turns after a first one, their ratio to the fit of two classes, and passes over the
kernels after the one that checks them. "before" are the ratios and passes when every class made its own
passes. "floor" is a fit that knows the weights, step by step: the checks of the matrices, the weighted sums,
one machine of each class, and its quadratic forms. (`bench_end_to_end` has the least of all, where the pass
that checks makes the first sum.)

    python benchmarks/bench_multiclass.py [--repeats N] [n ...]
"""

from __future__ import annotations

import argparse
import time
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits
from workloads import data_folder, mnist_odd_even

import kernelweave as kw
from kernelweave.estimators._mkl import BaseMKL
from kernelweave.solvers.multiple.alternating import LAST_SHARE
from kernelweave.solvers.single import SMO

#: ratios to the fit of two classes, and passes, of every class on its own (n = 2000)
BEFORE = {"one-vs-rest": (4.25, 12.7), "shared": (2.51, 3.0)}


#: parts of what no fit does without
PARTS = ("checks", "sums", "machines", "forms")


def digits(n: int, seed: int = 0) -> np.ndarray:
    """Labels of the samples of `mnist_odd_even`."""
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        return file["y"][np.random.default_rng(seed).permutation(len(file["y"]))[:n]]


def fitted(stack: kw.KernelStack, y: np.ndarray, scheme: str) -> tuple[float, float, kw.MKLClassifier]:
    """Processor seconds of a fit, its passes over the kernels, and the model."""
    engines: list = []
    store = BaseMKL._store

    def noting(self, dictionary, *rest):
        engines.append(dictionary.gram)
        return store(self, dictionary, *rest)

    model = kw.MKLClassifier("precomputed", multiclass=scheme)
    with patch.object(BaseMKL, "_store", noting):
        start = time.process_time()
        model.fit(stack, y)
        seconds = time.process_time() - start
    assert np.max(model.dual_gap_) <= 1e-3
    return seconds, engines[0].n_passes, model


def floor(stack: kw.KernelStack, y: np.ndarray, scheme: str, weights: np.ndarray) -> list[float]:
    """Processor seconds of checks, weighted sums, machines and quadratic forms, once each."""
    marks = [time.process_time()]
    model = kw.MKLClassifier("precomputed", multiclass=scheme)
    setup = model._setup(stack, y, None)
    gram = model._dictionary(setup).gram
    marks.append(time.process_time())
    sums = gram.combine_each(np.atleast_2d(weights))
    marks.append(time.process_time())
    problems = [one.problem for one in setup.problems]
    pairs = zip(sums, problems, strict=True)
    alphas = [SMO().solve(K, problem, LAST_SHARE * 1e-3).alpha for K, problem in pairs]
    marks.append(time.process_time())
    if len(alphas) > 1:
        gram.quad_each(np.hstack(alphas))
    else:
        gram.quad(alphas[0])
    marks.append(time.process_time())
    return np.diff(marks).tolist()


def main() -> None:
    if not (data_folder() / "mnist.npz").exists():
        print("mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Nothing measured.")
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[1000, 2000])
    parser.add_argument("--repeats", type=int, default=12)
    arguments = parser.parse_args()
    print("     n  classes         seconds   ratio   passes  machines   before: ratio, passes (n = 2000)")
    for n in arguments.sizes:
        Ks, parity = mnist_odd_even(n)
        stack = kw.KernelStack(list(Ks))
        cases = {
            "odd and even": (parity, "ovr"),
            "one-vs-rest": (digits(n), "ovr"),
            "shared": (digits(n), "shared"),
        }
        least = dict.fromkeys(cases, np.inf)
        found: dict = {}
        for turn in range(1 + arguments.repeats):
            for name, case in cases.items():
                found.pop(
                    name, None
                )  # one model of each kind at a time: memory that others hold is new memory
                seconds, *found[name] = fitted(stack, *case)
                least[name] = min(least[name], seconds if turn > 0 else np.inf)
        two = least["odd and even"]
        for name, (y, scheme) in cases.items():
            seconds, (passes, model) = least[name], found[name]
            before = "   {:.2f}, {:.1f}".format(*BEFORE[name]) if name in BEFORE else ""
            machines = int(np.sum(model.n_iter_))
            parts = min((floor(stack, y, scheme, model.weights_) for _ in range(arguments.repeats)), key=sum)
            print(
                f"{n:6d}  {name:14s} {seconds:8.3f} {seconds / two:7.2f} {passes:8.2f} {machines:9d}{before}",
            )
            told = ", ".join(f"{part} {value:.3f}" for part, value in zip(PARTS, parts, strict=True))
            print(f"{'':8s}{'  floor':14s} {sum(parts):8.3f} {sum(parts) / two:7.2f}   {told}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
