"""The page: sections put into the template, with style and script inside and the network shut out."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from .html import Html, escape, join, json_block, tag
from .sections import SECTIONS, header, sample_data

if TYPE_CHECKING:
    from .report import Report


def render(report: Report) -> str:
    """The report as one HTML document that loads nothing.

    Style and script are allowed by their hashes; everything else, the network included, is forbidden by the
    content security policy.
    """
    style, script = asset("style.css"), asset("page.js")
    sections = [(key, title, body) for key, title, make in SECTIONS if (body := make(report)) is not None]
    return Template(asset("page.html")).substitute(
        title=escape(report.title),
        policy=escape(policy(style, script)),
        style=style,
        script=script,
        header=header(report),
        contents=join(tag("li", tag("a", title, href=f"#{key}")) for key, title, _ in sections),
        sections=join(section(key, title, body) for key, title, body in sections),
        data=json_block("report-data", sample_data(report)),
        version=escape(report.settings.versions["kernelweave"]),
        created=escape(report.settings.created),
    )


def section(key: str, title: str, body: Html) -> Html:
    """A section under its heading."""
    heading = tag("h2", title, id=f"{key}-heading")
    return tag("section", heading, body, id=key, aria_labelledby=f"{key}-heading")


def policy(style: str, script: str) -> str:
    """The content security policy of a page with this style and script and nothing else."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{digest(style)}'",
            f"script-src '{digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def digest(text: str) -> str:
    """Hash of an inline style or script as a policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def asset(name: str) -> str:
    """A file of this package."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
