"""Methods by name: their estimators, what is tuned of them, and fits with progress, Ctrl-C and checkpoint."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from ... import estimators as kw
from ...estimators._search import BaseSearch, default_splitter, edge
from ...gram.choice import free_memory, parse_memory, show_bytes
from ...kernels import Views
from ...kernels.parametric import GroupProductRBF, ProductRBF
from ...regularizers import REGULARIZERS, ElasticNet, LpNorm
from ._columns import Parts
from ._console import CliError, StoppedError, note, refusing
from ._monitor import Brake, Monitor, on_ctrl_c, stopping_with
from ._splits import checked_folds, fewest, make_folds

#: what is tried where parameters are tuned: norms in even steps of 1/p and ratios over all there are, and
#: so many costs and ridges to begin with
NORMS = (1.0, 4.0 / 3.0, 2.0, 4.0, np.inf)
RATIOS = (0.0, 0.1, 0.5, 0.9, 1.0)
COSTS, RIDGES = 5, 5
FOLDS = 5

#: costs of one kernel with parameters
GMKL_COSTS = (0.1, 1.0, 10.0, 100.0)

#: numbers of kernels that are tried in a greedy model of survival
SIZES = (1, 2, 4, 8, 16)

#: methods that do not learn from censored times
NO_SURVIVAL = ("gmkl", "empirical-bayes")

#: samples with all views from which on a method is chosen by them
FEWEST = 30


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
    missing: str = "error"
    group_of: np.ndarray | None = None
    asked: bool = False  # whether `tune` is the user's own word
    normalize: str = "variance"
    time_budget: float | None = None

    @property
    def kind(self) -> str:
        """What the names of the estimators end in."""
        return {"classification": "Classifier", "survival": "Survival"}.get(self.task, "Regressor")

    @property
    def competes(self) -> bool:
        """Whether no method is named, and candidates compete for the model."""
        return self.tune and self.method == "auto"

    @property
    def of_survival(self) -> Options:
        """The same for censored times: weights by an lp norm where none is named and nothing tuned."""
        if self.method in NO_SURVIVAL:
            raise CliError(
                f"--method {self.method} has no form for --time and --event: use lp, elasticnet, smkl, gomp "
                "or uniform."
            )
        plain = self.method == "auto" and not self.tune
        return replace(self, task="survival", method="lp" if plain else self.method)


def make(method: str, kernels: Any, options: Options) -> Any:
    """The estimator of a method, unfitted."""
    if options.approximation and method in ("gomp", "empirical-bayes", "gmkl"):
        raise CliError(
            f"--method {method} has no low-rank form: leave out --approximation, or use --method lp."
        )
    own: dict[str, Any] = {"C": options.C, "tol": options.tol}
    if method == "gomp":
        family, own = "GroupOMP", {}
    elif method == "empirical-bayes":
        family, own = "EmpiricalBayes", {"tol": options.tol}
    elif method == "gmkl":
        if isinstance(kernels, str):
            raise CliError("--method gmkl learns a kernel of the columns, and Gram matrices have no columns.")
        if options.normalize != "variance":
            raise CliError("--normalize is for weights of several kernels: --method gmkl learns one.")
        family, own = "GMKL", {"C": options.C}
        kernels = GroupProductRBF(options.groups) if options.groups else ProductRBF()
    else:
        family, own["regularizer"] = "MKL", LpNorm(options.p) if method == "lp" else REGULARIZERS[method]()
        own |= {"approximation": options.approximation, "rank": options.rank}
        if options.missing == "margin" and (method, options.p) != ("lp", 1.0):
            raise CliError("--missing margin is for sparse weights: use --method lp with --p 1 or --tune.")
    if method != "gmkl":
        own["normalize"] = options.normalize
    shared = {"memory_limit": options.memory_limit, "n_jobs": options.n_jobs, "random_state": options.seed}
    return with_missing(getattr(kw, family + options.kind)(kernels, **own, **shared), method, options.missing)


def with_missing(model: Any, method: str, missing: str) -> Any:
    """The estimator, told what to do with views that samples lack, where it can do anything about it."""
    if missing == "error":
        return model
    if "missing" not in model.get_params(deep=False):
        raise CliError(
            f"--missing {missing}: --method {method} needs all views of every sample; use --method lp, or "
            "leave samples that lack one out with --drop-rows."
        )
    return model.set_params(missing=missing)


def choose(kernels: Any, X: Any, y: np.ndarray, options: Options) -> tuple[str, Any, list[str]]:
    """Method, its estimator, and the reasons; "auto" asks `theory.suggest`."""
    if options.method != "auto":
        return options.method, make(options.method, kernels, options), []
    if options.task == "survival":
        return "lp", make("lp", kernels, options), []
    from ...theory import suggest

    if options.missing == "margin":
        return "lp", make("lp", kernels, replace(options, p=1.0)), ["--missing margin is for sparse weights"]
    if isinstance(X, Views):
        rows = np.flatnonzero(X.observed.all(axis=1))
        known = options.task == "regression" or len(np.unique(y[rows])) == len(np.unique(y))
        if len(rows) < FEWEST or not known:
            return "lp", make("lp", kernels, options), ["too few samples have all views to choose by them"]
        X, y = X[rows], y[rows]
    found = suggest(kernels, X, y, task=options.task, random_state=options.seed)
    if found.method == "greedy":
        return "gomp", make("gomp", kernels, options).set_params(n_kernels=found.n_kernels), found.reasons
    model = make("lp", kernels, options).set_params(regularizer=found.regularizer)
    return "uniform" if np.isinf(found.p) else "lp", model, found.reasons


def search_of(method: str, kernels: Any, options: Options, cv: Any = FOLDS) -> Any:
    """An estimator that chooses parameters of a method by cross-validation, if it has any to choose.

    For "auto" it is one that lets candidates compete.
    """
    margin, n_jobs = options.missing == "margin", options.n_jobs
    if method == "auto":
        rule = {"normalize": options.normalize, "missing": options.missing, "tol": options.tol}
        given = {"time_budget": options.time_budget, "n_jobs": n_jobs}
        return getattr(kw, f"MKLAuto{options.kind}")(kernels, cv=cv, **rule, **given)
    options = replace(options, p=1.0) if margin else options
    model = make(method, kernels, options)
    if method == "empirical-bayes":
        return model
    if method == "gomp" and options.task == "survival":
        return GridSearchCV(model, {"n_kernels": list(SIZES)}, cv=cv, n_jobs=n_jobs)
    if method == "gomp":
        search = getattr(kw, f"GroupOMP{options.kind}CV")
        rule = {"normalize": options.normalize, "random_state": options.seed}
        greedy = search(kernels, alphas=RIDGES, cv=cv, n_jobs=n_jobs, **rule)
        return with_missing(greedy, method, options.missing)
    if method == "gmkl":
        return GridSearchCV(model, {"C": list(GMKL_COSTS)}, cv=cv, n_jobs=n_jobs)
    tried: list[Any] = [model.regularizer]
    if method == "lp" and not margin:
        tried = [LpNorm(p=p) for p in NORMS]
    elif method == "elasticnet":
        tried = [ElasticNet(l1_ratio=ratio) for ratio in RATIOS]
    search = getattr(kw, f"MKL{options.kind}CV")
    rule = {"normalize": options.normalize, "tol": options.tol}
    learned = search(kernels, regularizers=tried, Cs=COSTS, cv=cv, n_jobs=n_jobs, **rule)
    return with_missing(learned, method, options.missing)


# -- fitting ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A fitted model, how it was chosen, how long it took, and whether Ctrl-C ended it.

    `n_machines` counts the steps of this run, without those of an interrupted fit that it resumed.
    `reason` and `candidates` are those of a competition.
    """

    model: Any
    method: str
    reasons: list[str]
    seconds: float
    interrupted: bool = False
    n_machines: int | None = None
    notes: list[str] = field(default_factory=list)
    tuned: bool = False
    reason: str | None = None
    candidates: list[dict[str, Any]] | None = None


