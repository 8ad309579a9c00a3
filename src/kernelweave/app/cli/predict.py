"""``kernelweave predict``: a model on new data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._console import check_file, check_out, guarded, model_file


@guarded
def predict(
    model: opt.Model,
    data: opt.Data,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; stdout by default.")] = None,
    allow_unseen: opt.AllowUnseen = False,
    sep: opt.Sep = None,
    encoding: opt.Encoding = "utf-8",
    decimal: opt.Decimal = ".",
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Predict with a model that fit has written, and score it where the target is known."""
    file = model_file(model)
    check_file(data)
    check_out(out, file, data)
    import numpy as np

    from ._bundle import encoded_rows, known_targets, load_bundle, new_rows, seen_rows, unused, write_text
    from ._console import note, print_json, refusing
    from ._design import load
    from ._facts import predictions, score
    from ._options import Reading
    from ._output import cells, table_text

    bundle = load_bundle(model)
    reading = Reading(bundle.target, sep=sep, encoding=encoding, decimal=decimal)
    table = load(data, reading)
    X = encoded_rows(bundle, table, allow_unseen)
    for message in [*unused(bundle, table), *seen_rows(bundle, X, data)]:
        note(message)
    with refusing(str(data)):
        columns = predictions(bundle.estimator, X)
    ids, ident = new_rows(bundle, table)
    truth = known_targets(bundle, table, np.asarray(columns["prediction"]))
    scores: dict[str, Any] = {} if truth is None else score(bundle.task, truth, columns["prediction"])
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
