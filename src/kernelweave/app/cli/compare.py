"""``kernelweave compare``: every method and the baselines, by nested cross-validation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import _options as opt
from ._console import CliError, check_spec, guarded


@guarded
@opt.spread
def compare(
    source: opt.Source,
    reading: opt.Reading,
    choice: opt.KernelChoice,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods and baselines to compare, separated by commas. By default all but "
            "auto, which is the default of fit."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the outer cross-validation.")] = 5,
    tol: Annotated[
        float,
        typer.Option(
            help="Stop when a model is certified to be this close to its optimum (relative duality gap)."
        ),
    ] = 1e-3,
    seed: opt.Seed = 0,
    n_jobs: opt.Jobs = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Compare methods with simpler models by nested cross-validation, and say whether MKL helps.

    Parameters of every method are chosen by cross-validation inside each training part; the scores
    are computed on rows that had no part in it.

    The competition that fit holds by default is left out unless it is named: --methods "auto,uniform sum".
    """
    reading = opt.settled(source, reading)
    check_spec(choice.spec)
    opt.check_target(source, reading)
    from ._comparing import compare_all, verdict
    from ._console import print_json
    from ._methods import Options
    from ._monitor import Monitor, stopping_with
    from ._splits import make_folds
    from ._tables import design

    with stopping_with("Stopped; there is no comparison yet."), Monitor(quiet) as monitor:
        monitor.stage(f"reading {source.title}")
        ready = design(source, reading, choice)
        target = ready.target
        names = chosen_methods(methods, not hasattr(ready, "grams"), target.task)
        outer = make_folds(target.task, target.y, folds, seed, ready.group_of, f"--folds {folds}")
        options = Options(tol=tol, n_jobs=n_jobs, seed=seed, task=target.task, missing=reading.missing)
        monitor.stage("comparing")
        entries = compare_all(names, ready, outer, options, monitor)
    found = verdict(entries)
    if as_json:
        print_json(document(ready, entries, found))
    else:
        show_ranking(ready, entries, found, folds)


def chosen_methods(text: str | None, table: bool, task: str = "classification") -> list[str]:
    """Methods by name, all but the competition by default; without columns those that need none."""
    from ._comparing import LEARNED, OF_COLUMNS, SIMPLE
    from ._methods import NO_SURVIVAL

    known = [*LEARNED, *SIMPLE]
    if not table:
        known = [name for name in known if name not in ("gmkl", *OF_COLUMNS)]
    if task == "survival":
        known = [name for name in known if name not in (*NO_SURVIVAL, *OF_COLUMNS)]
    names = known if text is None else [name.strip() for name in text.split(",") if name.strip()]
    known = known if task == "survival" else ["auto", *known]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise CliError(f"--methods: {unknown[:1] or text!r} is not one of {', '.join(known)}.")
    return names


def document(ready: Any, entries: list[Any], found: Any) -> dict[str, Any]:
    """The comparison as plain data."""
    rows = [
        {
            "method": entry.name,
            "baseline": entry.baseline,
            "score": entry.mean,
            "error": entry.error,
            "scores": entry.scores,
            "kernels_used": entry.used,
            "seconds": entry.seconds,
            "certified": entry.proof,
            "failure": entry.failure or None,
        }
        for entry in entries
    ]
    said = {"mkl_helps": found.helps, "text": str(found)} if found else None
    return {"task": ready.target.task, "n_rows": len(ready.target.y), "methods": rows, "verdict": said}


def show_ranking(ready: Any, entries: list[Any], found: Any, folds: int) -> None:
    """The ranked table, and what it means."""
    import numpy as np

    from ._console import note, show
    from ._facts import METRICS
    from ._output import screen_table

    metric = METRICS[ready.target.task]
    title = f"{len(ready.target.y)} rows, {folds} outer folds, parameters chosen inside each training part"
    rows = []
    for entry in entries:
        used = f"{np.mean(entry.used):.1f}" if entry.used else "-"
        cells = (f"{entry.mean:.3f} ± {entry.error:.3f}", used, f"{entry.seconds:.1f}", entry.proof)
        name = entry.name + (" (baseline)" if entry.baseline else "")
        rows.append((entry.name, "failed", "", "", "") if entry.failure else (name, *cells))
    show(screen_table(title, ("method", metric, "kernels used", "seconds", "certified"), rows))
    if found is not None:
        show(str(found), soft_wrap=True, style="bold")
    for entry in entries:
        if entry.failure:
            note(f"{entry.name} failed: {entry.failure}")
