"""Mutation testing: one small change of a function at a time, to see whether the tests notice.

    python tools/mutants.py src/kernelweave/losses/*.py --tests tests/losses

pytest collects the tests once and runs them once, which says which of them call which function of the files,
and how long they take. Then every mutant is tried in a fork of that process: the code of one function is
replaced, and the tests that call it run, quick ones first, until one fails or takes far longer than it did.
A mutant that no test notices survived: a test is missing, or the change makes no difference, and then
`tools/mutants.toml` says why. Rows go to ``build/mutants.jsonl`` as they are found; a second run tries only
what is not there yet, or with ``--again`` the survivors without a reason, to see whether new tests kill them.

Why not one of the tools there are: some start a process per mutant, which is mostly spent on imports, others
rewrite the package and leave decorated functions out. Functions compiled by numba, module constants and
defaults of arguments are not mutated here either.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import importlib
import json
import os
import signal
import sys
import time
import tomllib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "build" / "mutants.jsonl"
EXPLAINED = ROOT / "tools" / "mutants.toml"
Function = ast.FunctionDef | ast.AsyncFunctionDef

#: a file and the names that lead to a function in it
Place = tuple[str, tuple[str, ...]]
Callers = defaultdict[Place, list[pytest.Item]]

#: fates of a mutant that asks for a test or a reason
ALIVE = ("survived", "not called")

#: operator -> what it is mistaken for
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}

#: functions that are mistaken for one another
_PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("exp", "expm1")]
_PAIRS += [("log", "log1p"), ("zeros_like", "ones_like"), ("floor", "ceil"), ("cumsum", "cumprod")]
NAMES = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One changed function: `path` of names down to it, the new one, and the change in words."""

    file: str
    path: tuple[str, ...]
    line: int
    before: str
    after: str
    function: Function

    @property
    def key(self) -> str:
        """What a mutant is known by, wherever its lines move to."""
        return f"{self.file}::{'.'.join(self.path)}::{self.before} -> {self.after}"


# -- making mutants ----------------------------------------------------------------------------------


def mutants(file: Path) -> Iterator[Mutant]:
    """All mutants of the functions of a file; of two that read alike the second has a number."""
    name, seen = str(file.relative_to(ROOT)), Counter[str]()
    for path, function in functions(ast.parse(file.read_text(encoding="utf-8")).body, ()):
        for node, changed in changes(function):
            before, after = ast.unparse(node), ast.unparse(changed)
            key = f"{path}{before} -> {after}"
            seen[key] += 1
            number = f"  # {seen[key]}" if seen[key] > 1 else ""
            copied = ast.fix_missing_locations(copy.deepcopy(function, {id(node): changed}))
            yield Mutant(name, path, getattr(node, "lineno", function.lineno), before, after + number, copied)


def functions(body: list[ast.stmt], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Function]]:
    """Functions and methods, with the names that lead to them; inner functions are part of the outer ones."""
    for node in body:
        if isinstance(node, Function):
            yield (*path, node.name), node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, (*path, node.name))


def changes(function: Function) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Nodes of a function, each with what takes its place."""
    for statement in function.body:
        for node in walk(statement):
            for changed in alternatives(node):
                yield node, changed
            if isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
                yield node.test, ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that are computed: no messages of errors, no annotations, no docstrings."""
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in {"annotation", "returns", "decorator_list", "op", "ops", "ctx"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child)


def alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may be mistaken for."""
    changed: Any = copy.deepcopy(node)
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            if type(operator) in OPERATORS:
                changed = copy.deepcopy(node)
                changed.ops[place] = OPERATORS[type(operator)]()
                yield changed
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OPERATORS:
        changed.op = OPERATORS[type(node.op)]()
        yield changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield changed.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        changed.value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield changed
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        changed.attr = NAMES[node.attr]
        yield changed
    elif isinstance(node, ast.Name) and node.id in NAMES:
        changed.id = NAMES[node.id]
        yield changed
    elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "abs":
        yield changed.args[0]


def compiled(function: Function, path: tuple[str, ...]) -> CodeType:
    """The code of a function, compiled inside of its classes: `super()` asks for them."""
    body: ast.stmt = function
    for name in path[-2::-1]:
        body = ast.ClassDef(name, bases=[], keywords=[], body=[body], decorator_list=[], type_params=[])
    module = ast.fix_missing_locations(ast.Module([body], type_ignores=[]))
    code = compile(module, "<mutant>", "exec", flags=annotations.compiler_flag, dont_inherit=True)
    for name in path:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return code


def live(file: str, path: tuple[str, ...]) -> FunctionType | None:
    """The function that runs, without its decorators; None for one that is compiled, or gone."""
    module = ".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__")
    found: Any = importlib.import_module(module)
    for name in path:
        found = vars(found).get(name)
    if hasattr(found, "py_func"):
        return None
    for inner in ("fget", "__func__", "func", "__wrapped__"):
        found = getattr(found, inner, found)
    return found if isinstance(found, FunctionType) else None


def forget() -> None:
    """Empty the caches of the package: what they hold was computed without the mutant."""
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper) and found.__module__.startswith("kernelweave"):
            found.cache_clear()


# -- trying them -------------------------------------------------------------------------------------


class Trial:
    """The pytest plugin: runs the tests once, then, in forks, those that call what was changed."""

    def __init__(
        self, files: list[Path], every: int = 1, longest: float = float("inf"), again: bool = False
    ) -> None:
        self.files, self.every, self.longest, self.again = files, every, longest, again
        self.failed, self.reasons = False, read_reasons()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In the place of pytest's own loop."""
        callers, took = self._callers(session)
        rows = read_rows()
        for file in self.files:
            for mutant in mutants(file):
                function = live(mutant.file, mutant.path)
                if function is not None and self._wanted(mutant.key, rows.get(mutant.key)):
                    near = callers[mutant.file, mutant.path]
                    tests = sorted((t for t in near if took[t] <= self.longest), key=took.__getitem__)
                    self._note(mutant, self._try(mutant, function, tests, took), len(tests))
        return True

    def _wanted(self, key: str, row: dict[str, Any] | None) -> bool:
        """Whether to try a mutant; `row` is what is known of it."""
        if self.again:
            return row is not None and row["fate"] in ALIVE and key not in self.reasons
        return row is None and zlib.crc32(key.encode()) % self.every == 0

    def _callers(self, session: pytest.Session) -> tuple[Callers, dict[pytest.Item, float]]:
        """Which tests call which function, and the seconds they take."""
        called: set[Place] = set()
        before = list(self._watch(called))
        callers: Callers = defaultdict(list)
        took = {}
        for item in session.items:
            called.clear()
            start = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            took[item] = time.process_time() - start
            for place in called:
                callers[place].append(item)
        for function, code in before:
            function.__code__ = code
        if self.failed:
            pytest.exit("the tests fail without any mutant", returncode=2)
        return callers, took

    def _watch(self, called: set[Place]) -> Iterator[tuple[FunctionType, CodeType]]:
        """Let every function say that it is called; yields what it was before."""
        for file in self.files:
            name = str(file.relative_to(ROOT))
            for path, function in functions(ast.parse(file.read_text(encoding="utf-8")).body, ()):
                found = live(name, path)
                if found is not None:
                    yield found, found.__code__
                    note = ast.parse(f"__called__.add({(name, path)!r})").body
                    function.body[:0] = note
                    found.__globals__["__called__"] = called
                    found.__code__ = compiled(function, path)

    def _try(
        self, mutant: Mutant, function: FunctionType, tests: list[pytest.Item], took: dict[pytest.Item, float]
    ) -> str:
        """'killed', 'survived', 'timed out' or 'not called'."""
        if not tests:
            return "not called"
        child = os.fork()
        if child == 0:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            function.__code__ = compiled(mutant.function, mutant.path)
            forget()
            for item in tests:
                signal.setitimer(signal.ITIMER_PROF, 2.0 + 5.0 * took[item])  # its signal ends the fork
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if self.failed:
                    os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        return "timed out" if os.WIFSIGNALED(status) else ("killed" if os.WEXITSTATUS(status) else "survived")

    def _note(self, mutant: Mutant, fate: str, tests: int) -> None:
        row = {"key": mutant.key, "line": mutant.line, "fate": fate, "tests": tests}
        ROWS.parent.mkdir(exist_ok=True)
        with ROWS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


def read_rows() -> dict[str, dict[str, Any]]:
    """What earlier runs found, the last word on each mutant."""
    lines = ROWS.read_text(encoding="utf-8").splitlines() if ROWS.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


def read_reasons() -> dict[str, str]:
    """Why mutants that survive make no difference."""
    return tomllib.loads(EXPLAINED.read_text(encoding="utf-8")) if EXPLAINED.exists() else {}


def report(files: list[Path]) -> int:
    """Mutants and scores per file, then the survivors that nothing explains; how many there are."""
    reasons = read_reasons()
    names = {str(file.relative_to(ROOT)) for file in files}
    present = {mutant.key for file in files for mutant in mutants(file)}
    rows = [row for key, row in read_rows().items() if key.partition("::")[0] in names and key in present]
    left = 0
    for name in sorted(names):
        fates = Counter(row["fate"] for row in rows if row["key"].startswith(name))
        alive = [row for row in rows if row["key"].startswith(name) and row["fate"] in ALIVE]
        unexplained = [row for row in alive if row["key"] not in reasons]
        killed = fates["killed"] + fates["timed out"]
        print(f"{name}: {sum(fates.values())} mutants, {killed} killed, {len(alive)} alive, ", end="")
        print(f"{len(alive) - len(unexplained)} explained")
        for row in unexplained:
            print(
                f"    {row['line']}: {row['key'].partition('::')[2]}  ({row['fate']}, {row['tests']} tests)"
            )
        left += len(unexplained)
    return left


def main() -> int:
    """Try the mutants of the files that are named, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=lambda name: Path(name).resolve())
    parser.add_argument("--tests", nargs="+", default=["tests"])
    parser.add_argument(
        "--marks", default="not slow and not system and not browser and not torch and not data"
    )
    parser.add_argument("--every", type=int, default=1, help="try every K-th mutant, by the hash of its name")
    parser.add_argument(
        "--longest", type=float, default=1.0, help="leave out tests of more seconds than that"
    )
    parser.add_argument(
        "--again", action="store_true", help="try those again that survived and are not explained"
    )
    parser.add_argument("--report", action="store_true", help="only say what earlier runs found")
    args = parser.parse_args()
    if not args.report:
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", args.marks, *args.tests]
        if pytest.main(options, plugins=[Trial(args.files, args.every, args.longest, args.again)]) not in (
            0,
            5,
        ):
            return 2
    return 1 if report(args.files) else 0


if __name__ == "__main__":
    sys.exit(main())
