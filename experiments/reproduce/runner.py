"""Running the cells of experiments: those not done yet, with progress, each stored as it ends."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelweave.datasets import DataNotFoundError, find

from .experiment import Cell, Experiment, Mode, Row
from .folder import NoExperimentsError, find_folder, listing, load_experiment
from .page import LARGEST_FIGURE, all_keys, committed, publish, show
from .store import Store
from .summary import Summary

OUT = Path("build") / "experiments"
#: dots per inch, the next where a figure is too large for a page
RESOLUTIONS = (90, 75, 60, 45)


def run(
    names: Sequence[str] | None = None,
    mode: str | Mode = "quick",
    out: Path | str | None = None,
    *,
    jobs: int = 1,
    folder: Path | str | None = None,
    docs: Path | str | None = None,
    go_on: bool = True,
    again: bool = False,
    only: Sequence[str] = (),
    console: Any = None,
) -> dict[str, Summary]:
    r"""Run experiments, print the comparison with the papers, write CSV and figure.

    Cells that are in ``OUT/NAME-MODE.csv`` or among the committed rows of the documentation already are not
    run again. An experiment whose data are not on this machine, or of which nothing is done where nothing is
    to be run, is left out if it is one of several, and is an error if it is the only one.

    Parameters
    ----------
    names : sequence of str, optional
        Names of `listing()`; all by default.
    mode : {"quick", "full"} or Mode
        About a minute each, or the paper's sizes.
    out : path, optional
        Where results go; ``build/experiments`` of the source code by default.
    jobs : int, default=1
        Cells side by side.
    folder : path, optional
        The folder of experiments.
    docs : path, optional
        Also commit the rows to this documentation folder, and write its page ``results/NAME.md``; committed
        rows are read from it, by default from the folder ``docs`` beside the experiments.
    go_on : bool, default=True
        Run what is not done yet; otherwise what is done is summarised, and the page says how much that is.
    again : bool, default=False
        Leave committed rows aside.
    only : sequence of str
        Settings of the cells to run, as in ``method=SVM``, or not to run, as in ``method!=SVM``.
    console : rich Console, optional
        Where to print.

    Returns
    -------
    summaries : dict of str to Summary
        By name, those that were run.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> from rich.console import Console
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "half.py").write_text(
    ...     "from reproduce import Experiment, Summary, compare\n"
    ...     "EXPERIMENT = Experiment('Halves', 'nobody', lambda mode: [{'seed': 0}, {'seed': 1}],\n"
    ...     "    lambda seed: {'x': 0.5}, lambda rows: Summary([compare('x', [0.5 for row in rows], 0.5)]))\n"
    ... )
    >>> run(["half"], out=folder, folder=folder, console=Console(quiet=True))["half"].lines[0].verdict
    'reproduced'
    """
    mode = mode if isinstance(mode, Mode) else Mode(mode)
    place = find_folder(folder)
    chosen = list(listing(place)) if names is None else list(names)
    output = Path(out) if out is not None else place.parent / OUT
    terminal = console or _console()
    found = {}
    for name in chosen:
        earlier = [] if again else [committed(docs or place.parent / "docs", name)]
        store = Store(output / f"{name}-{mode.name}.csv", *earlier)
        try:
            found[name] = _run_one(name, mode, store, jobs, place, docs, go_on, only, terminal)
        except (DataNotFoundError, NoExperimentsError) as error:
            if len(chosen) == 1:
                raise
            terminal.print(f"{name} left out: {error}", style="yellow", markup=False)
    return found


def _console() -> Any:
    from rich.console import Console

    return Console()


def _run_one(
    name: str,
    mode: Mode,
    store: Store,
    jobs: int,
    folder: Path,
    docs: Path | str | None,
    go_on: bool,
    only: Sequence[str],
    console: Any,
) -> Summary:
    experiment = load_experiment(name, folder)
    cells = experiment.cells(mode)
    if go_on:
        _need(experiment)
        _do(name, experiment, chosen_cells(cells, only), store, jobs, folder, console)
    keys = [experiment.key(cell) for cell in cells] if docs is None else all_keys(experiment, mode)
    rows = store.rows(keys)
    if not rows:
        raise NoExperimentsError(f"nothing of {name} is done in {store.path}: run it first.")
    summary = experiment.summarise(rows)
    figure = _draw(experiment, rows, store.path.with_suffix(".png"))
    show(console, name, experiment, summary, store.path, figure)
    if docs is not None:
        publish(name, store, keys, docs, figure, folder)
    return summary


def chosen_cells(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
    """Cells whose settings are one of those given by ``name=value``, and none of ``name!=value``.

    Examples
    --------
    >>> cells = [{"method": "SVM", "split": 0}, {"method": "SVM", "split": 1}, {"method": "lp", "split": 1}]
    >>> chosen_cells(cells, ["split=1", "method!=lp"])
    [{'method': 'SVM', 'split': 1}]
    """
    wanted: dict[str, set[str]] = defaultdict(set)
    for text in only:
        name, equals, setting = text.partition("=")
        if not equals or any(name.removesuffix("!") not in cell for cell in cells):
            raise NoExperimentsError(f"only={text!r}: no setting of the cells, such as method=SVM.")
        wanted[name].add(setting)
    return [
        cell
        for cell in cells
        if all(
            (str(cell[name.removesuffix("!")]) in settings) != name.endswith("!")
            for name, settings in wanted.items()
        )
    ]


def _need(experiment: Experiment) -> None:
    """Fetch what is not on this machine, before anything is run."""
    from kernelweave.datasets import load_arrays

    for name in experiment.data:
        if find(name) is None:
            load_arrays(name)


def _do(
    name: str, experiment: Experiment, cells: list[Cell], store: Store, jobs: int, folder: Path, console: Any
) -> None:
    """Run the cells that are not in the store, with a bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    todo = [cell for cell in cells if experiment.key(cell) not in store]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=len(cells), completed=len(cells) - len(todo))
        for cell, rows in _results(name, todo, jobs, folder):
            store.add(experiment.key(cell), rows)
            progress.advance(task)


def _results(name: str, cells: list[Cell], jobs: int, folder: Path) -> Iterator[tuple[Cell, list[Row]]]:
    """Cells with their rows, as they end."""
    if jobs == 1:
        yield from (run_cell(name, cell, folder) for cell in cells)
        return
    from joblib import Parallel, delayed

    side_by_side = Parallel(n_jobs=jobs, return_as="generator_unordered")
    yield from side_by_side(delayed(run_cell)(name, cell, folder) for cell in cells)


def run_cell(name: str, cell: Cell, folder: Path) -> tuple[Cell, list[Row]]:
    """One cell on one thread: its rows, with settings, seconds of CPU, and how many fits did not converge."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    experiment = load_experiment(name, folder)
    begun = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = experiment.run(**cell)
    rows = found if isinstance(found, list) else [found]
    share = round((time.process_time() - begun) / max(len(rows), 1), 4)  # they add up to the cell's time
    open_ended = sum(issubclass(one.category, ConvergenceWarning) for one in seen)
    return cell, [{**cell, **row, "seconds": share, "unconverged": open_ended} for row in rows]


def _draw(experiment: Experiment, rows: list[Row], path: Path) -> Path | None:
    """Save the figure, where there is one and matplotlib is installed."""
    if experiment.draw is None:
        return None
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return None
    figure = experiment.draw(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    for dpi in RESOLUTIONS:
        figure.savefig(path, dpi=dpi)
        if path.stat().st_size <= LARGEST_FIGURE:
            break
    plt.close(figure)
    return path
