"""What was fitted, and on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..html import Html, join, json_text, tag
from ..numbers import count, listed
from .parts import definitions, lead

if TYPE_CHECKING:
    from ..report import Report


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
    pairs += [(str(key).replace("_", " ").capitalize(), _words(value)) for key, value in found.source.items()]
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
    """A value of the source: lists and dicts in JSON, long ones cut."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return listed(list(value), 20)
    text = json_text(value) if isinstance(value, dict | list | tuple) else str(value)
    return tag("code", text if len(text) <= 500 else f"{text[:500]} …")
