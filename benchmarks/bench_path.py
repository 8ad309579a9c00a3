"""Time of a regularisation path against one cold fit, and of the CV estimators against a grid search.

(a) ``mkl_path`` over 50 values of C, as a multiple of one cold fit at C = 1: promised at most 15. SMKL is
    not convex and starts from equal weights at every point, so it is shown and not counted.
(b) ``MKLClassifierCV`` against ``GridSearchCV`` over the same grid of regularisers and costs, 20
    kernels, n = 500, 5 folds, 30 points: promised at least 5 times faster.

Twenty Gaussian kernels on random parts of simulated features, hinge loss, tol = 1e-3, one thread, best
of a few repeats.

    python benchmarks/bench_path.py [n]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import kernelweave as kw
from kernelweave.kernels import RBF

REPEATS = 3
PATH_PROMISE, CV_PROMISE = 15.0, 5.0
COSTS = np.geomspace(1e-2, 1e2, 50)

REGULARIZERS = {
    "lp, p = 1": kw.LpNorm(p=1),
    "lp, p = 4/3": kw.LpNorm(p=4 / 3),
    "lp, p = 2": kw.LpNorm(p=2),
    "uniform": kw.Uniform(),
    "elastic net, 0.5": kw.ElasticNet(l1_ratio=0.5),
    "block norm, q = 4": kw.BlockNorm(q=4),
    "Mahalanobis": kw.Mahalanobis(),
    "wedge": kw.Wedge(),
    "SMKL (not counted)": kw.SMKL(),
}

#: 3 regularisers x 10 costs = 30 points
GRID, GRID_COSTS = [kw.LpNorm(p=1), kw.LpNorm(p=4 / 3), kw.LpNorm(p=2)], np.geomspace(1e-2, 1e2, 10)


def simulated(n: int, n_kernels: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[RBF]]:
    """Two classes in 40 features, 8 of them informative, and kernels of several widths on parts of them."""
    X, y = make_classification(
        n, 40, n_informative=8, n_redundant=4, n_clusters_per_class=3, flip_y=0.05, random_state=seed
    )
    rng = np.random.default_rng(seed)
    kernels = []
    for m in range(n_kernels):
        columns = np.sort(rng.choice(40, size=6, replace=False)).tolist()
        kernels.append(RBF(gamma=float((0.02, 0.1, 0.5)[m % 3]), columns=columns))
    return StandardScaler().fit_transform(X), y, kernels


def best_time(run):
    """Shortest of a few runs, and the last result: other work on the machine only adds time."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def compare_path(name: str, regularizer, X, y, kernels) -> float:
    estimator = kw.MKLClassifier(kernels, regularizer=regularizer)
    cold, model = best_time(lambda: estimator.fit(X, y))
    warm, path = best_time(lambda: kw.mkl_path(estimator, X, y, values=COSTS))
    gap = float(path.dual_gap.max())
    print(
        f"{name:18s} {cold:9.3f} ({model.n_iter_:3d}) {warm:9.3f} ({int(path.n_iter.sum()):4d})"
        f" {warm / cold:8.1f}   {gap:8.1e}",
        flush=True,
    )
    return warm / cold


def compare_search(X, y, kernels) -> float:
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    ours = kw.MKLClassifierCV(kernels, regularizers=GRID, Cs=GRID_COSTS, cv=folds)
    grid = [{"regularizer": [regularizer], "C": GRID_COSTS} for regularizer in GRID]
    theirs = GridSearchCV(kw.MKLClassifier(kernels), grid, cv=folds)
    fast, search = best_time(lambda: ours.fit(X, y))
    slow, reference = best_time(lambda: theirs.fit(X, y))
    difference = np.abs(
        search.cv_results_["mean_test_score"] - reference.cv_results_["mean_test_score"]
    ).max()
    print(f"GridSearchCV       {slow:9.2f} s   best score {reference.best_score_:.4f}")
    print(f"MKLClassifierCV    {fast:9.2f} s   best score {search.best_score_:.4f}")
    print(f"scores differ by {difference:.4f} at most")
    print(f"ratio {slow / fast:.1f} (promised: at least {CV_PROMISE:g})")
    return slow / fast


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    X, y, kernels = simulated(n)
    kw.mkl_path(kw.MKLClassifier(kernels), X[:100], y[:100], values=[0.1, 1.0])  # compiles
    kw.MKLClassifier(kernels, regularizer=kw.LpNorm(p=1)).fit(X[:100], y[:100])
    print(f"n = {n}, {len(kernels)} kernels; seconds (machines)")
    print("regulariser         one cold fit     path of 50 points    ratio   worst gap")
    ratios = {name: compare_path(name, part, X, y, kernels) for name, part in REGULARIZERS.items()}
    worst = max(ratios[name] for name, part in REGULARIZERS.items() if part.convex)
    print(f"worst ratio {worst:.1f} (promised: at most {PATH_PROMISE:g})\n")
    gain = compare_search(X, y, kernels)
    return int(worst > PATH_PROMISE or gain < CV_PROMISE)


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
