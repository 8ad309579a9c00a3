"""What users read: docstrings, comments, messages and pages, piece by piece, and the phrases that make them stumble.

``python tools/prose.py [FILE ...]`` prints what it finds; ``tests/test_prose.py`` finds nothing.
The phrases and the words of the project are in ``docs/vocabulary.toml``.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "docs" / "vocabulary.toml"

#: a fenced block of a page, code in a line, an address
CODE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1[ \t]*$|``.+?``|`[^`\n]+`|https?://\S+|\$\$.*?\$\$|\$[^$\n]+\$", re.M | re.S)


class Piece(NamedTuple):
    """A text, and where it starts."""

    path: Path
    line: int
    text: str


def pieces(path: Path) -> Iterator[Piece]:
    """Texts of a file: of a page all of it, of Python the docstrings, comments and strings."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield Piece(path, 1, source)
        return
    yield from (Piece(path, *found) for found in _comments(source))
    parts = set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield Piece(path, node.lineno, "".join(_part(part) for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            if " " in node.value:
                yield Piece(path, node.lineno, node.value)


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Blocks of comments; one behind a statement is a block of its own."""
    start, lines = 0, list[str]()
    for number, line in enumerate([*source.splitlines(), ""], start=1):
        found = re.match(r"\s*#:? ?(.*)|[^#\"']*\s#:? (.*)", line)
        if found and found[1] is not None:
            start = start if lines else number
            lines.append(found[1])
            continue
        if lines:
            yield start, "\n".join(lines)
            lines = []
        if found:
            yield number, found[2]


def plain(text: str) -> str:
    """The text without code, as long as before, so that positions stay."""
    text = CODE.sub(lambda match: re.sub(r"[^\n]", "\x00", match[0]), text)
    return re.sub(r"^[ \t]*(?:>>>|\.\.\.) .*$", lambda match: "\x00" * len(match[0]), text, flags=re.M)


class Rule(NamedTuple):
    """A phrase that is not used, and what is said instead."""

    pattern: re.Pattern[str]
    instead: str


def rules() -> list[Rule]:
    """The rules of ``docs/vocabulary.toml``: spaces stand for any white space, {noun} for a word of the list."""
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    nouns = "|".join(sorted(table["nouns"], key=len, reverse=True))
    return [
        Rule(
            re.compile(rule["phrase"].replace("{noun}", f"(?:{nouns})").replace(" ", r"\s+(?:#:? )?"), re.I),
            rule["instead"],
        )
        for rule in table["rules"]
    ]


def findings(path: Path, wanted: list[Rule]) -> Iterator[str]:
    """Where a file says what it should not, and the remedy."""
    for piece in pieces(path):
        text = plain(piece.text)
        for rule in wanted:
            for match in rule.pattern.finditer(text):
                line = piece.line + text.count("\n", 0, match.start())
                yield f"{path.relative_to(ROOT)}:{line}: {' '.join(match[0].split())!r}: {rule.instead}"


def files() -> list[Path]:
    """Everything that users read."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found += [path for path in (ROOT / "docs").rglob("*.md") if not {"api", "gallery"} & set(path.parts)]
    found += [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.html"), *(ROOT / "examples").glob("*.py")]
    return sorted(found)


if __name__ == "__main__":
    given = [Path(name).resolve() for name in sys.argv[1:]]
    said = [line for path in given or files() for line in findings(path, rules())]
    print("\n".join(said))
    sys.exit(bool(said))
