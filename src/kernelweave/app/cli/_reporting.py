"""The report page, with the command line's progress."""

from __future__ import annotations

import warnings
from typing import Any

from ._monitor import Monitor

#: what of the facts goes to the page's account of the data
SHOWN = ("command", "target", "task_because", "kernels", "reasons", "seconds")


def make_report(
    model: Any,
    data: tuple[Any, ...],
    title: str,
    facts: dict[str, Any],
    stability: bool,
    seed: int,
    monitor: Monitor,
) -> tuple[str, list[dict[str, Any]]]:
    """The page, and the baselines it compares with: name, score and standard error.

    `data` are X and y of the training rows, then of the held-out rows or None.
    """
    from ..report import Report

    source = {"file": facts["data"]["file"], "sha256": facts["data"]["sha256"]}
    source |= {name.replace("_", " "): facts[name] for name in SHOWN if facts.get(name)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = Report.from_model(
            model,
            *data[:2],
            X_test=data[2],
            y_test=data[3],
            title=title,
            source=source,
            stability=stability,
            random_state=seed,
            progress=monitor.part,
        )
    baselines = [] if report.scores is None else report.scores.baselines
    return report.html(), [
        {"name": entry.name, "score": entry.value, "error": entry.error} for entry in baselines
    ]
