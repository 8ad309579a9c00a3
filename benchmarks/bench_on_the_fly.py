"""Fits whose kernel matrices are too large to keep: time against computing them once, and peak memory.

Fifty Gaussian kernels on MNIST, odd against even, C = 1, hinge loss, gap 1e-3. The reference computes the
fifty matrices once, block by block, in the same precision, and keeps none. Promised at 10,000 and 20,000
samples with ``memory_limit="2GB"``: at most 6 references, peak resident memory under 2.5 GB; 60,000 samples
finish, certified, under 4 GB. Every case has a process of its own, so that its peak is its own; as many
threads as BLAS has.

    python benchmarks/bench_on_the_fly.py [--p P] [--limit 2GB] [n ...]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from workloads import data_folder

import kernelweave as kw
from kernelweave.kernels import RBF

N_KERNELS, BLOCK = 50, 512


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1] as float32, and odd against even."""
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(0).permutation(len(file["y"]))[:n]
        return file["X"][rows].astype(np.float32) / 255, np.where(file["y"][rows] % 2, 1, -1)


def widths() -> np.ndarray:
    """gamma of the kernels: 2 sigma^2 = 1.2^0 .. 1.2^49."""
    return 1.2 ** -np.arange(N_KERNELS, dtype=np.float64)


def all_matrices_once(X: np.ndarray) -> float:
    """Seconds to compute every matrix, a block of rows at a time; of many blocks, from every eighth."""
    start, squares = time.perf_counter(), np.einsum("ij,ij->i", X, X)
    share = 1 if len(X) <= 20_000 else 8
    for first in range(0, len(X), share * BLOCK):
        rows = slice(first, first + BLOCK)
        distances = squares[rows, None] + squares - 2.0 * (X[rows] @ X.T)
        values = np.empty_like(distances)
        for gamma in widths():
            np.multiply(distances, np.float32(-gamma), out=values)
            np.exp(values, out=values)
    return share * (time.perf_counter() - start)


def one(n: int, p: float, limit: str) -> None:
    """Fit, then measure the reference, and print one line."""
    X, y = digits(n)
    kernels = [RBF(gamma=gamma) for gamma in widths()]
    start = time.perf_counter()
    model = kw.MKLClassifier(kernels, regularizer=kw.LpNorm(p), memory_limit=limit).fit(X, y)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    reference = all_matrices_once(X)
    times = f"{seconds:8.1f} s  {reference:8.1f} s  {seconds / reference:5.2f}"
    sizes = f"{model.n_iter_:3d} machines  {len(model.support_):6d} support vectors  {peak:.2f} GB"
    print(f"{n:6d} {p:5.3g}  {model.gram_:8s} {times}  {model.dual_gap_:.1e}  {sizes}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[10_000, 20_000, 60_000])
    parser.add_argument("--p", type=float, default=2.0)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--one", action="store_true", help="in this process")
    arguments = parser.parse_args()
    if not (data_folder() / "mnist.npz").exists():
        print("mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Nothing measured.")
        return
    if arguments.one:
        one(arguments.sizes[0], arguments.p, arguments.limit)
        return
    print("     n     p  engine        fit      reference  ratio  gap")
    for n in arguments.sizes:
        options = ["--one", "--p", str(arguments.p), "--limit", arguments.limit, str(n)]
        subprocess.run([sys.executable, __file__, *options], check=True)


if __name__ == "__main__":
    main()
