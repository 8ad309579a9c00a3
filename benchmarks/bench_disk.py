"""Repeated fits from matrices on disk: 30 kernels on 3,000 samples, eight values of C.

Gaussian kernels of three widths on random parts of 40 features, hinge loss, p = 2, gap 1e-3 and
``memory_limit="400MB"``, which neither the matrices (2.2 GB) nor their triangles in single precision (540 MB)
fit into. A `GramStore` is built once and opened, checksums compared, for eight fits; against it, fits that
compute blocks of the kernels again in every pass. These kernels are among the cheapest to compute; the more
expensive they are, the more a store saves. Promised: the store, its building included, is faster than
blocks, and all objectives are certified and agree to the tolerance.

    python benchmarks/bench_disk.py [n] [kernels]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

import kernelweave as kw
from kernelweave.kernels import RBF

TOL, LIMIT = 1e-3, "400MB"
WIDTHS, COSTS = (0.02, 0.1, 0.5), np.geomspace(0.1, 10.0, 8)


def problem(n: int, n_kernels: int) -> tuple[np.ndarray, np.ndarray, list[RBF]]:
    """Samples, classes, and kernels on six of the 40 columns each, 12 of which matter."""
    X, y = make_classification(
        n, 40, n_informative=8, n_redundant=4, n_clusters_per_class=3, flip_y=0.05, random_state=0
    )
    rng = np.random.default_rng(0)
    parts = [rng.choice(40, size=6, replace=False).tolist() for _ in range(n_kernels)]
    kernels = [RBF(WIDTHS[m % 3], columns=part) for m, part in enumerate(parts)]
    return (X - X.mean(axis=0)) / X.std(axis=0), y, kernels


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def fits(kernels: Any, X: Any, y: np.ndarray, gram: str) -> list[kw.MKLClassifier]:
    """A model for every cost."""
    options = {"regularizer": kw.LpNorm(2), "gram": gram, "memory_limit": LIMIT, "tol": TOL}
    return [kw.MKLClassifier(kernels, C=C, **options).fit(X, y) for C in COSTS]


def on_store(path: Path, kernels: list[RBF], X: np.ndarray, y: np.ndarray) -> tuple[list[float], Any]:
    """Seconds to build, to open and to fit, and the models."""
    built, _ = timed(lambda: kw.GramStore.build(path, kernels, X))
    opened, store = timed(lambda: kw.GramStore.open(path))
    fitted, models = timed(lambda: fits("precomputed", store, y, "auto"))
    return [built, opened, fitted], models


def agree(models: list[kw.MKLClassifier], others: list[kw.MKLClassifier]) -> bool:
    """Whether all are certified, with the same objectives up to their gaps."""
    pairs = list(zip(models, others, strict=True))
    certified = all(model.dual_gap_ <= TOL for pair in pairs for model in pair)
    return certified and all(abs(a.objective_ / b.objective_ - 1.0) <= 2 * TOL for a, b in pairs)


def main() -> int:
    given = [int(word) for word in sys.argv[1:]]
    n, n_kernels = given + [3000, 30][len(given) :]
    X, y, kernels = problem(n, n_kernels)
    with tempfile.TemporaryDirectory() as folder:
        on_store(Path(folder) / "small.gram", kernels, X[:200], y[:200])  # compiled
        fits(kernels, X[:200], y[:200], "blocked")
        path = Path(folder) / "kernels.gram"
        (built, opened, fitted), models = on_store(path, kernels, X, y)
        size = path.stat().st_size
    blocks, computed = timed(lambda: fits(kernels, X, y, "blocked"))
    total = built + opened + fitted
    same = agree(models, computed)
    print(f"n = {n}, {n_kernels} kernels, {len(COSTS)} fits; the store has {size / 1e6:.0f} MB")
    print(f"store: build {built:.2f} s, open {opened:.2f} s, fits {fitted:.2f} s ({models[0].gram_})")
    print(f"{'':32s} {'seconds':>8s}   of the store's")
    for what, seconds in (("store", total), ("blocks, computed again", blocks)):
        print(f"{what:32s} {seconds:8.2f}   {seconds / total:5.2f}")
    kept = same and blocks > total
    print(f"objectives {'agree' if same else 'do not agree'}; promise {'kept' if kept else 'broken'}")
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
