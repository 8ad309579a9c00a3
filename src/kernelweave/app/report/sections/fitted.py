"""What was fitted, and on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..html import Html, join, json_text, tag
from ..numbers import count, listed, number
from .parts import definitions, lead

if TYPE_CHECKING:
    from ..report import Report

#: characters from which on a text in a list is taken for a sentence
SENTENCE = 40


def fitted(report: Report) -> Html:
    """Method, data, kernels and whatever the caller said of the source."""
    found = report.fitted
    pairs: list[tuple[str, Any]] = [
        ("Model", found.estimator),
        ("Task", _task(report)),
        ("Training", count(found.n_train, "sample")),
        ("Held out", count(found.n_test, "sample") if found.n_test else "none; scores are cross-validated"),
    ]
    if found.n_features is not None:
        pairs.append(("Columns", str(found.n_features)))
    pairs.append(("Kernels", _kernels(report)))
    told = {str(key).replace("_", " ").capitalize(): _words(value) for key, value in found.source.items()}
    pairs = [pair for pair in pairs if pair[0] not in told] + list(told.items())
    return join([lead(found.method), tag("p", found.formula, class_="formula"), definitions(pairs)])


def _task(report: Report) -> str:
    found = report.fitted
    if not found.classes:
        return found.task
    parts = [f"{name} ({n})" for name, n in found.classes]
    return (
        f"classification into {count(len(parts), 'class').replace('classs', 'classes')}: {listed(parts, 8)}"
    )


def _kernels(report: Report) -> str:
    names = list(report.kernels.names)
    return f"{len(names)}: {listed(names, 6)}"


def _words(value: Any) -> Any:
    """A value of the source: numbers and lists as people write them, nested ones in JSON, long texts cut."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        sentences = any(len(item) > SENTENCE for item in value)
        return "; ".join(value) if sentences else listed(list(value), 20)
    text = json_text(value) if isinstance(value, dict | list | tuple) else str(value)
    return tag("code", text if len(text) <= 500 else f"{text[:500]} …")
