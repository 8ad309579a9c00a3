"""``kernelweave report``: the page about a model, made again or for the first time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._console import check_file, check_out, guarded, model_file

#: what of the facts goes to the page's account of the data
SHOWN = ("command", "target", "task_because", "kernels", "reasons", "seconds")


@guarded
def report(
    model: opt.Model,
    data: Annotated[
        Path | None, typer.Option(help="The file the model was fitted on; by default where it was then.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write; beside the model by default.")] = None,
    stability: Annotated[
        bool, typer.Option("--stability/--no-stability", help="Weight intervals over sub-samples.")
    ] = True,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Write report.html of a model, from the data it was fitted on."""
    file = model_file(model)
    if data is not None:
        check_file(data)
    check_out(out, file, data)
    from ._bundle import load_bundle, write_text
    from ._console import note, print_json
    from ._folder import REPORT, OutFolder
    from ._monitor import Monitor, stopping_with

    bundle = load_bundle(model)
    folder = OutFolder(bundle.path.parent) if out is None else None
    path = out or bundle.path.parent / REPORT
    if folder is not None:
        folder.check([REPORT], forced=False)
    with stopping_with("Stopped; no report was written."), Monitor(quiet) as monitor:
        monitor.stage("reading the data")
        source = training_file(bundle, data)
        samples = training_data(bundle, source)
        monitor.stage("report")
        options = {"stability": stability, "random_state": int(bundle.settings["request"]["seed"])}
        title = f"{bundle.target} from {source.name}"
        page, baselines = make_report(bundle.estimator, samples, title, bundle.settings, monitor, **options)
    if folder is None:
        write_text(path, page)
    else:
        with folder.staging() as stage:
            write_text(stage / REPORT, page)
    if as_json:
        print_json({"report": str(path), "baselines": baselines})
    else:
        note(f"Report written to {path}.")


def training_file(bundle: Any, data: Path | None) -> Path:
    """The file a model was fitted on; another one is refused."""
    from ._console import CliError
    from ._facts import file_digest

    known = bundle.settings["data"]
    path = data or Path(known["path"])
    if data is None and not path.exists():
        raise CliError(f"{path}, which the model was fitted on, is not there any more: name it with --data.")
    check_file(path)
    if file_digest(path) != known["sha256"]:
        raise CliError(
            f"{path} is not the file the model was fitted on, or was changed since: name that file "
            f"({known['file']}) with --data, or fit a model on this one."
        )
    return path


def training_data(bundle: Any, path: Path) -> dict[str, Any]:
    """Training part and held-out part, as they were for the fit."""
    from ._design import design
    from ._options import KernelChoice, Reading
    from ._run_fit import split_rows

    request = bundle.settings["request"]
    ready = design(path, Reading(**request["reading"]), KernelChoice())
    train, test, shown = split_rows(ready.target, request["test_size"], request["seed"])
    parts, y = ready.split(train, shown), ready.target.y
    held_out = {"X_test": parts.X_rest, "y_test": y[test]} if len(test) else {}
    return {"X": parts.X, "y": y[train], **held_out}


def make_report(
    model: Any, data: dict[str, Any], title: str, facts: dict[str, Any], monitor: Any, **options: Any
) -> tuple[str, list[dict[str, Any]]]:
    """The page, and the baselines it compares with: name, score and standard error.

    `data` are X and y of the training rows, and X_test and y_test where rows were held out.
    """
    import warnings

    from ..report import Report

    source = {"file": facts["data"]["file"], "sha256": facts["data"]["sha256"]}
    source |= {name.replace("_", " "): facts[name] for name in SHOWN if facts.get(name)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Report.from_model(model, **data, title=title, source=source, progress=monitor.part, **options)
    baselines = made.scores.baselines if made.scores else ()
    return made.html(), [{"name": one.name, "score": one.value, "error": one.error} for one in baselines]
