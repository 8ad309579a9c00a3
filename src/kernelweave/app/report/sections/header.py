"""The top of the page: what it is about, the verdict, and the numbers that matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..html import Html, tag
from ..numbers import count, fixed, number, percent
from ..words import ALWAYS, Verdict, certificate, verdict

if TYPE_CHECKING:
    from ..report import Report

#: a tone never speaks by colour alone
SIGNS = {"good": "✓", "even": "≈", "poor": "!"}


def header(report: Report) -> Html:
    """Title, subtitle, verdict and summary strip."""
    fitted, kernels = report.fitted, report.kernels
    sizes = [count(fitted.n_train, "training sample"), count(len(kernels.names), "kernel")]
    if fitted.n_test:
        sizes.insert(1, f"{count(fitted.n_test, 'sample')} held out")
    subtitle = " · ".join([fitted.estimator, *sizes])
    tiles = [
        tile for tile in (_score(report), _kernels(report), _certificate(report), _stability(report)) if tile
    ]
    judged = verdict(report.scores)
    return tag(
        "header",
        tag("p", "kernelweave report", class_="brand"),
        tag("h1", report.title),
        tag("p", subtitle, class_="subtitle"),
        None if judged is None else banner(judged),
        tag("ul", *tiles, class_="tiles"),
        class_="top",
    )


def banner(judged: Verdict) -> Html:
    """A verdict, with a sign for its tone."""
    sign = tag("span", SIGNS[judged.tone], class_="sign", aria_hidden="true")
    words = tag("p", tag("strong", f"{judged.headline}."), " ", judged.text)
    return tag("div", sign, words, class_=f"verdict {judged.tone}")


def _tile(name: str, value: str, note: str, tone: str = "") -> Html:
    parts = [
        tag("span", text, class_=kind) for text, kind in ((name, "name"), (value, "figure"), (note, "note"))
    ]
    return tag("li", *parts, class_=f"tile {tone}".strip())


def _score(report: Report) -> Html | None:
    scores = report.scores
    if scores is None:
        return None
    error = scores.model.error
    spread = f"± {fixed(error)}, " if error is not None and np.isfinite(error) else ""
    where = "held out" if report.fitted.n_test else "cross-validated"
    return _tile(scores.metric.capitalize(), fixed(scores.model.value), f"{spread}{where}")


def _kernels(report: Report) -> Html:
    kernels = report.kernels
    heaviest = kernels.names[int(kernels.heaviest(1)[0])]
    used = f"{len(kernels.used)} of {len(kernels.names)}"
    return _tile("Kernels used", used, f"heaviest: {heaviest}")


def _certificate(report: Report) -> Html | None:
    fit, judged = report.convergence, certificate(report.convergence)
    if fit is None or judged is None:
        return None
    if fit.final is None:
        return _tile("Certificate", "none", "greedy selection")
    name = "Duality gap" if fit.kind == "gap" else "Stationarity"
    return _tile(name, number(fit.final, 2), f"{SIGNS[judged.tone]} {judged.headline.lower()}", judged.tone)


def _stability(report: Report) -> Html | None:
    found = report.kernels.stability
    if found is None:
        return None
    always = int((found.frequency >= ALWAYS).sum())
    return _tile(
        "Stable kernels", str(always), f"in {percent(ALWAYS)} or more of {found.n_rounds} sub-samples"
    )
