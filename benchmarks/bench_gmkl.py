"""Cost of one gradient of `ProductRBF` in units of one evaluation of its matrix; and its memory.

The promise: with n = 1000 and 250 features at most 3 evaluations, against 250 for forming the
matrices dK/dd_k. Every sample is a support vector (the worst case), one thread.

    python benchmarks/bench_gmkl.py [--large]

``--large`` measures the memory of one float32 gradient, and of a whole fit, at n = 20,000 as well.
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

import kernelweave as kw
from kernelweave.kernels import ProductRBF

PROMISE, REPEATS = 3.0, 25


def best_time(run):
    """Shortest of a few runs: other work on the machine only adds time."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(n: int, p: int, dtype: type = np.float64) -> float:
    """Print the times at one size, and return their ratio."""
    rng = np.random.default_rng(0)
    X, alpha, d = rng.normal(size=(n, p)).astype(dtype), rng.normal(size=(n, 1)), rng.uniform(size=p) / p
    kernel = ProductRBF().fit(X)
    K = kernel(X, d=d)
    matrix = best_time(lambda: kernel(X, d=d))
    alone = best_time(lambda: kernel.grad_quad(X, alpha, d))
    known = best_time(lambda: kernel.grad_quad(X, alpha, d, K))
    times = f"K {1e3 * matrix:.1f} ms, gradient {1e3 * alone:.1f} ms ({alone / matrix:.2f} K)"
    known_times = f"with K known {1e3 * known:.1f} ms ({known / matrix:.2f} K)"
    print(f"n = {n}, {p} features, {np.dtype(dtype).name}: {times}, {known_times}")
    return alone / matrix


def large(n: int = 20_000, p: int = 50) -> None:
    """Memory of a float32 gradient beside the kernel matrix."""
    rng = np.random.default_rng(0)
    X, alpha = rng.normal(size=(n, p)).astype(np.float32), rng.normal(size=(n, 1))
    kernel, d = ProductRBF().fit(X), np.full(p, 1.0 / p)
    K = kernel(X, d=d)
    tracemalloc.start()
    start = time.perf_counter()
    kernel.grad_quad(X, alpha, d, K)
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    print(
        f"n = {n}, {p} features, float32: K {K.nbytes / 1e6:.0f} MB; the gradient takes {seconds:.1f} s and "
        f"{peak / 1e6:.0f} MB more (a float64 W would be {8e-6 * n**2:.0f} MB)"
    )


def whole_fit(n: int = 20_000, p: int = 10) -> None:
    """Time and peak memory of a fit on float32 data, from the start of the process."""
    X = np.random.default_rng(0).normal(size=(n, p)).astype(np.float32)
    start = time.perf_counter()
    model = kw.GMKLClassifier(tol=1e-2).fit(X, np.sign(X[:, 0] + 0.5 * X[:, 1]))
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"n = {n}, {p} features, float32: fit in {seconds:.0f} s, {model.n_iter_} steps, residual "
        f"{model.stationarity_:.1e}, peak {peak / 1e6:.1f} GB (K {4e-9 * n**2:.1f} GB)"
    )


def main() -> int:
    ratio = compare(1000, 250)
    for n, p in [(300, 34), (2000, 250)]:
        compare(n, p)
    compare(1000, 250, np.float32)
    if "--large" in sys.argv:
        whole_fit()
        large()
    print(f"promised: at most {PROMISE:g} K at n = 1000, 250 features; measured {ratio:.2f}")
    return int(ratio > PROMISE)


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
