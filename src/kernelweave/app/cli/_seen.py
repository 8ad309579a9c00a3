"""Which rows a model was trained on: digests of a few of them, kept in the model file."""

from __future__ import annotations

import base64
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ._bundle import Bundle
from ._facts import file_digest
from ._gram_design import GramEncoder

#: digests kept: the smallest, which are a fair sample whatever the rows are
KEPT = 4096

#: share of training rows that have to differ for a digest to tell a row
DISTINCT = 0.9

#: share of rows from which on the user is told
MOST = 0.5


def row_digests(X: np.ndarray) -> np.ndarray:
    """64 bits of every row, equal for equal rows."""
    rows = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # -0 and 0 are one number
    digests = [blake2b(row.tobytes(), digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def sketch(X: Any) -> str | None:
    """The smallest digests of the training rows, as text; None where rows cannot be told apart.

    Examples
    --------
    >>> len(sketch(np.eye(6)))  # 8 bytes a row, as base64
    64
    >>> sketch(np.ones((6, 2))) is None
    True
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return None
    distinct = np.unique(row_digests(X))
    if len(distinct) < DISTINCT * len(X):
        return None
    return base64.b64encode(distinct[:KEPT].tobytes()).decode()


def known_share(X: np.ndarray, text: str) -> float:
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


def seen_rows(bundle: Bundle, X: Any, data: Path) -> list[str]:
    """A message where most rows are rows that the model was trained on."""
    text = bundle.settings.get("training_rows")
    if isinstance(bundle.encoder, GramEncoder):
        same = file_digest(data) == bundle.settings["data"]["sha256"]
        share = len(bundle.encoder.rows) / bundle.encoder.n_samples if same else 0.0
    else:
        share = known_share(X, text) if isinstance(text, str) else 0.0
    if share < MOST:
        return []
    return [
        f"Most of these rows ({share:.0%}) were trained on: how well the model does on rows it has seen says "
        "little about new ones. The rows that fit held out are in its predictions.csv."
    ]
