"""Time of a path and of a search in units of one cold fit, and of a search against a grid search.

(a) ``mkl_path`` over 30 values of C and ``MKLClassifierCV`` / ``MKLRegressorCV`` over 5 folds of them, real
    data, 30 Gaussian kernels (of given matrices, or on features), tol = 1e-3: promised at most 4 and 15 cold
    fits. Digits of MNIST, odd against even or as numbers, and ROSMAP, ten kernels on each of three omics
    views of 245 patients. A cold fit is ``fit`` at C = 1, matrices and checks included. "machines" is how
    many were trained on the path, and at how many of its points: the solutions at the others follow from
    these, and are certified. "before" are the ratios when every solved point took a sum of the kernels, a
    machine and its certificate, and folds were copied matrix by matrix; cold fits took more than twice as
    long then, so seconds fell also where ratios rose ("nan": not measured). Where the promise is below the
    floor, no path or search can keep it. "floor", in cold fits, is what a path
    would cost if its weights were known: the kernels are checked, and every point with a machine takes the
    sum at its final weights (where they are new), the machine, and alpha' K_m alpha. The floor of a search is
    five of these on copies of four fifths of the samples, and the fit at the end.
(b) ``mkl_path`` over 50 values of C of simulated data, as a multiple of one cold fit at C = 1: promised at
    most 15. SMKL is not convex and starts from equal weights at every point, so it is shown and not counted.
(c) ``MKLClassifierCV`` against ``GridSearchCV`` over the same grid of regularisers and costs, 20
    kernels, n = 500, 5 folds, 30 points: promised at least 5 times faster.

Processor seconds of one thread, best of a few repeats (two of a search).

    python benchmarks/bench_path.py [n ...]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from workloads import data_folder

import kernelweave as kw
from kernelweave.estimators._chain import Guide
from kernelweave.estimators.path import prepare, specs_along
from kernelweave.kernels import RBF
from kernelweave.solvers.single import choose_single

REPEATS = 3
PATH_PROMISE, CV_PROMISE = 15.0, 5.0
COSTS = np.geomspace(1e-2, 1e2, 50)

#: of part (a): cold fits that a path and a search may take, and the costs
PATH_FITS, SEARCH_FITS, THIRTY = 4.0, 15.0, np.geomspace(1e-2, 1e3, 30)

#: loss, regulariser and whether the kernels are on features
REAL = {
    "hinge, p = 1": (kw.MKLClassifier, kw.LpNorm(p=1), False),
    "hinge, p = 4/3": (kw.MKLClassifier, kw.LpNorm(p=4 / 3), False),
    "hinge, p = 2": (kw.MKLClassifier, kw.LpNorm(p=2), False),
    "the same, features": (kw.MKLClassifier, kw.LpNorm(p=2), True),
    "squared, p = 1": (kw.MKLRegressor, kw.LpNorm(p=1), False),
    "squared, p = 2": (kw.MKLRegressor, kw.LpNorm(p=2), False),
    "squared, elastic net": (kw.MKLRegressor, kw.ElasticNet(l1_ratio=0.5), False),
}

#: ratios of some of them before: path and search
BEFORE = {
    ("hinge, p = 1", 500): (3.5, 22.4),
    ("hinge, p = 4/3", 500): (4.4, 17.3),
    ("hinge, p = 2", 500): (3.6, 15.5),
    ("squared, p = 1", 500): (11.7, 37.4),
    ("squared, p = 2", 500): (7.2, 25.5),
    ("squared, elastic net", 500): (9.3, 24.3),
    ("hinge, p = 1", 1000): (6.3, 32.2),
    ("hinge, p = 4/3", 1000): (4.7, 21.1),
    ("hinge, p = 2", 1000): (3.8, 19.5),
    ("squared, p = 1", 1000): (14.3, 37.9),
    ("squared, p = 2", 1000): (8.4, 25.0),
    ("squared, elastic net", 1000): (6.9, 17.8),
}

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


def best_time(run, repeats=REPEATS):
    """Shortest of a few runs, and the last result: other work on the machine only adds time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
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


