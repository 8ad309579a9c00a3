"""English: phrases that make readers stumble are nowhere, and words of our own are defined."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

import prose  # noqa: E402

RULES = prose.rules()


def test_nothing_that_users_read_makes_them_stumble():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in prose.files()
        for line in prose.findings(path.read_text(encoding="utf-8"), RULES)
    ]
    assert not found, "\n".join(found)


def test_everything_that_people_read_is_looked_at():
    """Pages, docstrings, messages, help texts, and what lies beside the package."""
    read = {str(path.relative_to(ROOT)) for path in prose.files()}
    assert {"README.md", "CHANGELOG.md", "SECURITY.md", "experiments/README.md", "Makefile"} <= read
    assert {"docs/index.md", "docs/decisions.md", "benchmarks/run.py", "experiments/lp_toy.py"} <= read
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py")}
    assert package <= read


@pytest.mark.parametrize(
    "text",
    [
        "One file a table or figure of the papers",
        "kernels are looked at once a round",
        "1 prints a line a model.",
        "Most features a kernel under approximation.",
        "one model a class, or one a pair of classes",
        "ten\n    fits a fold",
        'raise ValueError("one model "\n    f"a class")',
        "# one row\n    # a sample",
        "a checkpoint found there is gone on from",
        "a negative entry means a kernel that is none",
        "kernels that are dear to compute",
        "Take categories the model does not know for none of its own.",
        "sub-samples start afresh",
        "a million of them are no matter.",
        "one path a lambda",
        "One panel a model",
        "two options a panel, one row a repetition",
        "the paper's data are not to be had",
        "How this set-up was come by",
    ],
)
def test_the_phrases_of_the_list_are_found(text):
    assert list(prose.findings(text, RULES))


@pytest.mark.parametrize(
    "text", ["one model per class", "`one model a class`", ">>> one model a class", "dearth"]
)
def test_code_and_plain_english_are_left_alone(text):
    assert not list(prose.findings(text, RULES))


def test_words_of_our_own_are_in_the_glossary():
    glossary = (ROOT / "docs" / "guide" / "glossary.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^(\S.*)\n: ", glossary, re.M))
    own = tomllib.loads(prose.LIST.read_text(encoding="utf-8"))["own"]
    assert set(own) == defined
    text = "\n".join(path.read_text(encoding="utf-8") for path in prose.files()).lower()
    assert [word for word in own if word.lower() not in text.replace(glossary.lower(), "")] == []
