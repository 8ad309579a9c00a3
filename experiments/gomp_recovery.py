"""Where the recovery coefficient promises the right kernels, and how often they are found anyway.

Theorem 2 of Sindhwani & Lozano (2011), as `theory.recovery_coefficient` computes it: noiseless targets in
the span of the good kernels, groups of three columns that share a common direction the more, the harder the
problem. A verdict "certified" with all assumptions met must mean recovery, every time; so must the stronger
condition that ||Q_j K_G|| is small ("small norms", apart from the other guarantees). "refuted" means no
promise, and the rate printed says how pessimistic that is.

    python experiments/gomp_recovery.py [--quick]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import product

import numpy as np

from kernelweave.kernels import Linear
from kernelweave.theory import recovery_coefficient

GROUP, N_GROUPS = 3, 8
SIZES, SHARED, RIDGES = (30, 100), (0.0, 0.5, 1.0, 2.0), (1e-6, 1e-1)
OUTCOMES = ("small norms", "guaranteed", "certified only", "undecided", "refuted")


def problem(rng: np.random.Generator, n: int, shared: float) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Standardised groups that share a direction, targets from one to four of them, and which."""
    X = rng.standard_normal((n, GROUP * N_GROUPS)) + shared * rng.standard_normal((n, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    good = np.sort(rng.choice(N_GROUPS, int(rng.integers(1, 5)), replace=False))
    inside = np.isin(np.arange(X.shape[1]) // GROUP, good)
    return X, X[:, inside] @ rng.standard_normal(inside.sum()), [int(g) for g in good]


def greedy(X: np.ndarray, y: np.ndarray, ridge: float, steps: int) -> list[int]:
    """MKL-GOMP with one linear kernel of variance 1 per group of columns."""
    shift, chosen, r = ridge * len(y), [], y
    groups = [Z / np.sqrt(GROUP) for Z in np.split(X, N_GROUPS, axis=1)]
    for _ in range(steps):
        gains = [z @ np.linalg.solve(Z.T @ Z + shift * np.eye(GROUP), z) for Z in groups for z in [Z.T @ r]]
        chosen.append(int(np.argmax([-1.0 if g in chosen else gain for g, gain in enumerate(gains)])))
        F = np.hstack([groups[g] for g in chosen])
        r = y - F @ np.linalg.solve(F.T @ F + shift * np.eye(F.shape[1]), F.T @ y)
    return sorted(chosen)


def outcome(n: int, shared: float, ridge: float, seed: int) -> tuple[str, bool]:
    """What is promised for one problem, and whether the good kernels are found."""
    X, y, good = problem(np.random.default_rng([n, int(100 * shared), seed]), n, shared)
    kernels = {f"g{g}": Linear(columns=slice(GROUP * g, GROUP * (g + 1))) for g in range(N_GROUPS)}
    found = recovery_coefficient(kernels, X, good, alpha=ridge, y=y)
    guaranteed = "small norms" if found.norms_small else "guaranteed"
    certified = guaranteed if found.guaranteed else "certified only"
    promise = certified if found.verdict == "certified" else found.verdict
    return promise, greedy(X, y, ridge, len(good)) == good


def main() -> None:
    """Print recovery rates, by what is promised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="30 problems a line in place of 200")
    count = 30 if parser.parse_args().quick else 200
    print(f"recovered / problems, {count} a line, {N_GROUPS} groups of {GROUP} columns")
    print("samples shared ridge" + "".join(f"{name:>18s}" for name in OUTCOMES))
    totals: dict[str, list[bool]] = defaultdict(list)
    for n, shared, ridge in product(SIZES, SHARED, RIDGES):
        found: dict[str, list[bool]] = defaultdict(list)
        for seed in range(count):
            promise, recovered = outcome(n, shared, ridge, seed)
            found[promise].append(recovered)
            totals[promise].append(recovered)
        print(
            f"{n:7d} {shared:6.1f} {ridge:5.0e}" + "".join(cell(found[name]) for name in OUTCOMES), flush=True
        )
    print(f"{'all':>20s}" + "".join(cell(totals[name]) for name in OUTCOMES))


def cell(recovered: list[bool]) -> str:
    """Recovered of all, with the rate."""
    if not recovered:
        return f"{'-':>18s}"
    return f"{f'{sum(recovered)}/{len(recovered)} ({100 * np.mean(recovered):.0f} %)':>18s}"


if __name__ == "__main__":
    main()