def digits(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Digits of MNIST, pixels in [0, 1]."""
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(seed).permutation(len(file["y"]))[:n]
        return file["X"][rows].astype(np.float64) / 255.0, file["y"][rows].astype(int)


def of_digits(name: str, n: int) -> tuple:
    """Odd against even digits, or the digit itself as a number, with Gaussian kernels of many widths."""
    Model, regularizer, features = REAL[name]
    X, digit = digits(n)
    gammas = np.geomspace(1.0, 1.2**-49, 30)
    y = digit % 2 if Model is kw.MKLClassifier else (digit - digit.mean()) / digit.std()
    kernels, Z = [RBF(gamma=float(gamma)) for gamma in gammas], X
    if not features:
        distances = euclidean_distances(X, squared=True)
        kernels, Z = "precomputed", kw.KernelStack([np.exp(-gamma * distances) for gamma in gammas])
    return Model(kernels, regularizer=regularizer), Z, y


def of_omics(regularizer) -> tuple:
    """Patients with Alzheimer's disease and without, from expression, methylation and micro RNA."""
    with np.load(data_folder() / "rosmap_mogonet.npz", allow_pickle=False) as file:
        views = [StandardScaler().fit_transform(file[f"X_{name}"]) for name in file["view_names"]]
        y = file["y"].astype(int)
    widths = np.geomspace(0.1, 10.0, 10) / views[0].shape[1]
    Ks = [np.exp(-gamma * euclidean_distances(X, squared=True)) for X in views for gamma in widths]
    return kw.MKLClassifier("precomputed", regularizer=regularizer), kw.KernelStack(Ks), y


def least_work(prepared, points, found) -> None:
    """At every point that took a machine: a sum where weights are new, the machine, alpha' K alpha."""
    gram, problem = prepared.dictionary.gram, prepared.problems[0].problem
    machine, alpha, before, K = choose_single("auto", problem.loss), None, None, None
    for point, result in zip(points, found, strict=True):
        if result.n_iter:
            weights, own = result.state.weights, problem.at_cost(point.C / prepared.spec.C)
            if before is None or not np.array_equal(weights, before):
                K, before = gram.combine(weights), weights
            alpha = machine.solve(K, own, 0.3 * point.tol, alpha).alpha
            gram.quad(alpha)


def floors(one, Z, y) -> tuple[float, float]:
    """Seconds of what a path and a search would still do if they knew all weights, and where they change."""
    points, whole = specs_along(one, "C", THIRTY), prepare(clone(one), Z, y, None)
    found, train = whole.solve(points)[0], np.arange(len(y) // 5, len(y))
    guides = [Guide.of(result, whole.dictionary) for result in found]
    of_part = whole.part(train).solve(points, [guides])[0]
    path = best_time(lambda: least_work(prepare(clone(one), Z, y, None), points, found), 2)[0]
    fold = best_time(lambda: least_work(whole.part(train), points, of_part), 2)[0]
    return path, 5 * fold


def compare_real(name: str, n: int, one, Z, y) -> tuple[float, float]:
    """A path and a search in cold fits, and the floors of both."""
    Search = kw.MKLClassifierCV if isinstance(one, kw.MKLClassifier) else kw.MKLRegressorCV
    cold, _ = best_time(lambda: one.fit(Z, y), 4)
    warm, path = best_time(lambda: kw.mkl_path(one, Z, y, values=THIRTY))
    search = Search(one.kernels, regularizers=one.regularizer, Cs=THIRTY)
    searching, _ = best_time(lambda: search.fit(Z, y), 2)
    assert (path.dual_gap <= one.tol).all()
    least, of_folds = floors(one, Z, y)
    before, search_before = BEFORE.get((name, n), (np.nan, np.nan))
    print(
        f"{len(y):5d} {name:20s} {cold:8.3f} {warm:7.2f} ({int(path.n_iter.sum()):2d} at"
        f" {int((path.n_iter > 0).sum()):2d}) {warm / cold:6.1f} {before:7.1f} {least / cold:6.1f}"
        f" {searching:8.2f} {searching / cold:6.1f} {search_before:7.1f} {(of_folds + cold) / cold:6.1f}",
        flush=True,
    )
    return warm / cold, searching / cold


def compare_all_real(sizes: list[int]) -> bool:
    """Run part (a), and return whether a promise was broken."""
    if not (data_folder() / "mnist.npz").exists():
        print(
            "mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Part (a) is left out.\n"
        )
        return False
    print(
        "    n                       cold fit    path (machines)  ratio  before  floor"
        "   5 x 30  ratio  before  floor"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = [compare_real(name, n, *of_digits(name, n)) for n in sizes for name in REAL]
        if (data_folder() / "rosmap_mogonet.npz").exists():
            found += [compare_real(f"ROSMAP, p = {p}", 0, *of_omics(kw.LpNorm(p=p))) for p in (1, 2)]
    ratios = np.array(found)
    met = (ratios <= [PATH_FITS, SEARCH_FITS]).sum(axis=0)
    kept = f"{met[0]} paths and {met[1]} searches of {len(ratios)} keep it"
    print(f"promised at most {PATH_FITS:g} and {SEARCH_FITS:g}: {kept}\n")
    return bool((ratios > [PATH_FITS, SEARCH_FITS]).any())


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
    sizes = [int(size) for size in sys.argv[1:]] or [500, 1000, 2000]
    X, y, kernels = simulated(500)
    kw.mkl_path(kw.MKLClassifier(kernels), X[:100], y[:100], values=[0.1, 1.0])  # compiles
    kw.MKLClassifier(kernels, regularizer=kw.LpNorm(p=1)).fit(X[:100], y[:100])
    kw.MKLClassifierCV(kernels, Cs=2).fit(X[:100], y[:100])
    broken = compare_all_real(sizes)
    print(f"n = 500, {len(kernels)} kernels; seconds (machines)")
    print("regulariser         one cold fit     path of 50 points    ratio   worst gap")
    ratios = {name: compare_path(name, part, X, y, kernels) for name, part in REGULARIZERS.items()}
    worst = max(ratios[name] for name, part in REGULARIZERS.items() if part.convex)
    print(f"worst ratio {worst:.1f} (promised: at most {PATH_PROMISE:g})\n")
    gain = compare_search(X, y, kernels)
    return int(broken or worst > PATH_PROMISE or gain < CV_PROMISE)


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
