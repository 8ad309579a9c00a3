"""The tables and figures of the papers, run again: cells, results, verdicts, pages.

An experiment is a file in the folder ``experiments`` of the source code that holds one `Experiment`: the list
of its independent cells (data set, split, method), what one cell does, what the rows of all cells say beside
the paper's figures, and a figure. `run` does the cells that have not been done yet, writes ``NAME-MODE.csv``
as it goes, and ends with the comparison; `publish` makes the page of the documentation from it.

Examples
--------
>>> from reproduce import compare
>>> compare("accuracy", [93.0, 94.0, 95.0], paper=93.5).verdict
'reproduced'
"""

from __future__ import annotations

from .experiment import Experiment, Mode
from .folder import NoExperimentsError, listing, load_experiment
from .page import publish
from .runner import run
from .stats import mean, select, standard_error, standings, table, with_error
from .summary import METHODS, OWN, Line, Standing, Summary, Table
from .verdict import alike, all_above, by, compare, error_of, ordering, threshold, untestable, within

__all__ = [
    "METHODS",
    "OWN",
    "Experiment",
    "Line",
    "Mode",
    "NoExperimentsError",
    "Standing",
    "Summary",
    "Table",
    "alike",
    "all_above",
    "by",
    "compare",
    "error_of",
    "listing",
    "load_experiment",
    "mean",
    "ordering",
    "publish",
    "run",
    "select",
    "standard_error",
    "standings",
    "table",
    "threshold",
    "untestable",
    "with_error",
    "within",
]
