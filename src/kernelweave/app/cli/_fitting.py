"""Fitting a model under the eyes of the user: progress, Ctrl-C, checkpoint."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ._console import note
from ._errors import CliError, StoppedError, refusing
from ._methods import FOLDS, Options, check_room, choose, search_of
from ._monitor import Monitor
from ._parts import Parts
from ._stop import Brake, stopping_with


@dataclass(frozen=True)
class Plan:
    """What to fit."""

    method: str
    task: str
    tune: bool
    options: Options


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


def fit_model(plan: Plan, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    """Choose and fit; Ctrl-C after the first machine keeps the model so far."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        outcome = (
            _tuned(plan, parts, y, monitor) if plan.tune else _fitted(plan, parts, y, checkpoint, monitor)
        )
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


def _fitted(plan: Plan, parts: Parts, y: np.ndarray, checkpoint: Path, monitor: Monitor) -> Outcome:
    with refusing(f"--method {plan.method}"):
        monitor.stage("choosing a method" if plan.method == "auto" else f"method {plan.method}")
        with stopping_with("Stopped while choosing a method; nothing was saved."):
            choice = choose(plan.method, plan.task, parts.kernels, parts.X, y, plan.options)
        model, began = choice.estimator, time.monotonic()
        if "checkpoint" in model.get_params(deep=False):
            model.set_params(checkpoint=checkpoint)
        monitor.stage(f"fitting {choice.method}")
        monitor.part("Gram matrices and first machine")
        brake = watched_fit(model, parts.X, y, checkpoint, monitor)
    seconds = time.monotonic() - began
    return Outcome(model, choice.method, choice.reasons, seconds, brake.asked, brake.n_machines)


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


def _tuned(plan: Plan, parts: Parts, y: np.ndarray, monitor: Monitor) -> Outcome:
    """Parameters by cross-validation on the training part, then the best on all of it."""
    check_folds(y, plan.task)
    names = parts.kernels if not isinstance(parts.kernels, str) else parts.encoder.names
    check_room(len(y), len(names), None)
    if plan.method == "empirical-bayes":
        note("--tune: empirical Bayes learns weights and noise from the evidence; there is nothing to tune.")
    monitor.stage(f"choosing parameters of {plan.method} by {FOLDS}-fold cross-validation")
    began = time.monotonic()
    stopped = "Stopped while choosing parameters; there is no model yet, nothing was saved."
    with stopping_with(stopped), refusing("--tune"):
        search = search_of(plan.method, plan.task, parts.kernels, plan.options)
        search.fit(parts.X, y)
    seconds = time.monotonic() - began
    model = getattr(search, "best_estimator_", search)
    method = "lp" if plan.method == "auto" else plan.method
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
