"""The page: the report put into the templates, with style and script inside and the network shut out."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...inspection._models import spread
from . import figures, views, words

if TYPE_CHECKING:
    from .report import Report

#: characters that no HTML document may hold, and those that turn the direction of the text around them
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates, in which all text is escaped, and the functions that they call."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.filters["prefixed"] = lambda text, prefix: f"{prefix}{text}"
    for module in (figures, words, views):
        made.globals |= {
            k: v for k, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__
        }
    made.globals |= {"spread": spread, "g": lambda value: f"{value:g}"}
    return made


def render(report: Report) -> str:
    """The report as one HTML document that loads nothing.

    Style and script are allowed by their hashes; everything else, the network included, is forbidden by the
    content security policy.
    """
    templates = environment()
    loader = templates.loader
    assert loader is not None
    style, script = (loader.get_source(templates, name)[0] for name in ("style.css", "page.js"))
    rules = ["default-src 'none'", f"style-src {digest(style)}", f"script-src {digest(script)}"]
    page = templates.get_template("page.html").render(
        report=report,
        policy="; ".join([*rules, "base-uri 'none'", "form-action 'none'"]),
        style=Markup(style),
        script=Markup(script),
    )
    return FORBIDDEN.sub("\ufffd", page)


def digest(text: str) -> str:
    """Hash of an inline style or script as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
