"""``kernelweave predict``: a model on new data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._console import check_out, guarded, model_file


@guarded
@opt.spread
def predict(
    model: opt.Model,
    source: opt.Source,
    ident: Annotated[
        str | None, opt.option("Column of sample IDs; by default as in the fit.", opt.TABLES, "--id")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; stdout by default.")] = None,
    times: Annotated[
        str | None,
        typer.Option(
            help="Times, by comma, at which a model of survival gives probabilities, such as 12,60."
        ),
    ] = None,
    allow_unseen: opt.AllowUnseen = False,
    sep: opt.Sep = None,
    encoding: opt.Encoding = "utf-8",
    decimal: opt.Decimal = ".",
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Predict with a model that fit has written, and score it where the target is known.

    Give the tables of a model of several tables with --view NAME=FILE. A model fitted with --missing also
    predicts samples that lack some of them.
    """
    file = model_file(model)
    source.check()
    check_out(out, file, *source.files.values())
    import numpy as np

    from ._bundle import load_bundle, new_samples, seen_rows, write_text
    from ._console import note, print_json, refusing
    from ._facts import predictions, score, views_column
    from ._output import cells, table_text

    bundle = load_bundle(model)
    at = times_of(times, bundle)
    new = new_samples(
        bundle, source, {"sep": sep, "encoding": encoding, "decimal": decimal}, ident, allow_unseen
    )
    for message in [*new.notes, *seen_rows(bundle, new.X, source.data)]:
        note(message)
    with refusing(source.title):
        columns = predictions(bundle.estimator, new.X, at)
    first = np.asarray(next(iter(columns.values())))
    truth = new.truth(bundle, first)
    scores: dict[str, Any] = {} if truth is None else score(bundle.task, truth, first)
    columns |= views_column(bundle.estimator, new.X)
    ids, ident = new.ids, new.ident
    if out is not None:
        write_text(out, table_text(ids, truth, columns, ident))
    if as_json:
        listing = {name: cells(np.asarray(values)) for name, values in columns.items()}
        print_json({ident: cells(np.asarray(ids)), **listing, "scores": scores, "out": out and str(out)})
    elif out is None:
        typer.echo(table_text(ids, truth, columns, ident), nl=False)
    if scores:
        note("Scores on these rows: " + ", ".join(f"{name} {value:.3f}" for name, value in scores.items()))
    if out is not None and not as_json:
        note(f"{len(ids)} predictions written to {out}.")


def times_of(text: str | None, bundle: Any) -> list[float]:
    """The times of --times; those after the last one seen have the probability there, and a note says so."""
    from ._console import CliError, note

    if text is None:
        return []
    if bundle.task != "survival":
        raise CliError(f"--times {text}: the model was not fitted with --time and --event.")
    try:
        found = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found or not all(0 <= time < float("inf") for time in found):
        raise CliError(f"--times {text}: expected times that are 0 or later, by comma, such as 12,60.")
    last = float(bundle.estimator.unique_times_[-1])
    late = [f"{time:g}" for time in found if time > last]
    if late:
        note(
            f"Nothing is known after {last:g}, the last time of the fit: survival {', '.join(late)} is that."
        )
    return found
