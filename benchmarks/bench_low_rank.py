"""Low-rank kernels: cost against the number of samples, up to a million.

Simulated data like covertype's: 54 columns, 10 of them numbers, 44 the members of two sets of classes, one of
4 and one of 40. Ten Gaussian kernels (six widths on all columns, two each on numbers and on classes), each
by 100 landmarks; p = 2, C = 1, to a certified gap of 1e-3 of the approximated problem. Whole fits: landmarks,
features, optimisation; each in a process of its own, whose peak memory is given. Accuracy on 20,000 new
samples.

The promise: a million samples in under 10 minutes and under 12 GB, exponents under 1.1. Published for the
exact kernels: SPG-GMKL, 581,000 samples and 5 kernels in 64 hours (Jain, Vishwanathan & Varma 2012).

    python benchmarks/bench_low_rank.py [N ...] [--loss LOSS ...] [--plot FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import kernelweave as kw
from kernelweave.kernels import RBF

SIZES, LOSSES = (10_000, 30_000, 100_000, 300_000, 1_000_000), ("hinge", "logistic")
MOST_MINUTES, MOST_GB, MOST_EXPONENT = 10.0, 12.0, 1.1


def covertype_like(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """54 columns of single precision and two classes, about as hard to tell apart as in covertype."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(0).normal(size=(10, 10)) / 3.0 + np.eye(10)
    numbers = rng.normal(size=(n, 10)) @ mixing
    area, soil = rng.integers(4, size=n), rng.integers(40, size=n)
    X = np.zeros((n, 54), dtype=np.float32)
    X[:, :10], X[np.arange(n), 10 + area], X[np.arange(n), 14 + soil] = numbers, 1.0, 1.0
    score = np.sin(1.5 * numbers[:, 0]) + numbers[:, 1] * numbers[:, 2] - 0.3 * numbers[:, 3] ** 2
    score += np.random.default_rng(1).normal(size=40)[soil] + 0.5 * (area == 2) * numbers[:, 4]
    return X, (score + 0.5 * rng.normal(size=n) > 0.0).astype(int)


def kernels() -> list[RBF]:
    """Ten of them."""
    everywhere = [RBF(factor=factor) for factor in np.geomspace(0.1, 10.0, 6)]
    numbers = [RBF(factor=factor, columns=slice(0, 10)) for factor in (0.3, 3.0)]
    return everywhere + numbers + [RBF(factor=factor, columns=slice(10, 54)) for factor in (0.3, 3.0)]


def fit(n: int, loss: str) -> dict:
    """One fit in this process."""
    X, y = covertype_like(n, 1)
    model = kw.MKLClassifier(kernels(), loss=loss, approximation="nystroem", rank=100, random_state=0)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    found = {"n": n, "loss": loss, "seconds": seconds, "gb": peak, "gap": model.dual_gap_}
    score = model.score(*covertype_like(20_000, 2))
    return {
        **found,
        "machines": model.n_iter_,
        "score": score,
        "error": float(model.approximation_errors_.max()),
    }


def measured(n: int, loss: str) -> dict:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", str(n), "--loss", loss]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    point = json.loads(done.stdout)
    print(
        f"{n:9,d}  {loss:8s} {point['seconds']:8.1f} s  {point['gb']:5.2f} GB   {point['gap']:.1e}  "
        f"{point['machines']:3d}   {100 * point['score']:.2f} %   {100 * point['error']:.1f} %",
        flush=True,
    )
    return point


def exponent(points: list[dict]) -> float:
    """Slope of the logarithms."""
    return float(np.polyfit(*np.log([[p["n"] for p in points], [p["seconds"] for p in points]]), 1)[0])


def draw(lines: dict[str, list[dict]], path: Path) -> None:
    """Seconds against samples."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.8), layout="constrained")
    axes = figure.subplots()
    for loss, points in lines.items():
        sizes, seconds = [p["n"] for p in points], [p["seconds"] for p in points]
        axes.loglog(sizes, seconds, "o-", label=f"{loss}: exponent {exponent(points):.2f}")
    x = np.array(sizes)
    axes.loglog(x, 1.5 * max(seconds) * x / x.max(), "k:", label="slope 1")
    axes.set(xlabel="samples", ylabel="seconds", title="10 kernels of rank 100, two cores")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=100)


def kept(lines: dict[str, list[dict]]) -> bool:
    """Whether the promises hold, as far as these sizes can tell."""
    every = [point for points in lines.values() for point in points]
    within = all(p["seconds"] < 60 * MOST_MINUTES and p["gb"] < MOST_GB and p["gap"] <= 1e-3 for p in every)
    return within and all(exponent(points) < MOST_EXPONENT for points in lines.values() if len(points) > 2)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--loss", nargs="+", default=LOSSES)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit(options.one, options.loss[0])))
        return 0
    print("        n  loss       seconds      peak       gap  machines  accuracy  missing at most")
    lines = {loss: [measured(n, loss) for n in options.sizes] for loss in options.loss}
    for loss, points in lines.items():
        if len(points) > 2:
            print(f"{loss}: exponent {exponent(points):.2f} (promised: under {MOST_EXPONENT})")
    if options.plot:
        draw(lines, options.plot)
    return int(not kept(lines))


if __name__ == "__main__":
    sys.exit(main())
