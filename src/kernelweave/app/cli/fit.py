"""``kernelweave fit``: from a data file to a model, its weights, predictions and report."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from . import _options as opt
from ._console import check_spec, guarded


@guarded
@opt.spread
def fit(
    source: opt.Source,
    reading: opt.Reading,
    choice: opt.KernelChoice,
    out: Annotated[Path, typer.Option(help="Folder for model, weights, predictions and report.")] = Path(
        "kernelweave-out"
    ),
    method: Annotated[
        opt.Method,
        typer.Option(help="How weights are learned; auto: the method that predicts held-out rows best."),
    ] = "auto",
    p: Annotated[
        float | None,
        typer.Option("--p", min=1.0, help="Norm of --method lp: 1 is sparse. Not tuned if given."),
    ] = None,
    C: Annotated[float | None, typer.Option("--C", help="Cost of errors. Not tuned if given.")] = None,
    tune: Annotated[
        bool | None,
        typer.Option(
            "--tune/--no-tune",
            help="Choose C and p by cross-validation (the default), or fit once with --C and --p.",
        ),
    ] = None,
    time_budget: Annotated[
        float | None,
        typer.Option(
            help="Seconds that --method auto may spend on candidates; the simplest are tried first."
        ),
    ] = None,
    tol: Annotated[
        float,
        typer.Option(
            help="Stop when the model is certified to be this close to the optimum (relative duality gap)."
        ),
    ] = 1e-3,
    test_size: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of the rows held out to score the model.")
    ] = 0.25,
    seed: opt.Seed = 0,
    memory_limit: opt.Memory = None,
    approximation: opt.Approximation = None,
    rank: opt.Rank = 100,
    normalize: opt.Normalize = "variance",
    n_jobs: opt.Jobs = None,
    resume: Annotated[
        bool | None,
        typer.Option("--resume/--no-resume", help="Resume an interrupted fit (the default), or start again."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Rename files in the way that fit did not write, instead of stopping."),
    ] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html.")] = True,
    stability: Annotated[
        bool,
        typer.Option("--stability/--no-stability", help="Compute intervals of the weights for the report."),
    ] = True,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Learn a model and the weights of its kernels from a table, and report on both.

    Several tables of the same samples are given by --view NAME=FILE, and are joined by sample IDs:
    fit --view rna=rna.csv --view meth=meth.parquet --labels clinical.csv:subtype --id sample.

    Without --method, candidates from the plain sum of the kernels to sparse weights compete in
    cross-validation on the training rows, and the best one, or a mean of several, is the model.
    With --method, only the parameters of that method are chosen. --no-tune fits once.

    --time months --event died learns the risk of an event from censored times.

    Ctrl-C during a fit keeps the model learned so far; the same command then resumes it.
    """
    reading = opt.settled(source, reading)
    check_spec(choice.spec)
    opt.check_target(source, reading)
    from ._methods import Options
    from ._run_fit import Job, run

    fixed = C is not None or p is not None or approximation is not None
    numbers = {"p": p or 2.0, "C": 1.0 if C is None else C, "tol": tol, "seed": seed, "rank": rank}
    rules = {"approximation": approximation, "normalize": normalize, "memory_limit": memory_limit}
    tuning = {"tune": not fixed if tune is None else tune, "asked": tune is not None}
    options = Options(method=method, n_jobs=n_jobs, time_budget=time_budget, **numbers, **rules, **tuning)  # type: ignore[arg-type]
    if options.competes and not choice.kinds:
        choice = replace(choice, kinds=["auto"])
    options = options if reading.time is None else options.of_survival
    job = Job(source, out, reading, choice, options, test_size, report, stability, sys.argv[1:], force)
    run(job, resume, quiet, as_json)
