"""A fitted model on disk, with what fit said of it, and new data for it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from ..._container import replacing, sweep
from ..._words import counted, listed, plain, quoted
from ...estimators import ViewTransformer
from ...kernels import Views
from ...persistence import load_model, save_model
from ._columns import labels, survival_target, target_column, target_columns, unknown_in
from ._console import MODEL, CliError, model_file, note, refusing
from ._design import columns_of, conformed, encoded, features_of, load
from ._facts import file_digest
from ._files import Files, present, read_views, such_as
from ._npz import GramEncoder, Grams
from ._options import Reading, Source
from ._read import Sheet, kind_of
from ._tables import encoded_views

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
    task: str
    target: str

    @property
    def reading(self) -> Reading:
        """How the files of the fit were read."""
        return Reading(**self.settings["request"]["reading"])

    @property
    def of_views(self) -> bool:
        """Whether the model was fitted on several tables."""
        return isinstance(self.encoder, ViewTransformer)

    @property
    def features(self) -> list[str]:
        """Names of the columns that the model sees, or of its matrices."""
        if isinstance(self.encoder, GramEncoder):
            return list(self.encoder.names)
        if not self.of_views:
            return [name for held in features_of(self.encoder).values() for name in held]
        own = {view: features_of(encoder) for view, encoder in self.encoder.transformers_.items()}
        return [f"{view}: {name}" for view, found in own.items() for held in found.values() for name in held]


def load_bundle(path: Path) -> Bundle:
    """Model, columns and settings of a file, or one message about what is wrong with it."""
    file = model_file(path)
    try:
        model = load_model(file)
    except (ValueError, OSError) as error:
        remedy = "Fit the model again, or copy the file again."
        if file.suffix != Path(MODEL).suffix:
            remedy = f"Name the folder that fit --out wrote, or the {MODEL} in it."
        raise CliError(f"{error} {remedy}") from error
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
        return Bundle(estimator, encoder, settings, file, settings["task"], settings["target"])
    except (TypeError, ValueError, KeyError, RecursionError):
        raise CliError(
            f"{file} was made by another version of kernelweave, or is damaged: fit the model again."
        ) from None


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


# -- new data: what they have beside the columns of a model -------------------------------------------


#: digests kept: the smallest, which are a fair sample whatever the rows are
KEPT = 4096

#: share of training rows that have to differ for a digest to tell a row
DISTINCT = 0.9

#: share of rows from which on the user is told
MOST = 0.5


@dataclass(frozen=True)
class NewSamples:
    """New data as a model takes them, the names of the rows, the targets there may be, and what to say."""

    X: Any
    ids: np.ndarray
    ident: str
    targets: Any
    notes: list[str]

    def truth(self, bundle: Bundle, predicted: np.ndarray) -> Any:
        """The targets, where there is one for every row and they are of the kind the model predicts."""
        names = bundle.reading.targets
        if any(name not in self.targets or pd.isna(self.targets[name]).any() for name in names):
            return None
        if bundle.task == "survival":
            return self._times({name: np.asarray(self.targets[name]) for name in names}, bundle.path)
        values = np.asarray(self.targets[bundle.target])
        comparable = (kind_of(values) == "text") == (predicted.dtype.kind in "US")
        truth = labels(values) if bundle.task == "classification" else values
        return truth if comparable else None

    def _times(self, values: dict[str, np.ndarray], path: Path) -> Any:
        """Times and events; None, with a note, where they cannot be scored."""
        try:
            return survival_target(values, path, least=1).y
        except CliError as error:
            note(f"Nothing is scored: {str(error).removeprefix(f'{path}: ')}")
            return None


def new_samples(
    bundle: Bundle, source: Source, form: dict[str, Any], ident: str | None, allow_unseen: bool
) -> NewSamples:
    """New data for a model, from the kind of files that it was fitted on."""
    reading = replace(bundle.reading, ident=ident or bundle.reading.ident, **form)
    if allow_unseen:
        let_unseen(bundle.encoder)
    if bundle.of_views:
        return new_view_samples(bundle, source, reading, allow_unseen)
    if source.data is None:
        raise CliError("--view: the model was fitted on one table; name a file: predict MODEL DATA.")
    data = load(source.data, reading)
    X = encoded_rows(bundle, data, allow_unseen)
    if isinstance(data, Grams):
        return NewSamples(X, np.arange(1, data.n_rows + 1), "row", data.targets, [])
    named = reading.ident is not None and reading.ident in data.frame
    ids = data.frame[reading.ident].to_numpy() if named else np.arange(1, data.n_rows + 1)
    return NewSamples(
        X, ids, str(reading.ident) if named else "row", data.frame, unused(bundle, data, reading)
    )


def new_view_samples(bundle: Bundle, source: Source, reading: Reading, allow_unseen: bool) -> NewSamples:
    """New samples of a model of several tables, with their labels where a file has them."""
    encoders = bundle.encoder.transformers_
    if not source.views:
        raise CliError(
            f"the model was fitted on the views {quoted(encoders)}: give their tables, predict MODEL "
            + " ".join(f"--view {name}=FILE" for name in encoders)
        )
    turned = source.transpose or [t for t in bundle.settings["request"]["transpose"] if t in source.names]
    source = replace(source, transpose=turned)
    views = new_views(bundle.encoder, source, reading, allow_unseen)
    path, column = source.label_file
    targets: Any = {}
    if path is not None:
        frame = Files(reading).read(path).frame.reindex(views.ids)
        targets = (
            target_columns(frame, reading, path, "--labels")
            if column is None
            else {bundle.target: target_column(frame, column, path, "--labels")}
        )
        gaps = unknown_in(targets)
        if gaps.any():
            note(f"{gaps.sum()} of {len(gaps)} samples have no label, so nothing is scored.")
    X = encoded_views(bundle.encoder, views)
    return NewSamples(X, views.ids, reading.ident or "sample", targets, [])


def new_views(encoder: ViewTransformer, source: Source, reading: Reading, allow_unseen: bool) -> Views:
    """Views of new samples with the columns that a model was fitted on; some of its views may be absent."""
    files, encoders = read_views(source, reading), encoder.transformers_
    odd = [name for name in files.views if name not in encoders]
    if odd:
        raise CliError(f"--view {odd[0]}: the model was fitted on the views {quoted(encoders)}.")
    lacking = [name for name in encoders if name not in files.views]
    if lacking and reading.missing == "error":
        raise CliError(
            f"the model was fitted on the views {quoted(encoders)}, and {quoted(lacking)} is not there: give "
            "it with --view, or fit the model with --missing complete, which predicts without some views."
        )
    note("Sample IDs: " + listed(files.taken, 12) + ".")
    frames = {
        name: conformed(encoders[name], present(sheet), allow_unseen) for name, sheet in files.views.items()
    }
    there = {label for frame in frames.values() for label in frame.index}
    empty = {label for sheet in files.views.values() for label in sheet.frame.index} - there
    if empty:
        gone = f"{counted(len(empty), 'sample')} without a value in any view"
        note(f"{gone}: left out, {such_as(sorted(empty))}.")
    with refusing("--view"):
        views = Views({name: frames[name] for name in encoders if name in frames})
    if views.lacking and reading.missing == "error":
        raise CliError(
            f"{listed(views.lacking)}: leave those samples out, or fit the model with --missing complete, "
            "which predicts without some views."
        )
    return views


def let_unseen(encoder: Any) -> None:
    """Let categories that an encoder does not know count as none of the known ones."""
    encoders = encoder.transformers_.values() if isinstance(encoder, ViewTransformer) else [encoder]
    for one in encoders:
        for _, step, _ in getattr(one, "transformers_", ()):
            if hasattr(step, "categories"):
                step.set_params(handle_unknown="ignore")


def encoded_rows(bundle: Bundle, data: Sheet | Grams, allow_unseen: bool) -> Any:
    """New data as the model takes them; Gram matrices for a model of columns are refused, and the reverse."""
    if isinstance(data, Grams):
        if isinstance(bundle.encoder, GramEncoder):
            return bundle.encoder.transform(data)
        raise CliError(f"{data.path} holds Gram matrices, and the model was fitted on columns of a table.")
    if isinstance(bundle.encoder, GramEncoder):
        raise CliError(f"{data.path} holds columns, and the model was fitted on Gram matrices (K in an NPZ).")
    return encoded(bundle.encoder, conformed(bundle.encoder, data, allow_unseen))


def unused(bundle: Bundle, data: Sheet, reading: Reading) -> list[str]:
    """A message about columns that the model does not look at."""
    known = {*columns_of(bundle.encoder), *reading.targets, reading.ident, reading.group, *reading.drop}
    extra = [name for name in data.names if name not in known]
    extra = [name for name in extra if not any(fnmatchcase(name, pattern) for pattern in reading.drop)]
    return [f"Columns the model does not use: {quoted(extra, 5)}."] if extra else []


# -- rows that a model was trained on: digests of a few of them are in its file -----------------------


def row_digests(X: Any) -> np.ndarray:
    """64 bits of every row, equal for equal rows."""
    if isinstance(X, Views):
        X = X.joined()
    if not isinstance(X, np.ndarray) or X.dtype == object:
        result: np.ndarray = pd.util.hash_pandas_object(pd.DataFrame(X).astype(str), index=False).to_numpy()
        return result
    rows = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # -0 and 0 are one number
    digests = [blake2b(row.tobytes(), digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def sketch(X: Any) -> str | None:
    """The smallest digests of the training rows, as text; None where rows cannot be told apart.

    Examples
    --------
    >>> len(sketch(np.eye(6)))  # 8 bytes per row, as base64
    64
    >>> sketch(np.ones((6, 2))) is None
    True
    """
    if not isinstance(X, np.ndarray | Views) or X.ndim != 2:
        return None
    distinct = np.unique(row_digests(X))
    if len(distinct) < DISTINCT * len(X):
        return None
    return base64.b64encode(distinct[:KEPT].tobytes()).decode()


def known_share(X: Any, text: str) -> float:
    """Share of the rows of `X` whose digests are in a sketch, of those that could be.

    Examples
    --------
    >>> known_share(np.eye(6)[:4], sketch(np.eye(6)[2:]))
    0.5
    """
    kept = np.frombuffer(base64.b64decode(text), dtype="<u8")
    found = row_digests(X)
    if len(kept) == KEPT:  # larger digests were not kept
        found = found[found <= kept[-1]]
    return float(np.isin(found, kept).mean()) if len(found) else 0.0


def seen_rows(bundle: Bundle, X: Any, data: Path | None) -> list[str]:
    """A message where most rows are rows that the model was trained on."""
    text = bundle.settings.get("training_rows")
    if isinstance(bundle.encoder, GramEncoder):
        same = data is not None and file_digest(data) == bundle.settings["data"]["sha256"]
        share = len(bundle.encoder.rows) / bundle.encoder.n_samples if same else 0.0
    else:
        share = known_share(X, text) if isinstance(text, str) else 0.0
    if share < MOST:
        return []
    return [
        f"Most of these rows ({share:.0%}) were trained on: how well the model does on rows it has seen says "
        "little about new ones. The rows that fit held out are in its predictions.csv."
    ]
