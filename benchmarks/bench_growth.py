"""Growth of the time of a fit with the number of samples n and the number of kernels M.

The optimisation alone, on dense matrices in memory, hinge loss, C = 1, to a certified gap of 1e-3; one
thread, best of 3 runs. Against n: 50 kernels on 500 to 4,000 samples; against M: 1,000 samples and 25 to 800
kernels. MNIST, odd against even, where its file is found (M kernels have widths 2 sigma^2 spread evenly over
1.2^0 .. 1.2^49, so that more of them mean a finer grid), else simulated data. Seconds are processor
seconds.

The promise: exponents of at most 1 against M and 2 against n, by least squares in the logarithms.

    python benchmarks/bench_growth.py [--quick] [--out FOLDER]

Writes bench_growth.json and, where matplotlib is installed, bench_growth.png. ``--quick`` measures sizes too
small to judge the promise by.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from workloads import data_folder, mnist_odd_even, simulated

from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.regularizers import LpNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

REPEATS = 3
NORMS = {"1": 1.0, "4/3": 4.0 / 3.0, "2": 2.0}
#: largest exponents
PROMISES = {"n": 2.0, "M": 1.0}
#: (n, M) of every point
SIZES = {
    "n": [(n, 50) for n in (500, 1000, 2000, 4000)],
    "M": [(1000, M) for M in (25, 50, 100, 200, 400, 800)],
}
QUICK_SIZES = {"n": [(n, 20) for n in (250, 500, 1000)], "M": [(300, M) for M in (25, 50, 100)]}


def workload(n: int, n_kernels: int, real: bool) -> tuple[np.ndarray, np.ndarray]:
    """MNIST with widths over a fixed range, or simulated data."""
    if real:
        return mnist_odd_even(n, n_kernels, ratio=1.2 ** (49.0 / (n_kernels - 1)))
    return simulated(n, n_kernels)


def fit(Ks: np.ndarray, y: np.ndarray, p: float):
    """Solve to a gap of 1e-3."""
    problem, regularizer = Problem(y[:, None], Hinge(), np.ones((len(y), 1))), LpNorm(p)
    return choose_solver("auto", regularizer).solve(problem, DenseGram(Ks), regularizer)


def measure(Ks: np.ndarray, y: np.ndarray, p: float) -> dict[str, Any]:
    """Best time of a few fits, and what the fit was."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        solution = fit(Ks, y, p)
        times.append(time.process_time() - start)
    gap = solution.state.certificate.gap
    return {"seconds": min(times), "machines": solution.n_iter, "gap": gap, "converged": solution.converged}


def measure_sizes(along: str, sizes: list[tuple[int, int]], real: bool) -> list[dict[str, Any]]:
    """All norms at all sizes, each printed as it is known."""
    points = []
    for n, n_kernels in sizes:
        Ks, y = workload(n, n_kernels, real)
        for name, p in NORMS.items():
            point = {"along": along, "n": n, "M": n_kernels, "p": name, **measure(Ks, y, p)}
            print(
                f"{n:6d} {n_kernels:5d} {name:>4s}   {point['seconds']:8.3f}   ({point['machines']:2d})"
                f"   {point['gap']:.1e}",
                flush=True,
            )
            points.append(point)
        del Ks  # before the next ones are made
    return points


def curve(points: list[dict[str, Any]], along: str, p: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and seconds of one line of the plot."""
    chosen = [point for point in points if point["along"] == along and point["p"] == p]
    return np.array([point[along] for point in chosen]), np.array([point["seconds"] for point in chosen])


def exponents(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Slopes of the logarithms: of all sizes, and of the last step alone."""
    found = []
    for along, promise in PROMISES.items():
        for p in NORMS:
            sizes, seconds = np.log(curve(points, along, p))
            slope = float(np.polyfit(sizes, seconds, 1)[0])
            last = float((seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2]))
            found.append({"along": along, "p": p, "exponent": slope, "last_step": last, "promise": promise})
    return found


def draw(results: dict[str, Any], path: Path) -> None:
    """Time against n and against M, log-log, with the promised slopes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, (along, promise) in zip(figure.subplots(1, 2), PROMISES.items(), strict=True):
        for found in results["exponents"]:
            if found["along"] == along:
                x, t = curve(results["points"], along, found["p"])
                axes.loglog(x, t, "o-", label=f"p = {found['p']}: exponent {found['exponent']:.2f}")
        axes.loglog(x, 2.0 * t.max() * (x / x.max()) ** promise, "k:", label=f"slope {promise:g}")
        fixed = {"n": "50 kernels", "M": "1,000 samples"} if results["full"] else {"n": "", "M": ""}
        axes.set(xlabel={"n": "samples n", "M": "kernels M"}[along], ylabel="seconds", title=fixed[along])
        axes.set_xticks(x, [str(size) for size in x])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=120)


def report(results: dict[str, Any]) -> bool:
    """Print exponents beside their promises, and return whether all are kept."""
    for found in results["exponents"]:
        print(
            f"time against {found['along']}, p = {found['p']:3s}: exponent {found['exponent']:.2f}"
            f" (promised: at most {found['promise']:g}), last step {found['last_step']:.2f}"
        )
    return all(found["exponent"] <= found["promise"] for found in results["exponents"])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    real = (data_folder() / "mnist.npz").exists()
    for p in NORMS.values():
        fit(*workload(700, 9, real), p)  # compiles
    print(f"{'MNIST' if real else 'simulated'}; processor seconds of one thread (machines)")
    print("     n     M    p     seconds           gap")
    sizes = QUICK_SIZES if options.quick else SIZES
    points = [point for along in sizes for point in measure_sizes(along, sizes[along], real)]
    results = {"full": not options.quick, "data": "MNIST" if real else "simulated", "points": points}
    results["exponents"] = exponents(points)
    kept = report(results)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bench_growth.json").write_text(json.dumps(results, indent=1) + "\n")
    try:
        draw(results, options.out / "bench_growth.png")
    except ImportError:
        print("matplotlib is not installed: no plot.")
    return int(not (kept or options.quick))


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
