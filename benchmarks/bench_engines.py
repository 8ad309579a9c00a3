"""Cost of every operation of every Gram engine, against computing all matrices once.

Fifty variance-normalised Gaussian kernels on MNIST, 2 sigma^2 = 1.2^0 .. 1.2^49. The yardstick is
what a user would write: distances of a block of rows to all samples, fifty times np.exp, the block
thrown away. Numbers are seconds, and in brackets the share of that yardstick; `rows` and `dot` ask
for 500 rows and are compared with the yardstick on 500 rows, `quad 30%` has 30 % support vectors.
Engines that do not fit in the memory limit are left out.

    python benchmarks/bench_engines.py [--limit 2GB] [--threads 1] [--float32] [n ...]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits
from workloads import data_folder

from kernelweave.gram import Dictionary, FeatureSource, parse_memory
from kernelweave.kernels import RBF

N_KERNELS, ROWS, BLOCK = 50, 500, 512
ENGINES = ("dense", "packed", "cached", "blocked")


def digits(n: int, dtype: type) -> np.ndarray:
    """Pixels in [0, 1] of n digits."""
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(0).permutation(len(file["y"]))[:n]
        return (file["X"][rows] / 255.0).astype(dtype)


def kernels() -> list[tuple[str, RBF]]:
    return [(f"1.2^{m}", RBF(1.2**-m)) for m in range(N_KERNELS)]


def block_by_block(X: np.ndarray) -> None:
    """All matrices, a block of rows at a time."""
    for start in range(0, len(X), BLOCK):
        D = euclidean_distances(X[start : start + BLOCK], X, squared=True)
        for m in range(N_KERNELS):
            np.exp(-(1.2**-m) * D)


def seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def operations(gram, rng) -> dict[str, tuple[float, object]]:
    """Name, share of all rows asked for, and call."""
    n = gram.n_samples
    weights, alpha = rng.uniform(size=N_KERNELS), rng.normal(size=n)
    sparse, rows = alpha * (rng.uniform(size=n) < 0.3), rng.permutation(n)[:ROWS]
    return {
        "combine": (1.0, lambda: gram.combine(weights)),
        "quad": (1.0, lambda: gram.quad(alpha)),
        "quad 30%": (1.0, lambda: gram.quad(sparse)),
        "dot": (ROWS / n, lambda: gram.dot(weights, alpha, rows)),
        "rows": (ROWS / n, lambda: gram.rows(rows, weights)),
    }


def measure(X: np.ndarray, engine: str, limit: int | None, yardstick: float, repeats: int) -> str:
    source, start = FeatureSource(kernels(), X), time.perf_counter()
    dictionary = Dictionary(source, "variance", None, limit, gram=engine)
    setup = time.perf_counter() - start
    line = f"{len(X):6d} {engine:8s} {setup:7.2f} ({setup / yardstick:5.2f})"
    for share, call in operations(dictionary.gram, np.random.default_rng(1)).values():
        best = min(seconds(call) for _ in range(repeats))
        line += f"  {best:8.3f} ({best / (share * yardstick):5.2f})"
    return line


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=int, default=[2000, 5000, 10_000])
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    if not (data_folder() / "mnist.npz").exists():
        print("mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Nothing measured.")
        return
    dtype, limit = np.float32 if options.float32 else np.float64, parse_memory(options.limit)
    with threadpool_limits(options.threads):
        for engine in ENGINES:
            measure(digits(600, dtype), engine, None, 1.0, 1)  # compiled
        heads = (
            "setup",
            *operations(
                Dictionary(FeatureSource(kernels(), digits(600, dtype)), None).gram, np.random.default_rng(1)
            ),
        )
        print("     n engine  " + "".join(f"{head:>18s}" for head in heads))
        for n in options.sizes:
            X = digits(n, dtype)
            yardstick = min(seconds(lambda X=X: block_by_block(X)) for _ in range(options.repeats))
            print(f"{n:6d} block by block once: {yardstick:.2f}", flush=True)
            for engine in ENGINES:
                try:
                    print(measure(X, engine, limit, yardstick, options.repeats), flush=True)
                except MemoryError as error:
                    print(f"{n:6d} {engine:8s} left out: {error}")


if __name__ == "__main__":
    main()
