"""What new data have beside the columns of a model: targets, names of the rows, columns nobody needs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd

from ._bundle import Bundle
from ._encode import columns_of, conformed, encoded
from ._errors import CliError
from ._gram_design import GramEncoder
from ._npz import Grams
from ._paths import listed
from ._read import Table, kind_of
from ._task import labels


def encoded_rows(bundle: Bundle, data: Table | Grams, allow_unseen: bool) -> Any:
    """New data as the model takes them; Gram matrices for a model of columns are refused, and the reverse."""
    if isinstance(data, Grams):
        if isinstance(bundle.encoder, GramEncoder):
            return bundle.encoder.transform(data)
        raise CliError(f"{data.path} holds Gram matrices, and the model was fitted on columns of a table.")
    if isinstance(bundle.encoder, GramEncoder):
        raise CliError(f"{data.path} holds columns, and the model was fitted on Gram matrices (K in an NPZ).")
    frame = conformed(bundle.encoder, data, allow_unseen)
    if allow_unseen:
        for _, step, _ in bundle.encoder.transformers_:
            if hasattr(step, "categories"):
                step.set_params(handle_unknown="ignore")
    return encoded(bundle.encoder, frame)


def new_rows(bundle: Bundle, data: Table | Grams) -> tuple[np.ndarray, str]:
    """What names the rows: the identifier of the training file if it is there too, else numbers."""
    ident = bundle.settings["request"]["reading"]["ident"]
    if isinstance(data, Table) and ident in data.frame:
        return data.frame[ident].to_numpy(), ident
    return np.arange(1, data.n_rows + 1), "row"


def unused(bundle: Bundle, data: Table | Grams) -> list[str]:
    """A message about columns that the model does not look at."""
    if isinstance(data, Grams):
        return []
    reading = bundle.settings["request"]["reading"]
    known = {*columns_of(bundle.encoder), bundle.target, reading["ident"], *reading["drop"]}
    extra = [name for name in data.names if name not in known]
    extra = [name for name in extra if not any(fnmatchcase(name, pattern) for pattern in reading["drop"])]
    return [f"Columns the model does not use: {listed(extra, 5)}."] if extra else []


def known_targets(bundle: Bundle, data: Table | Grams, predicted: np.ndarray) -> Any:
    """The targets, where the data have them for every row and they are of the kind the model predicts."""
    columns: Any = data.frame if isinstance(data, Table) else data.targets
    if bundle.target not in columns or pd.isna(columns[bundle.target]).any():
        return None
    values = np.asarray(columns[bundle.target])
    comparable = (kind_of(values) == "text") == (predicted.dtype.kind in "US")
    truth = labels(values) if bundle.task == "classification" else values
    return truth if comparable else None
