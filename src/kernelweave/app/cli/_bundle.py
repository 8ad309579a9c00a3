"""A fitted model on disk: one file with the model and what turns tables into what it takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._part_files import replacing, sweep
from ._console import plain
from ._encode import Encoder
from ._errors import CliError
from ._gram_design import GramEncoder
from ._paths import MODEL, model_file

SETTINGS = "settings.json"

#: the attribute of the estimator in the file that holds settings and columns, as JSON
ATTRIBUTE = "command_line_"

#: version of what the attribute holds
FORMAT = 1


@dataclass(frozen=True)
class Bundle:
    """A loaded model, its encoder, its settings and the folder it lies in."""

    estimator: Any
    encoder: Encoder | GramEncoder
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
    from ...persistence import load_model

    file = model_file(path)
    try:
        estimator = load_model(file)
    except (ValueError, OSError) as error:
        raise CliError(f"{error} Fit the model again, or copy the file again.") from error
    settings = settings_of(estimator, file)
    delattr(estimator, ATTRIBUTE)
    return Bundle(estimator, encoder_of(settings, file), settings, file)


def settings_of(estimator: Any, file: Path) -> dict[str, Any]:
    """What `fit` wrote into a model file beside the model."""
    text = getattr(estimator, ATTRIBUTE, None)
    if text is None:
        raise CliError(
            f"{file} holds a model that `kernelweave fit` did not make, so nothing says which columns of a "
            "table it takes: use it from Python, kernelweave.load_model(path).predict(X)."
        )
    try:
        document = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CliError(
            f"{file} was made by another version of kernelweave, or is damaged: fit the model again."
        )
    return document


def encoder_of(settings: dict[str, Any], file: Path) -> Encoder | GramEncoder:
    """The encoder in settings."""
    try:
        document = settings["columns"]
        kinds: dict[str, Any] = {"table": Encoder, "gram": GramEncoder}
        return kinds[document["kind"]].from_json(document)
    except (KeyError, TypeError, AttributeError):
        raise CliError(f"{file} is damaged (its columns make no sense): fit the model again.") from None


def save_bundle(
    folder: Path, estimator: Any, settings: dict[str, Any], columns: dict[str, Any], rows: str | None = None
) -> None:
    """Write the model file, and the settings once more for people to read; `rows` are those of `_seen`."""
    from ...persistence import save_model

    document = plain({"format": FORMAT, **settings, "columns": columns, "training_rows": rows})
    setattr(estimator, ATTRIBUTE, json.dumps(document))
    try:
        save_model(estimator, folder / MODEL)
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
