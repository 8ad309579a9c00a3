"""A fitted model on disk: a pipeline from the columns of a table to predictions, and what fit said of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from ..._part_files import replacing, sweep
from ...persistence import load_model, save_model
from ._console import plain
from ._errors import CliError
from ._gram_design import GramEncoder
from ._paths import MODEL, model_file

SETTINGS = "settings.json"

#: the attribute of the estimator in the file that holds settings, as JSON
ATTRIBUTE = "command_line_"

#: version of what the attribute holds
FORMAT = 2


@dataclass(frozen=True)
class Bundle:
    """A loaded model, what encodes data for it, its settings and its file."""

    estimator: Any
    encoder: Any
    settings: dict[str, Any]
    path: Path

    @property
    def task(self) -> str:
        return str(self.settings.get("task"))

    @property
    def target(self) -> str:
        return str(self.settings.get("target"))


def load_bundle(path: Path) -> Bundle:
    """Model, columns and settings of a file, or one message about what is wrong with it."""
    file = model_file(path)
    try:
        model = load_model(file)
    except (ValueError, OSError) as error:
        raise CliError(f"{error} Fit the model again, or copy the file again.") from error
    encoder, estimator = model if isinstance(model, Pipeline) and len(model) == 2 else (None, model)
    text = vars(estimator).pop(ATTRIBUTE, None)
    if text is None:
        raise CliError(
            f"{file} holds a model that `kernelweave fit` did not make, so nothing says which columns of a "
            "table it takes: use it from Python, kernelweave.load_model(path).predict(X)."
        )
    try:
        settings = json.loads(text)
        if settings["format"] != FORMAT:
            raise ValueError("another format")
        encoder = encoder or GramEncoder(**settings["columns"])
    except (TypeError, ValueError, KeyError, RecursionError):
        raise CliError(
            f"{file} was made by another version of kernelweave, or is damaged: fit the model again."
        ) from None
    return Bundle(estimator, encoder, settings, file)


def save_bundle(
    folder: Path, estimator: Any, encoder: Any, settings: dict[str, Any], rows: str | None
) -> None:
    """Write the model file, and the settings once more for people to read; `rows` are digests of `sketch`."""
    gram = isinstance(encoder, GramEncoder)
    columns = vars(encoder) if gram else None
    document = plain({"format": FORMAT, **settings, "columns": columns, "training_rows": rows})
    setattr(estimator, ATTRIBUTE, json.dumps(document))
    try:
        model = estimator if gram else Pipeline([("columns", encoder), ("model", estimator)])
        save_model(model, folder / MODEL)
    except (ValueError, OSError) as error:
        raise CliError(f"{folder / MODEL} cannot be written: {error}") from error
    finally:
        delattr(estimator, ATTRIBUTE)
    write_json(folder / SETTINGS, settings)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """JSON that takes the place of an older file at once."""
    write_text(path, json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Text that takes the place of an older file at once."""
    sweep(path)
    try:
        with replacing(path) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise CliError(f"{path} cannot be written ({error.strerror}): choose another place.") from error
