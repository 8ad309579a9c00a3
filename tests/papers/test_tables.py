"""The tables of docs/papers: no item is left out, names resolve, tests exist, gaps have a reason."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import kernelweave as kw

ROOT = Path(__file__).resolve().parents[2]
PAPERS, TESTS = ROOT / "docs" / "papers", ROOT / "tests"
NUMBERED = tomllib.loads((PAPERS / "numbered.toml").read_text(encoding="utf-8"))
HEADER = ["item", "what it says", "public name", "certified by", "remark"]

#: how a remark begins that says why a row has no name or no test
REASONS = ("not offered: ", "not testable: ", "a step ", "a definition", "an illustration", "cited: ")


class Row(NamedTuple):
    """One line of a table."""

    item: str
    says: str
    names: str
    tests: str
    remark: str

    @property
    def spans(self) -> list[str]:
        """The names, without links."""
        return re.findall(r"`([^`]+)`", self.names)

    @property
    def test_ids(self) -> list[str]:
        return re.findall(r"`([^`]+)`", self.tests)


@cache
def rows(paper: str) -> list[Row]:
    lines = (PAPERS / f"{paper}.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert all(len(row) == len(HEADER) for row in cells), [row for row in cells if len(row) != len(HEADER)]
    found = [Row(*row) for row in cells if row != HEADER and set("".join(row)) != {"-"}]
    assert found
    return found


def numbers(text: str) -> set[int]:
    """ "(3), (5) to (7)" -> {3, 5, 6, 7}."""
    plain = re.sub(r"[()]", "", text)
    spans = [re.fullmatch(r"(\d+)(?: to (\d+))?", part.strip()) for part in re.split(r",| and ", plain)]
    assert all(spans), text
    return {k for m in spans if m for k in range(int(m[1]), int(m[2] or m[1]) + 1)}


def covered(paper: str) -> dict[str, set[int]]:
    """Kind of item -> numbers that have a row."""
    found: dict[str, set[int]] = {kind: set() for kind in NUMBERED[paper] if kind != "title"}
    kinds = {"corollaries": "corollary"}
    for row in rows(paper):
        for part in row.item.split(";"):
            match = re.match(r"\s*([A-Za-z]+) (.*)", part)
            assert match, row.item
            kind = kinds.get(match[1].lower(), match[1].lower().removesuffix("s"))
            if kind in {"section", "appendix"}:
                continue
            assert kind in found, f"{paper}: {part.strip()!r} is of no kind in numbered.toml"
            found[kind] |= numbers(match[2])
    return found


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_has_a_row(paper):
    for kind, found in covered(paper).items():
        listed = NUMBERED[paper][kind]
        assert found == set(range(1, listed + 1) if isinstance(listed, int) else listed), kind


def test_every_paper_has_a_page():
    pages = {page.stem for page in PAPERS.glob("*.md")} - {"index"}
    assert pages == set(NUMBERED)
    index = (PAPERS / "index.md").read_text(encoding="utf-8")
    assert all(f"]({page}.md)" in index and f"\n{page}\n" in index for page in pages)


def resolved(name: str) -> object:
    """The object of a dotted name, every part of it public; attributes of fits as docstrings list them."""
    head, *parts = name.split(".")
    assert head == "kw", f"{name}: names start with kw., the package"
    found: object = kw
    for part in parts:
        assert not part.startswith("_"), name
        if isinstance(found, ModuleType) and part not in found.__all__:
            found = import_module(f"{found.__name__}.{part}")  # only modules are public without being listed
            continue
        if inspect.isclass(found) and not hasattr(found, part):
            assert re.search(rf"^\s*[\w, ]*\b{part}\b[\w, ]*( : .*)?$", found.__doc__ or "", re.M), name
            return part
        found = getattr(found, part)
    return found


def check_call(call: ast.Call) -> None:
    """The parameters exist, and docstrings name the strings they are given."""
    part = resolved(ast.unparse(call.func))
    known = inspect.signature(part).parameters
    for keyword in call.keywords:
        assert keyword.arg in known, ast.unparse(call)
        if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            assert f'"{keyword.value.value}"' in (part.__doc__ or ""), ast.unparse(call)
        if isinstance(keyword.value, ast.Call):
            check_call(keyword.value)


def check_name(span: str) -> None:
    tree = ast.parse(span, mode="eval").body
    check_call(tree) if isinstance(tree, ast.Call) else resolved(ast.unparse(tree))


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_public_name_resolves(paper):
    for row in rows(paper):
        for span in row.spans:
            check_name(span)


@cache
def functions_in(path: Path) -> set[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_test_exists(paper):
    for row in rows(paper):
        for test in row.test_ids:
            path, _, name = test.partition("::")
            assert name.startswith("test_"), test
            assert (TESTS / path).is_file(), test
            assert name in functions_in(TESTS / path), test


@pytest.mark.parametrize("paper", NUMBERED)
def test_what_is_not_there_has_a_reason(paper):
    for row in rows(paper):
        offered = bool(row.spans) or "](../results/" in row.names
        if not (offered and row.test_ids):
            assert row.remark.startswith(REASONS), f"{row.item}: no name or no test, and no reason"
        if re.search(r"\b(partial|partly|not offered|not testable|absent)\b", row.remark):
            reason = re.search(r"\b(?:partial|partly|not offered|not testable|absent): (.+)", row.remark)
            assert reason, row.item
            assert len(reason[1]) > 20, row.item


@pytest.mark.parametrize("paper", NUMBERED)
def test_results_are_those_of_experiments(paper):
    """A page of results that a row leads to has its experiment; files named in remarks exist."""
    for row in rows(paper):
        for page in re.findall(r"\]\(\.\./results/([\w-]+)\.md\)", row.names):
            script = ROOT / "experiments" / f"{page.replace('-', '_')}.py"
            assert page in {"index", "benchmarks"} or script.is_file(), row.item
        for path in re.findall(r"`((?:experiments|benchmarks)/\w+\.py)`", row.remark):
            assert (ROOT / path).is_file(), row.item


@pytest.mark.parametrize(
    "wrong",
    [
        "kw.LpNorm.nothing",
        "kw.theory._statements",
        "kw.LpNorm(q=1)",
        'kw.MKLClassifier(solver="none")',
        "LpNorm",
    ],
)
def test_a_mistake_in_a_name_is_found(wrong):
    with pytest.raises((AssertionError, ModuleNotFoundError)):
        check_name(wrong)


def test_numbers_of_items():
    assert numbers("(3), (5) to (7)") == {3, 5, 6, 7}
    assert numbers("1 and 2") == {1, 2}
