"""The steps of ``kernelweave fit``."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from ..._words import versions
from ...gram import parse_memory
from ._bundle import save_bundle, sketch, write_text
from ._columns import Parts, Target
from ._console import INTERRUPTED, MODEL, CliError, note, print_json
from ._design import design
from ._facts import (
    WEIGHT_COLUMNS,
    certificate,
    file_digest,
    live_kernels,
    predictions,
    score,
    trivial_score,
    weight_facts,
    weight_rows,
)
from ._folder import PREDICTIONS, REPORT, WEIGHTS, OutFolder
from ._methods import Options, Outcome, fit_model
from ._monitor import Monitor, stopping_with
from ._options import KernelChoice, Reading
from ._output import csv_text, print_summary, table_text
from .report import make_report


@dataclass(frozen=True)
class Job:
    """Everything a fit is asked for."""

    data: Path
    out: Path
    reading: Reading
    choice: KernelChoice
    options: Options
    test_size: float
    report: bool
    stability: bool
    command: list[str]
    force: bool = False

    @property
    def request(self) -> dict[str, Any]:
        """What the problem depends on; the tolerance may change when a fit goes on."""
        names = ("method", "tune", "p", "C", "seed", "approximation", "rank")
        return {
            "data": str(self.data),
            "test_size": self.test_size,
            **{name: getattr(self.options, name) for name in names},
            "reading": asdict(self.reading),
            "kernels": asdict(self.choice),
        }


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows held out."""

    train: np.ndarray
    test: np.ndarray

    @property
    def shown(self) -> np.ndarray:
        """The rows predictions are written for: the held-out ones, or all where none are."""
        return self.test if len(self.test) else self.train


def split_rows(target: Target, test_size: float, seed: int) -> Split:
    """A random split, with the classes in proportion."""
    n = len(target.y)
    if test_size == 0:
        return Split(np.arange(n), np.arange(0))
    labels = target.y if target.task == "classification" else None
    try:
        train, test = train_test_split(np.arange(n), test_size=test_size, stratify=labels, random_state=seed)
    except ValueError as error:
        raise CliError(
            f"--test-size {test_size}: {error} Use another share, or 0 to hold nothing out."
        ) from None
    return Split(np.sort(train), np.sort(test))


def run(job: Job, resume: bool | None, quiet: bool, as_json: bool) -> None:
    """Read, split, fit, write, report, say."""
    check_options(job)
    with Monitor(quiet) as monitor:
        monitor.stage(f"reading {job.data.name}")
        ready = design(job.data, job.reading, job.choice)
        split = split_rows(ready.target, job.test_size, job.options.seed)
        parts = ready.split(split.train, split.shown)
        y, truth = ready.target.y[split.train], ready.target.y[split.shown]
        folder = out_folder(job)
        checkpoint = folder.start({**job.request, "sha256": file_digest(job.data)}, resume)
        options = replace(job.options, groups=parts.groups, task=ready.target.task)
        outcome = fit_model(options, parts, y, checkpoint, monitor)
        monitor.stage("writing model, weights and predictions")
        facts = describe(job, ready.target, split, parts, outcome)
        facts["trivial"] = trivial_score(ready.target.task, y, truth)
        facts["scores"] = write_all(folder, outcome.model, parts, facts, ready.ids[split.shown], truth)
        if not outcome.interrupted:
            folder.forget()
            if job.report:
                held_out = (parts.X_rest, truth) if len(split.test) else (None, None)
                facts |= report_facts(job, folder, outcome.model, (parts.X, y, *held_out), facts, monitor)
    finish(job.out, facts, outcome, as_json)


def out_folder(job: Job) -> OutFolder:
    """The folder to write to, unless that would touch what others made."""
    folder = OutFolder(job.out, job.force)
    folder.check_data(job.data)
    folder.check()
    return folder


def check_options(job: Job) -> None:
    """Refuse numbers that no fit can use, and options that exclude one another."""
    options = job.options
    for name, value in (("--C", options.C), ("--tol", options.tol)):
        if not 0 < value < np.inf:
            raise CliError(f"{name} {value:g}: expected a positive number.")
    if options.method == "gmkl" and (job.choice.spec or job.choice.kinds):
        raise CliError(
            "--method gmkl learns the widths of one Gaussian kernel, of columns, --groups or --bands: leave "
            "out --kernels and --kernel, or choose another method."
        )
    if options.approximation and options.tune:
        raise CliError(
            "--tune holds all Gram matrices, which --approximation is there to avoid: leave one out."
        )
    try:
        parse_memory(options.memory_limit)
    except ValueError:
        raise CliError(f"--memory-limit {options.memory_limit}: expected a size such as 2GB.") from None


