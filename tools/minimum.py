"""The oldest versions that pyproject.toml allows, as constraints for pip: one line per dependency and extra.

python tools/minimum.py > build/minimum.txt
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

#: extras that bring a library which kernelweave calls; the others are tools of its developers
USED = ("plot", "tables", "excel", "omics", "torch", "dask", "test")

#: packages that these need, of their time: with the newest ones they do no more than warn, or break
INDIRECT = ["click==8.1.8"]


def constraints() -> Iterator[str]:
    """`name==version` of every `name>=version`; what is not a bound of another package is left out."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = [bound for extra in USED for bound in project["optional-dependencies"][extra]]
    for bound in [*project["dependencies"], *extras]:
        if found := re.fullmatch(r"([\w-]+)>=([\d.]+)", bound):
            yield f"{found[1]}=={found[2]}"
    yield from INDIRECT


if __name__ == "__main__":
    print(*constraints(), sep="\n")
