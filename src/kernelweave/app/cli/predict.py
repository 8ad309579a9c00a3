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
    new = new_samples(
        bundle, source, {"sep": sep, "encoding": encoding, "decimal": decimal}, ident, allow_unseen
    )
    for message in [*new.notes, *seen_rows(bundle, new.X, source.data)]:
        note(message)
    with refusing(source.title):
        columns = predictions(bundle.estimator, new.X)
    truth = new.truth(bundle, np.asarray(columns["prediction"]))
    scores: dict[str, Any] = {} if truth is None else score(bundle.task, truth, columns["prediction"])
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
