"""Settings, versions and code to fit the same model again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..html import Html, join, json_text, tag
from .parts import copyable, definitions, details, lead

if TYPE_CHECKING:
    from ..report import Report


def reproduce(report: Report) -> Html:
    """Code that makes the model, its parameters as JSON, and the versions that computed it."""
    found = report.settings
    everything = {
        "estimator": report.fitted.estimator,
        "parameters": found.parameters,
        "kernel_names": report.kernels.names,
        "random_state_of_the_report": found.random_state,
        "source": report.fitted.source,
        "versions": found.versions,
        "created": found.created,
    }
    return join(
        [
            lead("The same data, code and versions give the same model."),
            copyable("code", found.code, "Python code"),
            tag("h3", "Versions"),
            definitions(list(found.versions.items()), compact=True),
            details(
                "All settings as JSON",
                copyable("settings", json_text(everything, indent=2), "settings as JSON"),
            ),
        ]
    )
