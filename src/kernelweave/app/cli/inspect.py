"""``kernelweave inspect`` and ``info``: what is in a model file, and in the installation."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._console import CliError, check_out, guarded, model_file

#: panel of the help
EXPLAIN = "Explanations"

#: settings worth a line
SHOWN = ("command", "target", "task", "n_train", "n_test", "method", "kernels", "seconds", "interrupted")


@guarded
@opt.spread
def inspect(
    model: opt.Model,
    source: opt.Source,
    explain: Annotated[
        bool, typer.Option("--explain", help="Attributions of DATA, or of the file it was fitted on.")
    ] = False,
    sample: Annotated[
        str | None, opt.option("A sample, by its ID or row: what its value is made of.", EXPLAIN)
    ] = None,
    background: Annotated[
        str | None,
        opt.option("What samples are compared with: how many rows (100), or a file of them.", EXPLAIN),
    ] = None,
    function: Annotated[
        str | None, opt.option("Class, pair of classes or output; else the largest of a sample.", EXPLAIN)
    ] = None,
    out: Annotated[Path | None, opt.option("CSV file of all attributions.", EXPLAIN)] = None,
    plot: Annotated[
        Path | None, opt.option("Picture of the sample, or of all samples: .png, .svg or .pdf.", EXPLAIN)
    ] = None,
    ident: Annotated[
        str | None, opt.option("Column of sample IDs; by default as in the fit.", opt.TABLES, "--id")
    ] = None,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Show the weights, the certificate and the settings of a model, or why samples have their values.

    With --explain, values are taken apart into what kernels and features add, exactly: DATA is a file as
    predict takes it, and by default the rows that fit held out, of the file it read.
    """
    file = model_file(model)
    if explain:
        source.check(needed=False)
        check_out(out, file, *source.files.values())
        check_out(plot, file, *source.files.values())
        from ._explaining import Question, answer

        answer(Question(model, source, ident, sample, background, function, out, plot, as_json))
        return
    given = {"DATA": source.files, "--sample": sample, "--background": background, "--function": function}
    for name, value in {**given, "--out": out, "--plot": plot}.items():
        if value:
            raise CliError(f"{name} is for explanations: add --explain.")
    show_model(model, as_json)


def show_model(model: Path, as_json: bool) -> None:
    """Weights, certificate and settings."""
    from ._bundle import load_bundle
    from ._console import print_json, show
    from ._facts import certificate, certificate_words, weight_facts
    from ._output import candidates_table, reason_words, weights_listing

    bundle = load_bundle(model)
    estimator, settings, kind = bundle.estimator, bundle.settings, type(bundle.estimator).__name__
    if as_json:
        facts = {
            "estimator": kind,
            "weights": weight_facts(estimator),
            "certificate": certificate(estimator),
            "features": bundle.features,
        }
        kept = {name: value for name, value in settings.items() if name not in ("columns", "training_rows")}
        print_json({**facts, "settings": kept})
        return
    show(f"{kind} in {bundle.path}", style="bold")
    show(weights_listing(estimator))
    show(certificate_words(estimator))
    if settings.get("candidates"):
        show(candidates_table(settings["candidates"]))
        show(reason_words(settings["reason"]), soft_wrap=True)
    for name in SHOWN:
        value = settings.get(name)
        if value not in (None, [], ""):
            show(f"{name.replace('_', ' ')}: {f'{value:.3g}' if isinstance(value, float) else value}")
    for name, value in (settings.get("scores") or {}).items():
        show(f"{name} on the {settings.get('scored_on', '')}: {value:.4g}")
    show("made with: " + ", ".join(f"{name} {number}" for name, number in settings["versions"].items()))


# -- the installation ---------------------------------------------------------------------------------


OPTIONAL = ("pyarrow", "openpyxl", "anndata", "mudata", "matplotlib", "torch")


@guarded
def info(as_json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Show versions, BLAS and threads, memory, and the GPU that torch sees if it is installed."""
    from rich.table import Table
    from rich.text import Text

    from ._console import print_json, show

    facts = collect()
    if as_json:
        print_json(facts)
        return
    table = Table(show_header=False)
    for name, value in facts.items():
        table.add_row(name, Text(words(value)))
    show(table)


def collect() -> dict[str, Any]:
    """All there is to know about the installation."""
    from joblib import cpu_count

    from ..._words import versions
    from ...gram.choice import free_memory, show_bytes

    free, more = free_memory(), versions(OPTIONAL)
    return {
        "versions": versions(),
        "optional": {name: more.get(name) for name in OPTIONAL},
        "platform": platform.platform(),
        "cores": {"usable": cpu_count(), "machine": os.cpu_count()},
        "thread pools": thread_pools(),
        "free memory": None if free is None else {"bytes": free, "text": show_bytes(free)},
        "GPU": gpu(),
    }


def thread_pools() -> list[dict[str, Any]]:
    """BLAS and OpenMP libraries in use, and their threads."""
    import numpy as np
    import scipy.linalg  # noqa: F401  # loads its own BLAS
    from threadpoolctl import threadpool_info

    np.zeros((2, 2)) @ np.zeros((2, 2))
    names = ("internal_api", "version", "num_threads", "user_api")
    return [{name: pool.get(name) for name in names} for pool in threadpool_info()]


def gpu() -> dict[str, Any] | str:
    """Devices that torch sees."""
    if find_spec("torch") is None:
        return 'torch is not installed (pip install "kernelweave[torch]")'
    try:
        import torch

        if not torch.cuda.is_available():
            return f"none seen by torch {torch.__version__}"
        count = torch.cuda.device_count()
        return {f"cuda:{k}": torch.cuda.get_device_name(k) for k in range(count)}
    except Exception as error:  # a broken torch must not hide the rest
        return f"torch cannot be used ({error})"


def words(value: Any) -> str:
    """A value on one or several lines."""
    if isinstance(value, dict):
        return "\n".join(
            f"{key} {'not installed' if inner is None else inner}" for key, inner in value.items()
        )
    if isinstance(value, list):
        return "\n".join(", ".join(str(v) for v in row.values() if v is not None) for row in value)
    return str(value)
