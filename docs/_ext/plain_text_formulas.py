"""Docstrings with formulas in plain text, made safe for reStructuredText.

The docstrings of kernelweave write formulas as text: V*(y, v) = v y + eps |v|, weights_, and indented lines.
To reStructuredText a star opens emphasis, a bar a substitution, a trailing underscore a link, and indented
lines are a quotation that is filled into one paragraph. This extension escapes the first three and makes
indented lines literal blocks, before numpydoc reads the docstring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: parts of a line that are code already
CODE = re.compile(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`)")

#: sections whose unindented lines are names, not text
LISTS = {
    "Parameters",
    "Other Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Methods",
    "See Also",
}


def escaped(text: str) -> str:
    """`text` with the characters that reStructuredText would read as markup escaped, outside of code."""
    parts = CODE.split(text)
    return "".join(part if k % 2 else _escaped_part(part) for k, part in enumerate(parts))


def _escaped_part(text: str) -> str:
    bullet = re.match(r"\s*[*-] ", text)
    start = bullet.end() if bullet else 0
    return text[:start] + re.sub(r"([*|]|(?<=\w)_(?!\w))", r"\\\1", text[start:])


def converted(lines: list[str]) -> list[str]:
    """A docstring whose formulas survive reStructuredText."""
    out: list[str] = []
    section = ""
    for k, line in enumerate(lines):
        if _is_title(lines, k):
            section = line.strip()
        if section == "Examples" or _is_title(lines, k) or _is_title(lines, k - 1):
            out.append(line)
        elif section in LISTS:
            out.append(escaped(line) if line.startswith(" ") else line)
        elif line.startswith("    ") and not _in_list(out):
            out += ["::", ""] if _opens_block(out) else []
            out.append(line)
        else:
            out.append(escaped(line))
    return out


def _is_title(lines: list[str], k: int) -> bool:
    """Whether line k is underlined."""
    return (
        0 <= k < len(lines) - 1
        and bool(lines[k].strip())
        and re.fullmatch(r"-{3,}", lines[k + 1]) is not None
    )


def _opens_block(out: list[str]) -> bool:
    """Whether an indented line that comes next is the first of its block."""
    text = [line for line in out if line.strip()]
    return not (text and (text[-1].startswith("    ") or text[-1].rstrip().endswith("::")))


def _in_list(out: list[str]) -> bool:
    """Whether the last unindented line is an item of a list."""
    flush = [line for line in out if line.strip() and not line.startswith("  ")]
    return bool(flush) and re.match(r"([*-]|\d+\.) ", flush[-1]) is not None


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    names = isinstance(obj, Mapping)
    lines[:] = [f"The names and what they stand for: {_listed(obj)}."] if names else converted(lines)


def _listed(table: Mapping[str, Any]) -> str:
    """A table of parts by name: their names."""
    return ", ".join(f"``{name!r}``" for name in table)


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Members that scikit-learn defines are described there."""
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", None)
    foreign = isinstance(home, str) and not home.startswith("kernelweave")
    return True if foreign or (name.startswith("set_") and name.endswith("_request")) else None


def setup(app: Any) -> dict[str, bool]:
    """Run before numpydoc, which has the default priority of 500."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}
