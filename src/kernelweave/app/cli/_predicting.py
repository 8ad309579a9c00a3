"""What new data have beside the columns of a model: targets, names of the rows, columns nobody needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._bundle import Bundle
from ._encode import Encoder
from ._errors import CliError
from ._npz import Grams
from ._paths import listed
from ._table import Table, is_missing, kind_of
from ._task import labels


def check_kind(bundle: Bundle, data: Table | Grams) -> None:
    """Refuse Gram matrices where a model takes columns, and the other way round."""
    if isinstance(bundle.encoder, Encoder) and isinstance(data, Grams):
        raise CliError(f"{data.path} holds Gram matrices, and the model was fitted on columns of a table.")
    if not isinstance(bundle.encoder, Encoder) and not isinstance(data, Grams):
        raise CliError(f"{data.path} holds columns, and the model was fitted on Gram matrices (K in an NPZ).")


def new_rows(bundle: Bundle, data: Table | Grams) -> tuple[np.ndarray, str]:
    """What names the rows: the identifier of the training file if it is there too, else numbers."""
    ident = bundle.encoder.ident
    if isinstance(data, Table) and ident is not None and ident in data.columns:
        return data.columns[ident], ident
    return np.arange(1, data.n_rows + 1), "row"


def unused(bundle: Bundle, data: Table | Grams) -> list[str]:
    """A message about columns that the model does not look at."""
    if isinstance(data, Grams) or not isinstance(bundle.encoder, Encoder):
        return []
    known = {rule.name for rule in bundle.encoder.rules} | set(bundle.encoder.ignored)
    extra = [name for name in data.names if name not in known | {bundle.encoder.ident, bundle.target}]
    return [f"Columns the model does not use: {listed(extra, 5)}."] if extra else []


def known_targets(bundle: Bundle, data: Table | Grams, predicted: np.ndarray) -> Any:
    """The targets, where the data have them for every row and they are of the kind the model predicts."""
    columns = data.columns if isinstance(data, Table) else data.targets
    values = columns.get(bundle.target)
    if values is None or is_missing(values).any():
        return None
    truth = labels(values) if bundle.task == "classification" else values
    comparable = (kind_of(values) == "text") == (predicted.dtype.kind in "US")
    return truth if comparable else None
