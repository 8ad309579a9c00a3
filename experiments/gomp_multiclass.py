"""Multiclass selection of views after section 5.2 of Sindhwani & Lozano (2011).

Protein folds (12 views, 27 classes) and handwritten digits (6 views, 10 classes), one kernel a view, linear
or Gaussian: MKL-GOMP, l1-MKL, the uniform sum of all kernels and the best single kernel, all with squared
loss, every hyper-parameter by 3-fold cross-validation (three times over) on the training part of random
splits.

    python experiments/gomp_multiclass.py [--quick] [--jobs N] [name ...]

``--quick`` makes 3 splits in place of 10. Data come from KERNELWEAVE_DATA, or shared/data beside the project.
"""

from __future__ import annotations

import argparse
import os
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

#: name -> training samples
SETS = {"proteinfold_kpca27": 463, "mfeat": 400}
KERNELS = {"linear": Linear, "gaussian": RBF}
RIDGES = 10.0 ** np.arange(-5.0, 0.6, 0.5)
COSTS = 10.0 ** np.arange(-2.0, 3.1, 0.5)
METHODS = ("GOMP", "l1-MKL", "uniform sum", "best single")


def load(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Views and labels."""
    named = os.environ.get("KERNELWEAVE_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        return {view: file[f"X_{view}"].astype(np.float64) for view in file["view_names"]}, file["y"]


def views(data: dict[str, np.ndarray], kernel: Any) -> tuple[np.ndarray, dict[str, Any]]:
    """All columns side by side, and one kernel a view."""
    ends = np.cumsum([X.shape[1] for X in data.values()])
    starts = ends - [X.shape[1] for X in data.values()]
    columns = {name: slice(int(a), int(b)) for name, a, b in zip(data, starts, ends, strict=True)}
    return np.hstack(list(data.values())), {name: kernel(columns=part) for name, part in columns.items()}


def greedy(kernels: dict[str, Any], **options: Any) -> kw.GroupOMPClassifierCV:
    """MKL-GOMP."""
    return kw.GroupOMPClassifierCV(kernels, alphas=RIDGES, cv=folds(), **options)


def folds() -> RepeatedStratifiedKFold:
    """Three times three."""
    return RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)


def mkl(kernels: dict[str, Any], regularizer: Any) -> kw.MKLClassifierCV:
    """MKL with weights shared by the classes."""
    return kw.MKLClassifierCV(
        kernels, loss="squared", regularizers=[regularizer], Cs=COSTS, multiclass="shared", cv=folds()
    )


def one_split(name: str, kernel: str, train: np.ndarray, test: np.ndarray) -> list[tuple[float, int]]:
    """Accuracy in % and number of kernels of every method."""
    data, y = load(name)
    X, kernels = views(data, KERNELS[kernel])
    parts = X[train], y[train], X[test], y[test]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        singles = [greedy({view: one}).fit(*parts[:2]) for view, one in kernels.items()]
        models = [
            greedy(kernels, tol=0.0).fit(*parts[:2]),
            mkl(kernels, kw.LpNorm(p=1)).fit(*parts[:2]),
            mkl(kernels, kw.Uniform()).fit(*parts[:2]),
            max(singles, key=lambda model: model.best_score_),
        ]
    return [(100.0 * model.score(*parts[2:]), count_of(model)) for model in models]


def count_of(model: Any) -> int:
    """Kernels with weight."""
    return int(np.count_nonzero(np.max(np.atleast_2d(model.weights_), axis=0) > 1e-6))


def show(title: str, results: np.ndarray) -> None:
    """Print one table, differences to GOMP paired."""
    print(f"\n{title}, {len(results)} splits\n  method        accuracy in %   GOMP - method   kernels")
    for column, method in enumerate(METHODS):
        values, counts = results[:, column, 0], results[:, column, 1]
        difference = results[:, 0, 0] - values
        spread = [part.std(ddof=1) / np.sqrt(len(part)) for part in (values, difference)]
        print(
            f"  {method:12s}  {values.mean():5.2f} ±{spread[0]:4.2f}  "
            f"{difference.mean():+6.2f} ±{spread[1]:4.2f}   {counts.mean():5.1f}",
            flush=True,
        )


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="data sets; all by default")
    parser.add_argument("--quick", action="store_true", help="3 splits in place of 10")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    run, count = Parallel(n_jobs=arguments.jobs), 3 if arguments.quick else 10
    for name, kernel in product(arguments.names or SETS, KERNELS):
        _, y = load(name)
        splits = StratifiedShuffleSplit(count, train_size=SETS[name], random_state=0).split(y, y)
        results = run(delayed(one_split)(name, kernel, train, test) for train, test in splits)
        show(f"{name}, {kernel} kernels", np.array(results))


if __name__ == "__main__":
    main()
