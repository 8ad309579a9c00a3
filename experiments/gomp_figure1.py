"""Figure 1 of Sindhwani & Lozano (2011), Non-parametric Group Orthogonal Matching Pursuit.

Two Gaussian classes in 50 dimensions, one linear kernel a dimension, of which 0, 44, 64, 82, 92 or 98 %
are noise (the toy data of Kloft et al. 2011, section 6.1). 50 training samples, validation and test sets of
10,000, 10 repetitions, squared loss. lq-MKL: C by validation, for q in {1, 4/3, 2, 4, inf}; MKL-GOMP: lambda
and the number of kernels by validation, one path a lambda.

    python experiments/gomp_figure1.py [--quick] [--jobs N] [--out FOLDER]

``--quick`` makes 3 repetitions. Prints test errors with standard errors, and writes gomp_figure1.csv and,
where matplotlib is installed, gomp_figure1.png. GOMP is "at or below" the lower envelope of the norms if its
mean exceeds it by no more than its own standard error; the paired difference is printed with its own.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import kernelweave as kw
from kernelweave.kernels import Linear, per_feature

DIMENSIONS, DISTANCE = 50, 1.75
#: % of noise -> informative kernels
LEVELS = {0: 50, 44: 28, 64: 18, 82: 9, 92: 4, 98: 1}
NORMS = {"l1": 1.0, "l4/3": 4 / 3, "l2": 2.0, "l4": 4.0, "linf": np.inf}
COSTS = 10.0 ** np.arange(-4.0, 1.1, 0.5)
RIDGES = 10.0 ** np.arange(-2.0, 4.1, 0.5)
N_TRAIN, N_OTHER, REPETITIONS = 50, 10_000, 10


class Outcome(NamedTuple):
    """One repetition: test errors of the norms and of GOMP, its kernels, its lambda."""

    norms: list[float]
    greedy: float
    n_kernels: int
    ridge: float


def sample(rng: np.random.Generator, n: int, informative: int) -> tuple[np.ndarray, np.ndarray]:
    """Balanced classes with opposite means of length DISTANCE, along the informative dimensions."""
    y = np.repeat([1.0, -1.0], n // 2)
    mean = np.zeros(DIMENSIONS)
    mean[:informative] = DISTANCE / np.sqrt(informative)
    return rng.normal(size=(n, DIMENSIONS)) + y[:, None] * mean, y


#: zero and the unit vectors: a linear function is known from its values there
CORNERS = np.vstack([np.zeros(DIMENSIONS), np.eye(DIMENSIONS)])


def error(values: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Share of wrong signs, in %, of the linear function with these values at the corners."""
    return 100.0 * float(np.mean((X @ (values[1:] - values[0]) + values[0]) * y <= 0))


def best_norm(q: float, train: tuple, validation: tuple, test: tuple) -> float:
    """Test error of lq-MKL with the C of least validation error."""
    model = kw.MKLClassifier(per_feature(Linear()), loss="squared", regularizer=kw.LpNorm(q))
    values = [model.set_params(C=C).fit(*train).decision_function(CORNERS) for C in COSTS]
    return error(min(values, key=lambda found: error(found, *validation)), *test)


def best_path(train: tuple, validation: tuple, test: tuple) -> tuple[float, int, float]:
    """Test error, kernels and lambda of MKL-GOMP with the least validation error."""
    found = []
    for ridge in RIDGES:
        model = kw.GroupOMPClassifier(per_feature(Linear()), alpha=ridge, tol=0.0).fit(*train)
        for count in range(1, len(model.selected_) + 1):
            values = model.decision_function(CORNERS, n_kernels=count)
            found.append((error(values, *validation), count, ridge, error(values, *test)))
    _, count, ridge, tested = min(found)
    return tested, count, float(ridge)


def repetition(informative: int, seed: int) -> Outcome:
    """All methods on one draw."""
    rng = np.random.default_rng([seed, informative])
    parts = [sample(rng, n, informative) for n in (N_TRAIN, N_OTHER, N_OTHER)]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        norms = [best_norm(q, *parts) for q in NORMS.values()]
        return Outcome(norms, *best_path(*parts))


def standard_error(values: np.ndarray) -> float:
    """Of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def verdict(outcomes: list[Outcome]) -> str:
    """GOMP less the best norm, with the standard error over the repetitions, and what that says."""
    errors, greedy = np.array([o.norms for o in outcomes]), np.array([o.greedy for o in outcomes])
    difference = greedy - errors[:, errors.mean(axis=0).argmin()]
    word = "at or below" if difference.mean() <= standard_error(greedy) else "ABOVE"
    return f"{difference.mean():+5.2f} ±{standard_error(difference):4.2f} {word}"


def show(level: int, outcomes: list[Outcome]) -> list[str]:
    """One row of the table."""
    errors, greedy = np.array([o.norms for o in outcomes]), np.array([o.greedy for o in outcomes])
    columns = [f"{part.mean():5.2f} ±{standard_error(part):4.2f}" for part in (*errors.T, greedy)]
    kernels, ridge = (np.mean([getattr(o, name) for o in outcomes]) for name in ("n_kernels", "ridge"))
    return [f"{level:3d} %", *columns, f"{kernels:5.1f}", f"{ridge:6.2f}", verdict(outcomes)]


def draw(rows: dict[int, list[Outcome]], path: Path) -> None:
    """The two panels: errors, and what GOMP chose."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    places = range(len(rows))
    for column, name in enumerate(NORMS):
        left.plot(
            places, [np.mean([o.norms[column] for o in row]) for row in rows.values()], "o-", label=name
        )
    left.plot(places, [np.mean([o.greedy for o in row]) for row in rows.values()], "ks--", label="MKL-GOMP")
    left.set(ylabel="test error (%)", xlabel="noise kernels (%)", xticks=places, xticklabels=rows)
    left.legend()
    right.plot(
        places, [np.mean([o.n_kernels for o in row]) for row in rows.values()], "o-", label="kernels chosen"
    )
    right.plot(places, list(LEVELS.values())[: len(rows)], "k:", label="informative kernels")
    right.set(ylabel="kernels", xlabel="noise kernels (%)", xticks=places, xticklabels=rows)
    right.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 repetitions in place of 10")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("."))
    arguments = parser.parse_args()
    seeds, run = range(3 if arguments.quick else REPETITIONS), Parallel(n_jobs=arguments.jobs)
    header = ["noise", *NORMS, "GOMP", "kernels", "lambda", "GOMP - best norm"]
    print(
        f"test error in % ± standard error, {len(seeds)} repetitions\n"
        + "  ".join(f"{h:>11}" for h in header)
    )
    rows, table = {}, []
    for level, informative in LEVELS.items():
        rows[level] = list(run(delayed(repetition)(informative, seed) for seed in seeds))
        table.append(show(level, rows[level]))
        print("  ".join(f"{cell:>11}" for cell in table[-1]), flush=True)
    with open(arguments.out / "gomp_figure1.csv", "w", newline="") as file:
        csv.writer(file).writerows([header, *table])
    try:
        draw(rows, arguments.out / "gomp_figure1.png")
    except ImportError:
        print("no figure: matplotlib is not installed")


if __name__ == "__main__":
    main()
