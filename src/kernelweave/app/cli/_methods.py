"""Methods by name: the estimator of each, and what is chosen by cross-validation with --tune."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from ... import estimators as kw
from ...gram.choice import free_memory, show_bytes
from ...kernels.parametric import GroupProductRBF, ProductRBF
from ...regularizers import SMKL, ElasticNet, LpNorm, Uniform
from ._errors import CliError

METHODS = ("auto", "lp", "elasticnet", "smkl", "gomp", "gmkl", "empirical-bayes", "uniform")

#: what is tried with --tune
NORMS = (1.0, 4.0 / 3.0, 2.0, 4.0)
RATIOS = (0.1, 0.5, 0.9)
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
FOLDS = 5


@dataclass(frozen=True)
class Options:
    """What a method may be told."""

    p: float = 2.0
    C: float = 1.0
    tol: float = 1e-3
    memory_limit: str | None = None
    n_jobs: int | None = None
    seed: int = 0
    groups: dict[str, list[int]] | None = None
    approximation: str | None = None
    rank: int = 100

    @property
    def shared(self) -> dict[str, Any]:
        return {"memory_limit": self.memory_limit, "n_jobs": self.n_jobs, "random_state": self.seed}


@dataclass(frozen=True)
class Choice:
    """An estimator to fit, its method and the reasons for it."""

    method: str
    estimator: Any
    reasons: list[str] = field(default_factory=list)


def regularizer_of(method: str, p: float) -> Any:
    """The weight regulariser of a convex method, or SMKL's."""
    makers: dict[str, Callable[[], Any]] = {
        "lp": lambda: LpNorm(p=p),
        "elasticnet": ElasticNet,
        "smkl": SMKL,
        "uniform": Uniform,
    }
    return makers[method]()


def make(method: str, task: str, kernels: Any, options: Options) -> Any:
    """The estimator of a method, unfitted."""
    kind = "Classifier" if task == "classification" else "Regressor"
    if options.approximation and method in ("gomp", "empirical-bayes", "gmkl"):
        raise CliError(
            f"--method {method} has no low-rank form: leave out --approximation, or use --method lp."
        )
    if method == "gomp":
        return getattr(kw, f"GroupOMP{kind}")(kernels, **options.shared)
    if method == "empirical-bayes":
        return getattr(kw, f"EmpiricalBayes{kind}")(kernels, tol=options.tol, **options.shared)
    if method == "gmkl":
        if isinstance(kernels, str):
            raise CliError("--method gmkl learns a kernel of the columns, and Gram matrices have none.")
        kernel = GroupProductRBF(options.groups) if options.groups else ProductRBF()
        return getattr(kw, f"GMKL{kind}")(kernel, C=options.C, **options.shared)
    regularizer = regularizer_of(method, options.p)
    own = {"regularizer": regularizer, "C": options.C, "tol": options.tol}
    own |= {"approximation": options.approximation, "rank": options.rank}
    return getattr(kw, f"MKL{kind}")(kernels, **own, **options.shared)


def choose(method: str, task: str, kernels: Any, X: Any, y: np.ndarray, options: Options) -> Choice:
    """The estimator of a method; "auto" asks `theory.suggest`."""
    if method != "auto":
        return Choice(method, make(method, task, kernels, options))
    from ...theory import suggest

    found = suggest(kernels, X, y, task=task, random_state=options.seed)
    if found.method == "greedy":
        model = make("gomp", task, kernels, options).set_params(n_kernels=found.n_kernels)
        return Choice("gomp", model, found.reasons)
    model = make("lp", task, kernels, options).set_params(regularizer=found.regularizer)
    return Choice("uniform" if np.isinf(found.p) else "lp", model, found.reasons)


def search_of(method: str, task: str, kernels: Any, options: Options, cv: Any = FOLDS) -> Any:
    """An estimator that chooses parameters of a method by cross-validation; itself where there are none."""
    kind = "Classifier" if task == "classification" else "Regressor"
    model = make("lp" if method == "auto" else method, task, kernels, options)
    if method == "empirical-bayes":
        return model
    if method == "gomp":
        alphas = np.geomspace(1.0, 1e-4, 5)
        search = getattr(kw, f"GroupOMP{kind}CV")
        return search(kernels, alphas=alphas, cv=cv, n_jobs=options.n_jobs, random_state=options.seed)
    if method == "gmkl":
        return GridSearchCV(model, {"C": list(COSTS[1:])}, cv=cv, n_jobs=options.n_jobs)
    search = getattr(kw, f"MKL{kind}CV")
    return search(
        kernels, regularizers=candidates(method), Cs=COSTS, cv=cv, tol=options.tol, n_jobs=options.n_jobs
    )


def candidates(method: str) -> list[Any]:
    """Regularisers that --tune chooses from."""
    if method in ("auto", "lp"):
        norms: list[Any] = [LpNorm(p=p) for p in NORMS]
        return [*norms, Uniform()] if method == "auto" else norms
    if method == "elasticnet":
        return [ElasticNet(l1_ratio=ratio) for ratio in RATIOS]
    return [regularizer_of(method, 2.0)]


def check_room(n_rows: int, n_kernels: int, limit: int | None) -> None:
    """Refuse a search whose matrices, all held at once, do not fit into memory."""
    needed, room = 8 * n_rows**2 * (n_kernels + 2), limit or free_memory()
    if room is not None and needed > room:
        raise CliError(
            f"cross-validation holds {n_kernels} matrices of {n_rows} rows, {show_bytes(needed)}, and "
            f"{show_bytes(room)} are free: leave out --tune, or use fewer rows or kernels."
        )
