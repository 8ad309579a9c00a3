"""``kernelweave report``: the page about a model, made again or for the first time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._console import CliError, check_file, check_out, guarded, model_file

#: what of the facts goes to the page's account of the data
SHOWN = ("command", "target", "task_because", "kernels", "reasons", "seconds")


@guarded
def report(
    model: opt.Model,
    data: Annotated[
        Path | None, typer.Option(help="The file the model was fitted on, if it was moved.")
    ] = None,
    view: Annotated[
        list[str] | None, typer.Option(help="A table it was fitted on, NAME=FILE, if it was moved.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="The file of the labels, if it was moved.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write; beside the model by default.")] = None,
    stability: Annotated[
        bool,
        typer.Option("--stability/--no-stability", help="Compute intervals of the weights over sub-samples."),
    ] = True,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Write report.html of a model, from the data it was fitted on."""
    file = model_file(model)
    moved = opt.Source(data, view or [], None if labels is None else str(labels))
    for path in moved.files.values():
        check_file(path)
    check_out(out, file, *moved.files.values())
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
        source = training_files(bundle, moved)
        samples = training_data(bundle, source)
        monitor.stage("report")
        options = {"stability": stability, "random_state": int(bundle.settings["request"]["seed"])}
        title = f"{bundle.target} from {bundle.settings['data']['file']}"
        page, found = make_report(bundle.estimator, samples, title, bundle.settings, monitor, **options)
    if folder is None:
        write_text(path, page)
    else:
        with folder.staging() as stage:
            write_text(stage / REPORT, page)
    if as_json:
        print_json({"report": str(path), **found})
    else:
        note(f"Report written to {path}.")


def training_files(bundle: Any, moved: opt.Source) -> opt.Source:
    """The files a model was fitted on, wherever they are now; others are refused."""
    data, request = bundle.settings["data"], bundle.settings["request"]
    if "files" not in data:
        if moved.views or moved.labels:
            raise CliError("--view and --labels: the model was fitted on one file; name it with --data.")
        return opt.Source(training_file(data, moved.data, "--data"))
    if moved.data is not None:
        raise CliError("--data: the model was fitted on several files; name those that moved with --view.")
    given = moved.files
    odd = [role for role in given if role not in [one["role"] for one in data["files"]]]
    if odd:
        raise CliError(f"--view {odd[0]}: the model was not fitted on such a view.")
    paths = {
        one["role"]: training_file(one, given.get(one["role"]), option_of(one["role"]))
        for one in data["files"]
    }
    labels = paths.pop("labels", None)
    told = None if labels is None else str(labels)
    named = {name or path.name: name for name, path in opt.Source(views=request["views"]).tables}
    views = [f"{named[role]}={path}" if named[role] else str(path) for role, path in paths.items()]
    return opt.Source(views=views, labels=told, transpose=request["transpose"])


def option_of(role: str) -> str:
    """The option that names a file."""
    return "--labels" if role == "labels" else f"--view {role}="


def training_file(known: dict[str, Any], given: Path | None, option: str) -> Path:
    """One of the files a model was fitted on; another one is refused."""
    from ._facts import file_digest

    path = given or Path(known["path"])
    if given is None and not path.exists():
        raise CliError(
            f"{path}, which the model was fitted on, is not there any more: name it with {option}."
        )
    check_file(path)
    if file_digest(path) != known["sha256"]:
        raise CliError(
            f"{path} is not the file the model was fitted on, or was changed since: name that file "
            f"({known['file']}) with {option}, or fit a model on this one."
        )
    return path


def training_data(bundle: Any, source: opt.Source) -> dict[str, Any]:
    """Training part and held-out part, as they were for the fit."""
    from ._splits import split_rows
    from ._tables import design

    request = bundle.settings["request"]
    ready = design(source, opt.Reading(**request["reading"]), opt.KernelChoice())
    train, test, shown = split_rows(ready.target, request["test_size"], request["seed"], ready.group_of)
    return report_data(ready, ready.split(train, shown), train, test)


def report_data(ready: Any, parts: Any, train: Any, test: Any) -> dict[str, Any]:
    """What a report looks at: samples, targets, names and groups of the training part, and held-out ones."""
    y, ids = ready.target.y, ready.ids
    groups = None if ready.group_of is None else ready.group_of[train]
    held_out = {"X_test": parts.X_rest, "y_test": y[test], "ids_test": ids[test]} if len(test) else {}
    before = parts.encoder if hasattr(parts.encoder, "transform") else None  # not of Gram matrices
    own = {"X": parts.X, "y": y[train], "ids": ids[train], "groups": groups, "preprocessing": before}
    return {**own, **held_out, "feature_names": parts.names or None}


def make_report(
    model: Any, data: dict[str, Any], title: str, facts: dict[str, Any], monitor: Any, **options: Any
) -> tuple[str, dict[str, Any]]:
    """The page, and what it compares: baselines with scores and standard errors, the model, the verdict.

    `data` are what `report_data` gives.
    """
    import warnings

    from ..report import Report
    from ..report.words import verdict

    known = facts["data"]
    source = {key: known[key] for key in ("file", "sha256") if key in known}
    for one in known.get("files", ()):
        role = "labels" if one["role"] == "labels" else f"view {one['role']}"
        source[role] = f"{one['file']}, SHA-256 {one['sha256']}"
    if facts.get("tuned"):
        source["tuned"] = "by cross-validation on the training samples"
    source |= {name.replace("_", " "): facts[name] for name in SHOWN if facts.get(name)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Report.from_model(model, **data, title=title, source=source, progress=monitor.part, **options)
    scores, judged = made.scores, verdict(made.scores)
    if scores is None:
        return made.html(), {"baselines": []}
    found = {
        "baselines": [{"name": one.name, "score": one.value, "error": one.error} for one in scores.baselines],
        "compared": {"how": scores.how, "score": scores.model.value, "error": scores.model.error},
        "verdict": None if judged is None else f"{judged.headline}. {judged.text}",
    }
    trivial = [one.value for one in scores.baselines if one.name == scores.trivial]
    return made.html(), {**found, "trivial": trivial[0]} if trivial else found
