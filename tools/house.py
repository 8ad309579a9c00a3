"""Sizes of the package, room by room, and the functions that one fit walks through; a report, not a limit.

    python tools/house.py            sizes and the walk of a fit
    python tools/house.py --names    with the names of the functions, in the order of their first call

A line of code is a line that is neither blank, nor a comment, nor part of a docstring.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src" / "kernelweave"
SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Lines of code of a module."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _docstring_lines(ast.parse(text)))


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Lines that docstrings stand on."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def room_of(path: Path) -> str:
    """The folder of a file below the package, two levels deep."""
    parts = path.relative_to(SOURCE).parts[:-1]
    return "/".join(parts[:2]) or "(top)"


def sizes() -> tuple[Counter[str], Counter[str]]:
    """Files and lines of code per room."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in sorted(SOURCE.rglob("*.py")):
        files[room_of(path)] += 1
        lines[room_of(path)] += code_lines(path.read_text(encoding="utf-8"))
    return files, lines


def walk() -> list[str]:
    """Named functions of the package that one plain fit calls, in the order of their first call."""
    import numpy as np

    import kernelweave as kw
    from kernelweave.kernels import RBF, Linear

    X = np.random.default_rng(0).normal(size=(120, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "a", "b")
    estimator = kw.MKLClassifier([Linear(), RBF(gamma=0.1), RBF(gamma=1.0)])
    estimator.fit(X, y)  # imports and compiles
    seen: dict[str, None] = {}

    def record(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<"):
            seen[f"{Path(code.co_filename).relative_to(SOURCE)}:{code.co_qualname}"] = None

    sys.setprofile(record)
    try:
        estimator.fit(X, y)
    finally:
        sys.setprofile(None)
    return list(seen)


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", action="store_true", help="print the functions of the walk")
    options = parser.parse_args()
    files, lines = sizes()
    print(f"{'room':32}{'files':>7}{'code':>8}")
    for room in sorted(files):
        print(f"{room:32}{files[room]:7}{lines[room]:8}")
    print(f"{'total':32}{files.total():7}{lines.total():8}")
    functions = walk()
    visited = {name.split(":")[0] for name in functions}
    print(f"\none fit: {len(functions)} named functions in {len(visited)} files")
    if options.names:
        print("\n".join(functions))


if __name__ == "__main__":
    main()
