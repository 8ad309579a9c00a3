"""Markup that cannot forget to escape: text is escaped, only `Html` goes in as it is."""

from __future__ import annotations

import html
import json
import math
import re
from typing import Any

#: characters that no HTML document may hold, and those that turn the direction of the text around them
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)

#: elements without content
_VOID = frozenset({"br", "col", "hr", "input", "meta"})


class Html(str):
    """Markup, safe to put into a page as it is."""

    __slots__ = ()


def escape(text: Any) -> Html:
    """The text of anything, with what HTML takes for markup replaced; `Html` stays as it is.

    Examples
    --------
    >>> escape("a < b")
    'a &lt; b'
    """
    if isinstance(text, Html):
        return text
    return Html(html.escape(_FORBIDDEN.sub("\ufffd", str(text)), quote=True))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """An element; children and attribute values are escaped.

    Parameters
    ----------
    name : str
        Of the element.
    *children : str or Html
        Its content; None is left out.
    **attributes
        ``class_`` is class and ``data_tip`` is data-tip; None and False leave an attribute out, True
        writes it without a value.

    Examples
    --------
    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(opening if name in _VOID else f"{opening}{join(children)}</{name}>")


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    key = key.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{escape(value)}"'


def join(children: Any, between: str = "") -> Html:
    """Several pieces one after another, escaped."""
    return Html(escape(between).join(escape(child) for child in children if child is not None))


def plain(value: Any) -> Any:
    """Numbers, text, lists and dicts that JSON can hold; what is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | range):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str) or value is None else str(value)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON of `plain` values, strict: no NaN."""
    separators = (",", ":") if indent is None else None
    return json.dumps(plain(value), indent=indent, separators=separators, allow_nan=False)


def json_block(element_id: str, value: Any) -> Html:
    """Data for the script of the page; no value can end the element it stands in."""
    text = json_text(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{escape(element_id)}">{text}</script>')
