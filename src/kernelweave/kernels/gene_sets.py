"""Gene sets: one kernel for each set of a GMT file, on the columns that are its genes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._warnings import warn
from .._words import quoted
from .base import positive_integer
from .columns import Columns
from .families import PerGroup


class GeneSets(PerGroup):
    """The same kernels on the columns of every gene set; see `from_gmt`.

    Parameters
    ----------
    groups : dict of str to list of int
        The columns of every set.
    kernel : kernel, list of kernels or family, default=RBF()
    sizes : dict of str to int, optional
        Genes of every set of the file, those left out too.
    """

    def __init__(
        self, groups: Mapping[str, Columns], kernel: Any = None, sizes: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(groups, kernel)
        self.sizes = sizes

    def coverage(self) -> Any:
        """Genes of each set, how many columns they have, and their share, as a DataFrame (needs pandas).

        Sets that were left out have no columns here.
        """
        import pandas as pd

        groups: Any = self.groups
        sizes = {name: len(own) for name, own in groups.items()} if self.sizes is None else self.sizes
        found = [len(groups.get(name, ())) for name in sizes]
        table = pd.DataFrame({"genes": list(sizes.values()), "columns": found}, index=list(sizes))
        return table.assign(share=table["columns"] / table["genes"])


def from_gmt(path: Any, columns: Sequence[str], kernel: Any = None, min_size: int = 5) -> GeneSets:
    r"""One kernel, or several, for each gene set of a GMT file, named as the set.

    A line of the file is a name, a description and the genes, separated by tabs, as in MSigDB, Enrichr and
    Reactome. Sets may overlap: a gene counts in every set that has it. Sets with fewer than `min_size`
    columns in the data are left out. Where something is missing, a warning says how many sets are left out,
    and how much of the sets and of the columns is covered.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str
        The gene of every column of X (or of the view that the kernels see), in order, such as
        ``list(df.columns)``. Several columns may be of one gene.
    kernel : kernel, list of kernels or family, default=RBF()
    min_size : int, default=5

    Returns
    -------
    GeneSets
        A family: pass it as the `kernels` of an estimator, or in a dict of views. ``coverage()`` is the table
        of all sets.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelweave.kernels import Linear
    >>> path = Path(tempfile.mkdtemp()) / "sets.gmt"
    >>> _ = path.write_text("growth\tabout\tMYC\tEGFR\ndeath\tabout\tTP53\tMYC\n")
    >>> sets = from_gmt(path, ["TP53", "MYC", "EGFR"], Linear(), min_size=2)
    >>> sets.groups
    {'growth': [1, 2], 'death': [0, 1]}
    """
    least, genes = positive_integer(min_size, "min_size"), _read_gmt(path)
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise ValueError(
            "columns must be the names of genes, one for every column, such as list(df.columns)."
        )
    names = np.array([str(name) for name in columns])
    known = {name: np.flatnonzero(np.isin(names, list(own))).tolist() for name, own in genes.items()}
    groups = {name: found for name, found in known.items() if len(found) >= least}
    if not groups:
        most, first = max(map(len, known.values())), sorted(next(iter(genes.values())))
        raise ValueError(
            f"columns: no set of {Path(path).name} has {least} of them, the largest has {most}. Columns are "
            f"such as {quoted(names[:3].tolist())}, genes {quoted(first[:3])}: give both the same names, or "
            "lower min_size."
        )
    _say_coverage(Path(path).name, genes, groups, names, least)
    return GeneSets(groups, kernel, {name: len(own) for name, own in genes.items()})


def _read_gmt(path: Any) -> dict[str, set[str]]:
    """The genes of every set."""
    found: dict[str, set[str]] = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        name, *rest = (part.strip() for part in line.split("\t"))
        own = {gene.partition(",")[0] for gene in rest[1:] if gene}  # Enrichr has weights after a comma
        if not name or not own:
            raise ValueError(
                f"{path}, line {number}: a gene set is a name, a description and genes, separated by tabs."
            )
        if name in found:
            raise ValueError(f"{path}, line {number}: there are two sets {name!r}: rename one of them.")
        found[name] = own
    if not found:
        raise ValueError(f"{path} has no gene sets.")
    return found


def _say_coverage(
    file: str, genes: dict[str, set[str]], groups: dict[str, list[int]], names: Any, least: int
) -> None:
    """Warn where sets are left out, genes have no column, or columns are in no set."""
    wanted = set().union(*(genes[name] for name in groups))
    there = len(wanted & set(names.tolist()))
    inside = len(set().union(*groups.values()))
    if len(groups) == len(genes) and there == len(wanted) and inside == len(names):
        return
    warn(
        f"{file}: {len(groups)} of {len(genes)} gene sets have at least min_size={least} columns; "
        f"{there / len(wanted):.0%} of their {len(wanted)} genes have one, and {inside} of the {len(names)} "
        "columns are in a set. See coverage() of the kernels; a further kernel may see the other columns."
    )
