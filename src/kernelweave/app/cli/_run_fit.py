"""The steps of ``kernelweave fit``."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..._words import versions
from ...gram import parse_memory
from ...inspection._models import fitted_model
from ._bundle import save_bundle, sketch, write_text
from ._columns import Parts, Target
from ._console import INTERRUPTED, MODEL, CliError, note, print_json, refusing
from ._facts import (
    certificate,
    file_digest,
    live_kernels,
    predictions,
    score,
    trivial_score,
    views_column,
    weight_facts,
    weight_headings,
    weight_rows,
)
from ._folder import PREDICTIONS, REPORT, WEIGHTS, OutFolder
from ._methods import Options, Outcome, fit_model
from ._monitor import Monitor, stopping_with
from ._options import KernelChoice, Reading, Source
from ._output import below_trivial, csv_text, print_summary, table_text
from ._splits import split_rows
from ._tables import design
from .report import make_report, report_data

#: what of an outcome is told as it is
OUTCOME = ("seconds", "interrupted", "notes", "tuned", "reason", "candidates")


@dataclass(frozen=True)
class Job:
    """Everything a fit is asked for."""

    source: Source
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
        """What the problem depends on; the tolerance may change when a fit is resumed."""
        names = ("method", "tune", "p", "C", "seed", "approximation", "rank", "time_budget")
        return {
            **source_request(self.source),
            "test_size": self.test_size,
            **{name: getattr(self.options, name) for name in names},
            "reading": asdict(self.reading),
            "kernels": asdict(self.choice),
        }


def run(job: Job, resume: bool | None, quiet: bool, as_json: bool) -> None:
    """Read, split, fit, write, report, say."""
    check_options(job)
    with Monitor(quiet) as monitor:
        monitor.stage(f"reading {job.source.title}")
        ready = design(job.source, job.reading, job.choice)
        target = ready.target
        train, test, shown = split_rows(target, job.test_size, job.options.seed, ready.group_of)
        parts = ready.split(train, shown)
        y, truth = target.y[train], target.y[shown]
        folder = OutFolder(job.out, job.force)
        for path in job.source.files.values():
            folder.check_data(path)
        folder.check()
        digests = [file_digest(path) for path in job.source.files.values()]
        digest = digests if job.source.views else digests[0]
        checkpoint = folder.start({**job.request, "sha256": digest}, resume)
        own = None if ready.group_of is None else ready.group_of[train]
        options = replace(
            job.options, groups=parts.groups, task=target.task, missing=job.reading.missing, group_of=own
        )
        outcome = fit_model(options, parts, y, checkpoint, monitor)
        monitor.stage("writing model, weights and predictions")
        facts = {
            **describe(job, target, parts, outcome),
            "n_train": len(train),
            "n_test": len(test),
            "scored_on": "held-out rows" if len(test) else "training rows",
            "trivial": trivial_score(target.task, y, truth),
        }
        facts["scores"] = write_all(folder, outcome.model, parts, facts, ready.ids[shown], truth)
        if not outcome.interrupted:
            folder.forget()
            if job.report:
                samples = report_data(ready, parts, train, test)
                facts |= report_facts(job, folder, outcome.model, samples, facts, monitor)
    finish(job.out, facts, outcome, as_json)


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
    if options.time_budget is not None:
        if not 0 < options.time_budget < np.inf:
            raise CliError(f"--time-budget {options.time_budget:g}: expected a positive number of seconds.")
        if not options.competes:
            raise CliError(
                "--time-budget is for candidates that compete: leave it out, or --method, --C, --p, "
                "--approximation and --no-tune, which say what to fit."
            )
    if options.approximation and options.tune:
        raise CliError(
            "--tune holds all Gram matrices, which --approximation is there to avoid: leave one out."
        )
    with refusing(f"--memory-limit {options.memory_limit}"):
        parse_memory(options.memory_limit)


def describe(job: Job, target: Target, parts: Parts, outcome: Outcome) -> dict[str, Any]:
    """Everything to reproduce the fit, and what came of it, as plain data."""
    model, inner, kernels = outcome.model, fitted_model(outcome.model), parts.why
    if outcome.method == "gmkl":
        kernels = f"the widths of one Gaussian kernel, one per {'group' if parts.groups else 'column'}"
    return {
        "command": shlex.join(["kernelweave", *job.command]),
        "data": data_facts(job.source),
        "target": job.reading.outcome,
        "task": target.task,
        "task_because": target.why,
        "classes": target.classes,
        "kernels": kernels,
        "n_kernels": len(model.kernel_names_),
        "n_used": live_kernels(model),
        "method": outcome.method,
        "reasons": outcome.reasons,
        "estimator": repr(model) if len(repr(model)) < 2000 else type(model).__name__,
        "certificate": certificate(model),
        "n_machines": int(np.sum(getattr(model, "n_iter_", 0))),
        "n_machines_now": outcome.n_machines,
        "objective": getattr(inner, "objective_", None),
        "gram": getattr(inner, "gram_", None),
        **{name: getattr(outcome, name) for name in OUTCOME},
        "request": job.request,
        "versions": versions(),
    }


def source_request(source: Source) -> dict[str, Any]:
    """The files of a fit, as what it depends on."""
    if not source.views:
        return {"data": str(source.data)}
    return {"views": source.views, "labels": source.labels, "transpose": source.transpose}


def data_facts(source: Source) -> dict[str, Any]:
    """Names, places and checksums of the files."""
    files = [
        {"role": role, "file": path.name, "path": str(path.resolve()), "sha256": file_digest(path)}
        for role, path in source.files.items()
    ]
    if not source.views:
        return {key: files[0][key] for key in ("file", "path", "sha256")}
    return {"file": source.title, "files": files}


def write_all(
    folder: OutFolder, model: Any, parts: Parts, facts: dict[str, Any], ids: np.ndarray, truth: np.ndarray
) -> dict[str, float]:
    """Write weights, predictions, model and settings, all or none; the scores. An earlier report goes."""
    columns = predictions(model, parts.X_rest)
    columns |= views_column(model, parts.X_rest)
    scores = score(facts["task"], truth, next(iter(columns.values())))
    with folder.staging(stale=[REPORT]) as stage:
        save_bundle(stage, model, parts.encoder, {**facts, "scores": scores}, sketch(parts.X))
        write_text(stage / WEIGHTS, csv_text(weight_headings(model), weight_rows(model)))
        write_text(stage / PREDICTIONS, table_text(ids, truth, columns, parts.ident))
    return scores


def report_facts(
    job: Job, folder: OutFolder, model: Any, data: dict[str, Any], facts: dict[str, Any], monitor: Monitor
) -> dict[str, Any]:
    """The report page; what it compares, its verdict, and where it is. Ctrl-C leaves it out."""
    monitor.stage("report")
    title = f"{job.reading.outcome} from {job.source.title}"
    again = f"kernelweave report {shlex.quote(str(job.out))}"
    stopped = (
        f"Stopped while making the report; the model is in {job.out / MODEL}. `{again}` makes the report."
    )
    with stopping_with(stopped):
        options = {"stability": job.stability, "random_state": job.options.seed}
        page, found = make_report(model, data, title, facts, monitor, **options)
        with folder.staging() as stage:
            write_text(stage / REPORT, page)
    return {**found, "report": str(job.out / REPORT)}


def finish(out: Path, facts: dict[str, Any], outcome: Outcome, as_json: bool) -> None:
    """Say what came of it; exit code 130 where Ctrl-C ended the fit."""
    for message in [*outcome.notes, *below_trivial(facts)]:
        note(message)
    if as_json:
        print_json({**facts, "out": str(out), "weights": weight_facts(outcome.model)})
    else:
        print_summary(facts, outcome.model, out)
    if outcome.interrupted:
        value = facts["certificate"]["value"]
        reached = "" if value is None else f", {facts['certificate']['kind']} {value:.1e}"
        note(
            f"Stopped by Ctrl-C after {facts['n_machines']} steps{reached}: the model so far is in "
            f"{out / MODEL} and predicts. The same command resumes from there."
        )
        raise typer.Exit(INTERRUPTED)