def kernel_words(method: str, parts: Parts) -> str:
    """How the kernels came about; generalized MKL has one, with a width a column or group."""
    if method != "gmkl":
        return parts.why
    return f"the widths of one Gaussian kernel, one per {'group' if parts.groups else 'column'}"


def describe(job: Job, target: Target, split: Split, parts: Parts, outcome: Outcome) -> dict[str, Any]:
    """Everything to reproduce the fit, and what came of it, as plain data."""
    model = outcome.model
    return {
        "command": shlex.join(["kernelweave", *job.command]),
        "data": {
            "file": job.data.name,
            "path": str(job.data.resolve()),
            "sha256": file_digest(job.data),
        },
        "target": job.reading.target,
        "task": target.task,
        "task_because": target.why,
        "classes": target.classes,
        "n_train": len(split.train),
        "n_test": len(split.test),
        "scored_on": "held-out rows" if len(split.test) else "training rows",
        "kernels": kernel_words(outcome.method, parts),
        "n_kernels": len(model.kernel_names_),
        "n_used": live_kernels(model),
        "method": outcome.method,
        "reasons": outcome.reasons,
        "estimator": repr(model) if len(repr(model)) < 2000 else type(model).__name__,
        "certificate": certificate(model),
        "n_machines": np.sum(getattr(model, "n_iter_", 0)),
        "n_machines_now": outcome.n_machines,
        "objective": getattr(model, "objective_", None),
        "gram": getattr(model, "gram_", None),
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "notes": outcome.notes,
        "request": job.request,
        "versions": versions(),
    }


def write_all(
    folder: OutFolder,
    model: Any,
    parts: Parts,
    facts: dict[str, Any],
    ids: np.ndarray,
    truth: np.ndarray,
) -> dict[str, float]:
    """Write weights, predictions, model and settings, all or none; the scores. An earlier report goes."""
    columns = predictions(model, parts.X_rest)
    scores = score(facts["task"], truth, columns["prediction"])
    with folder.staging(stale=[REPORT]) as stage:
        save_bundle(stage, model, parts.encoder, {**facts, "scores": scores}, sketch(parts.X))
        write_text(stage / WEIGHTS, csv_text(WEIGHT_COLUMNS, weight_rows(model)))
        write_text(stage / PREDICTIONS, table_text(ids, truth, columns, parts.ident))
    return scores


def report_facts(
    job: Job,
    folder: OutFolder,
    model: Any,
    data: tuple[Any, ...],
    facts: dict[str, Any],
    monitor: Monitor,
) -> dict[str, Any]:
    """The report page; its baselines, and where it is. Ctrl-C leaves it out."""
    monitor.stage("report")
    title = f"{job.reading.target} from {job.data.name}"
    again = f"kernelweave report {shlex.quote(str(job.out))}"
    stopped = (
        f"Stopped while making the report; the model is in {job.out / MODEL}. `{again}` makes the report."
    )
    with stopping_with(stopped):
        page, baselines = make_report(model, data, title, facts, job.stability, job.options.seed, monitor)
        with folder.staging() as stage:
            write_text(stage / REPORT, page)
    return {"baselines": baselines, "report": str(job.out / REPORT)}


def finish(out: Path, facts: dict[str, Any], outcome: Outcome, as_json: bool) -> None:
    """Say what came of it; exit code 130 where Ctrl-C ended the fit."""
    import typer

    for message in outcome.notes:
        note(message)
    if as_json:
        print_json({**facts, "out": str(out), "weights": weight_facts(outcome.model)})
    else:
        print_summary(facts, outcome.model, out)
    if outcome.interrupted:
        value = facts["certificate"]["value"]
        reached = "" if value is None else f", {facts['certificate']['kind']} {value:.1e}"
        note(
            f"Stopped by Ctrl-C after {facts['n_machines']} machines{reached}: the model so far is in "
            f"{out / MODEL} and predicts. The same command goes on from there."
        )
        raise typer.Exit(INTERRUPTED)
