"""What users read (docstrings, comments, messages, pages), and the phrases that make them stumble.

``python tools/prose.py [FILE ...]`` prints what it finds; ``tests/test_prose.py`` wants it to find nothing.
The phrases, and what to say instead, are in ``docs/vocabulary.toml``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LIST = DOCS / "vocabulary.toml"

#: built pages
LEFT_OUT = {"api", "gallery"}

#: what is read beside the pages of docs
READ = ["*.md", "src/**/*.py", "src/**/*.html", "examples/*.py", "experiments/**/*.py", "experiments/*.md"]
READ += [
    "benchmarks/**/*.py",
    "benchmarks/**/*.md",
    "tools/*.py",
    "docs/**/*.py",
    ".github/**/*.md",
    "Makefile",
]

#: a fenced block, code in a line, an address, a formula, a line of an example
CODE = re.compile(
    r"^(`{3,})[^\n]*\n.*?^\1[ \t]*$|``[^`]+``|`[^`\n]+`|https?://\S+|\$\$[^$]*\$\$|\$[^$\n]+\$"
    r"|^[ \t]*>>> [^\n]*$",
    re.M | re.S,
)

#: what a space of a phrase stands for: white space, or the end of a line of text, of a string or of a comment
SPACE = r"(?:[ \t]+|[ \t]*[\"']?[ \t]*\n[ \t]*(?:#:? |[rf]*[\"'])?)"


class Rule(NamedTuple):
    """A phrase that is not used, and what is said instead."""

    pattern: re.Pattern[str]
    instead: str
    has: list[str]  # a text without any of these need not be searched


def rules() -> list[Rule]:
    """The rules of ``docs/vocabulary.toml``; {noun} stands for a word of its list."""
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    nouns = f"(?:{'|'.join(sorted(table['nouns'], key=len, reverse=True))})"
    return [
        Rule(
            re.compile(rule["phrase"].replace("{noun}", nouns).replace(" ", SPACE)),
            rule["instead"],
            rule.get("has", [""]),
        )
        for rule in table["rules"]
    ]


def findings(text: str, wanted: list[Rule]) -> Iterator[str]:
    """Line, phrase and remedy of what a text should not say; a source file is read as it is.

    Examples
    --------
    >>> list(findings("One model a class.", rules()))
    ['1: "One model a class": say "per" or "for each", as in "one model per class"']
    """
    text = CODE.sub(lambda match: re.sub(r"[^\n]", "\x00", match[0]), text)
    for rule in wanted:
        if not any(word in text for word in rule.has):
            continue
        for match in rule.pattern.finditer(text):
            phrase = " ".join(match[0].split())
            yield f'{text.count(chr(10), 0, match.start()) + 1}: "{phrase}": {rule.instead}'


def files() -> list[Path]:
    """Everything that people read: pages, code with its messages and help texts, experiments, benchmarks."""
    found = [path for path in DOCS.rglob("*.md") if not LEFT_OUT & {*path.relative_to(DOCS).parts}]
    for pattern in READ:
        found += ROOT.glob(pattern)
    return sorted(path for path in found if path.resolve() != Path(__file__).resolve())


if __name__ == "__main__":
    wanted = rules()
    given = [Path(name).resolve() for name in sys.argv[1:]] or files()
    said = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in given
        for line in findings(path.read_text(encoding="utf-8"), wanted)
    ]
    print("\n".join(said))
    sys.exit(bool(said))