def fit_model(options: Options, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    """Choose and fit; Ctrl-C after the first step keeps the model so far."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        search = _competed if options.competes else _tuned
        fit = search if options.tune and can_tune(options, parts, y) else _fitted
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
        monitor.part("Gram matrices and first step")
        brake = watched_fit(model, parts.X, y, checkpoint, monitor)
    seconds = time.monotonic() - began
    return Outcome(model, method, reasons, seconds, brake.asked, brake.n_machines)


def watched_fit(model: Any, X: Any, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Brake:
    """Fit, telling the monitor of every step; the brake says whether Ctrl-C ended it."""
    model._listener = brake = Brake(monitor, float(model.tol))
    with on_ctrl_c(brake.heard):
        try:
            model.fit(X, y)
        except ValueError as error:
            if "checkpoint" in str(error):
                raise CliError(f"{error} With --no-resume the fit starts again.") from error
            raise
        except KeyboardInterrupt:
            kept = f" The checkpoint {checkpoint} is kept: --resume continues." if checkpoint.exists() else ""
            raise StoppedError(f"Stopped before there was a model; nothing was saved.{kept}") from None
        finally:
            vars(model).pop("_listener", None)
    return brake


def _competed(options: Options, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    """Candidates that compete on folds of the training part, and what won on all of it."""
    n_folds, groups = usual_folds(options, y), options.group_of
    splitter, _ = checked_folds(options.task, y, n_folds, options.seed, groups, "--tune")
    monitor.stage(f"candidates compete in {n_folds}-fold cross-validation")
    monitor.part("Gram matrices")
    began = time.monotonic()
    stopped = "Stopped while candidates competed; there is no model yet, nothing was saved."
    with stopping_with(stopped), refusing("--tune"):
        auto = search_of("auto", parts.kernels, options, splitter)
        auto._listener = monitor.part
        try:
            auto.fit(parts.X, y, **({} if groups is None else {"groups": groups}))
        finally:
            vars(auto).pop("_listener", None)
    found, taken = auto.candidates_, auto.cv_results_["candidate"][auto.best_index_]
    among = f"{len(found) - 1} candidates and their stack" if len(found) > 2 else "one candidate"
    said = f"cross-validation on the training part chose {taken!r}, of {among}"
    steps, seconds = int(np.sum(auto.n_iter_)), time.monotonic() - began
    return Outcome(
        auto, "auto", [said], seconds, n_machines=steps, tuned=True, reason=auto.reason_, candidates=found
    )


def usual_folds(options: Options, y: np.ndarray) -> int:
    """The folds of a competition: five, or as many as the smallest class has rows or groups."""
    if options.task == "survival":
        return FOLDS
    return int(default_splitter(y, options.group_of, options.task == "classification").n_splits)


def _tuned(options: Options, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    """Parameters by cross-validation on the training part, then the best on all of it."""
    method, brakes = options.method, []
    cv = make_folds(options.task, y, FOLDS, options.seed, options.group_of, "--tune")
    monitor.stage(f"choosing parameters of {method} by {FOLDS}-fold cross-validation")
    began = time.monotonic()
    stopped = "Stopped while choosing parameters; there is no model yet, nothing was saved."

    def fit_best(model: Any, X: Any, y: np.ndarray, sample_weight: Any) -> Any:
        if "checkpoint" in model.get_params(deep=False):
            model.set_params(checkpoint=checkpoint)
        monitor.stage(f"fitting {method}")
        brakes.append(watched_fit(model, X, y, checkpoint, monitor))
        return model

    with stopping_with(stopped), refusing("--tune"):
        search = search_of(method, parts.kernels, options, cv)
        if isinstance(search, BaseSearch):
            search._listener, search._fit_best = monitor.part, fit_best
        search.fit(parts.X, y)
    brake = brakes[0] if brakes else None
    return Outcome(
        search.best_estimator_,
        method,
        search_words(search),
        time.monotonic() - began,
        brake is not None and brake.asked,
        None if brake is None else brake.n_machines,
        tuned=True,
    )


def search_words(search: Any) -> list[str]:
    """What a search chose, among what, and how far its grid was extended."""
    chosen = ", ".join(_setting(name, value) for name, value in search.best_params_.items())
    said = [f"cross-validation on the training part chose {chosen} (score {search.best_score_:.3f})"]
    points = search.cv_results_["params"]
    extended = getattr(search, "grid_extended_", {})
    for name in search.best_params_:
        tried = list(dict.fromkeys(point[name] for point in points))
        if isinstance(tried[0], float):
            words = f"{name} was tried from {min(tried):.4g} to {max(tried):.4g}, {len(tried)} values"
            said.append(
                words + (", beyond the first grid: its best lay at an end" if name in extended else "")
            )
        elif len(tried) > 1 and not isinstance(tried[0], int):
            parts = [_setting(name, value).partition(" = ") for value in tried]
            said.append(f"{parts[0][0]} was tried: {', '.join(value for _, _, value in parts)}")
    if not isinstance(search, BaseSearch) and edge(search.cv_results_["mean_test_score"], search.best_index_):
        said.append(
            f"scores still rise towards {chosen}, at the end of the values tried: search on in Python"
        )
    return said


def _setting(name: str, value: Any) -> str:
    """A parameter and its value in words; of an lp norm its p.

    Examples
    --------
    >>> _setting("regularizer", LpNorm(4 / 3)), _setting("C", 10.0)
    ('p = 4/3', 'C = 10')
    """
    if isinstance(value, LpNorm):
        p = "inf" if np.isinf(value.p) else str(Fraction(value.p).limit_denominator(9))
        return f"p = {p}"
    return f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"


def can_tune(options: Options, parts: Parts, y: np.ndarray) -> bool:
    """Whether there is anything to tune, and rows and memory for it; an error where it was asked for."""
    if options.method == "empirical-bayes":
        if options.asked:
            note(
                "--tune: empirical Bayes learns weights and noise from the evidence; nothing is to be tuned."
            )
        return False
    trouble = no_search(options, parts, y)
    if trouble and options.asked:
        raise CliError(f"--tune: {trouble}: leave --tune out, or use --no-tune.")
    if trouble:
        note(f"Nothing is tuned: {trouble}. C = {options.C:g} is not chosen by cross-validation.")
    return not trouble


def no_search(options: Options, parts: Parts, y: np.ndarray) -> str:
    """What is in the way: classes smaller than the number of folds, or matrices that exceed the memory."""
    count, _ = fewest(options.task, y)
    if options.competes and options.task != "survival":
        try:
            usual_folds(options, y)
        except ValueError as error:
            return str(error).removeprefix("cv=None: ").partition(": add some")[0]
    elif count < FOLDS:
        where = {
            "classification": " in every class, and one has",
            "survival": " with an event, and there are",
        }
        there = where.get(options.task, ", and there are")
        return f"{FOLDS} folds need at least {FOLDS} training rows{there} {count}"
    M = len(parts.encoder.names if isinstance(parts.kernels, str) else parts.kernels)
    needed, limit = 8 * len(y) ** 2 * (M + 2), options.memory_limit
    room = free_memory() if limit is None else parse_memory(limit)
    if room is not None and needed > room:
        held = f"cross-validation holds {M} matrices of {len(y)} rows, {show_bytes(needed)}, and "
        return held + (f"{show_bytes(room)} are free" if limit is None else f"--memory-limit is {limit}")
    return ""
