"""Methods by name: their estimators, what --tune chooses, and fits with progress, Ctrl-C and checkpoint."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from ... import estimators as kw
from ...gram.memory import free_memory, show_bytes
from ...kernels.parametric import GroupProductRBF, ProductRBF
from ...regularizers import SMKL, ElasticNet, LpNorm, Uniform
from ._columns import Parts
from ._console import CliError, StoppedError, note, refusing
from ._monitor import Brake, Monitor, stopping_with

#: what is tried with --tune
NORMS = (1.0, 4.0 / 3.0, 2.0, 4.0)
RATIOS = (0.1, 0.5, 0.9)
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
FOLDS = 5


@dataclass(frozen=True)
class Options:
    """What to fit, and what the method may be told."""

    p: float = 2.0
    C: float = 1.0
    tol: float = 1e-3
    memory_limit: str | None = None
    n_jobs: int | None = None
    seed: int = 0
    groups: dict[str, list[int]] | None = None
    approximation: str | None = None
    rank: int = 100
    method: str = "auto"
    tune: bool = False
    task: str = "classification"

    @property
    def shared(self) -> dict[str, Any]:
        return {"memory_limit": self.memory_limit, "n_jobs": self.n_jobs, "random_state": self.seed}


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


def choose(kernels: Any, X: Any, y: np.ndarray, options: Options) -> tuple[str, Any, list[str]]:
    """Method, its estimator, and the reasons; "auto" asks `theory.suggest`."""
    method, task = options.method, options.task
    if method != "auto":
        return method, make(method, task, kernels, options), []
    from ...theory import suggest

    found = suggest(kernels, X, y, task=task, random_state=options.seed)
    if found.method == "greedy":
        model = make("gomp", task, kernels, options).set_params(n_kernels=found.n_kernels)
        return "gomp", model, found.reasons
    model = make("lp", task, kernels, options).set_params(regularizer=found.regularizer)
    return "uniform" if np.isinf(found.p) else "lp", model, found.reasons


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


# -- fitting ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A fitted model, how it was chosen, how long it took, and whether Ctrl-C ended it.

    `n_machines` are those trained now, without those of an interrupted fit that was gone on with.
    """

    model: Any
    method: str
    reasons: list[str]
    seconds: float
    interrupted: bool = False
    n_machines: int | None = None
    notes: list[str] = field(default_factory=list)


def fit_model(options: Options, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    """Choose and fit; Ctrl-C after the first machine keeps the model so far."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fit = _tuned if options.tune else _fitted
        outcome = fit(options, parts, y, checkpoint, monitor)
    name_widths(outcome.model, parts)
    messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    notes = list(dict.fromkeys(messages)) if not outcome.interrupted else []
    return replace(outcome, notes=notes)


def name_widths(model: Any, parts: Parts) -> None:
    """Call the widths of a generalized model by the columns of the file, where there is one for each."""
    kernel = getattr(model, "kernel_", None)
    if parts.groups is None and kernel is not None and len(model.kernel_names_) == len(parts.names):
        model.kernel_names_ = list(parts.names)
        kernel.names_ = list(parts.names)


def _fitted(options: Options, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    with refusing(f"--method {options.method}"):
        monitor.stage("choosing a method" if options.method == "auto" else f"method {options.method}")
        with stopping_with("Stopped while choosing a method; nothing was saved."):
            method, model, reasons = choose(parts.kernels, parts.X, y, options)
        began = time.monotonic()
        if "checkpoint" in model.get_params(deep=False):
            model.set_params(checkpoint=checkpoint)
        monitor.stage(f"fitting {method}")
        monitor.part("Gram matrices and first machine")
        brake = watched_fit(model, parts.X, y, checkpoint, monitor)
    seconds = time.monotonic() - began
    return Outcome(model, method, reasons, seconds, brake.asked, brake.n_machines)


def watched_fit(model: Any, X: Any, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Brake:
    """Fit, telling the monitor of every machine; the brake says whether Ctrl-C ended it."""
    with Brake(monitor, float(model.tol)) as brake:
        model._listener = brake
        try:
            model.fit(X, y)
        except ValueError as error:
            if "checkpoint" in str(error):
                raise CliError(f"{error} With --no-resume the fit starts anew.") from error
            raise
        except KeyboardInterrupt:
            kept = f" The checkpoint {checkpoint} is kept: --resume goes on." if checkpoint.exists() else ""
            raise StoppedError(
                f"Stopped before the first model was there; nothing was saved.{kept}"
            ) from None
        finally:
            vars(model).pop("_listener", None)
    return brake


def _tuned(options: Options, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    """Parameters by cross-validation on the training part, then the best on all of it."""
    check_folds(y, options.task)
    names = parts.kernels if not isinstance(parts.kernels, str) else parts.encoder.names
    check_room(len(y), len(names), None)
    if options.method == "empirical-bayes":
        note("--tune: empirical Bayes learns weights and noise from the evidence; there is nothing to tune.")
    monitor.stage(f"choosing parameters of {options.method} by {FOLDS}-fold cross-validation")
    began = time.monotonic()
    stopped = "Stopped while choosing parameters; there is no model yet, nothing was saved."
    with stopping_with(stopped), refusing("--tune"):
        search = search_of(options.method, options.task, parts.kernels, options)
        search.fit(parts.X, y)
    seconds = time.monotonic() - began
    model = getattr(search, "best_estimator_", search)
    method = "lp" if options.method == "auto" else options.method
    return Outcome(model, method, tuned_words(search), seconds)


def check_folds(y: np.ndarray, task: str) -> None:
    """Refuse cross-validation with classes smaller than the number of folds."""
    counts = np.unique(y, return_counts=True)[1] if task == "classification" else np.array([len(y)])
    if counts.min() < FOLDS:
        what = "class" if task == "classification" else "training part"
        raise CliError(
            f"--tune: {FOLDS} folds need at least {FOLDS} training rows in every {what}, and one has "
            f"{counts.min()}: leave --tune out, or get more data."
        )


def tuned_words(search: Any) -> list[str]:
    """What cross-validation chose, in words."""
    if not hasattr(search, "best_params_"):
        return []
    chosen = ", ".join(f"{name} = {shown(value)}" for name, value in search.best_params_.items())
    return [f"cross-validation on the training part chose {chosen} (score {search.best_score_:.3f})"]


def shown(value: Any) -> str:
    """A parameter in few characters."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
