"""Pages of the documentation, written from the rows that are committed beside them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .experiment import Experiment, Mode, Row
from .files import GENERATED, markdown
from .folder import find_folder, listing, load_experiment
from .index import index
from .learned import write_learned
from .store import Store
from .summary import OWN, Summary, Table

COMPARISON = ["what", "paper", "ours ± standard error", "repetitions", "verdict"]
LARGEST_FIGURE = 150_000  # bytes


def committed(docs: Path | str, name: str) -> Path:
    """Where the rows of an experiment are kept in a documentation folder: one line per split and method."""
    return Path(docs) / "results" / "data" / name / "rows.csv.gz"


class Published(NamedTuple):
    """An experiment with its committed rows, and what they say."""

    name: str
    experiment: Experiment
    form: str
    done: tuple[int, int]
    store: Store
    rows: list[Row]
    summary: Summary


def published(name: str, docs: Path | str, folder: Path | str | None = None) -> Published:
    """The committed rows of an experiment, summarised again."""
    experiment, store = load_experiment(name, folder), Store(committed(docs, name))
    keys = {form: _keys(experiment, Mode(form)) for form in ("full", "quick")}
    form = "full" if any(key in store for key in keys["full"]) else "quick"
    done = sum(key in store for key in keys[form]), len(keys[form])
    rows = store.rows(store.keys())
    return Published(name, experiment, form, done, store, rows, experiment.summarise(rows))


def all_published(docs: Path | str, folder: Path | str | None = None) -> list[Published]:
    """All experiments that have committed rows."""
    place = find_folder(folder)
    return [published(name, docs, place) for name in listing(place) if committed(docs, name).exists()]


def _keys(experiment: Experiment, mode: Mode) -> list[str]:
    return [experiment.key(cell) for cell in experiment.cells(mode)]


def all_keys(experiment: Experiment, mode: Mode) -> list[str]:
    """Cells of a mode, and of its form with the usual repetitions: those that belong on a page."""
    return list(dict.fromkeys([*_keys(experiment, Mode(mode.name)), *_keys(experiment, mode)]))


def publish(
    name: str,
    store: Store,
    keys: Sequence[str],
    docs: Path | str,
    figure: Path | None = None,
    folder: Path | str | None = None,
) -> Path:
    """Commit rows to ``results/data/NAME/rows.csv.gz`` of a documentation folder, and write its pages.

    The page ``results/NAME.md``, and those that collect all experiments, are made from committed rows alone
    (`page_of`), so that pages and results cannot disagree.

    Parameters
    ----------
    name : str
        Name of the experiment.
    store : Store
        Its results.
    keys : sequence of str
        The cells to commit.
    docs : path
        Folder of the documentation.
    figure : Path, optional
        The figure to copy.
    folder : path, optional
        The folder of experiments.

    Returns
    -------
    page : Path
        The page.
    """
    store.save(committed(docs, name), [key for key in keys if key in store])
    results = Path(docs) / "results"
    if figure is not None and figure.stat().st_size <= LARGEST_FIGURE:
        shutil.copyfile(figure, results / f"{name}.png")
    everything = all_published(docs, folder)
    page = results / f"{name}.md"
    page.write_text(next(page_of(one, results) for one in everything if one.name == name), encoding="utf-8")
    (results / "index.md").write_text(index(everything), encoding="utf-8")
    write_learned(results, {one.name: one.summary.standings for one in everything})
    return page


def page_of(one: Published, results: Path) -> str:
    """The page of an experiment."""
    title, lines = one.experiment.title, comparison(one.summary)
    about, (first, text) = [_ran(one)], _parts(one.experiment.about.strip())
    found = [f"![{title}]({one.name}.png)"] if (results / f"{one.name}.png").exists() else []
    found += one.summary.notes
    own = one.experiment.paper == OWN
    header = ["stated" if own and name == "paper" else name for name in COMPARISON]
    judged = [_tally(one.summary), markdown(Table("", header, lines))] if lines else []
    parts = [f"# {one.name}: {title}"]
    if own:  # what came out comes first
        parts += [first, *found, "## What was done", text, *about]
        parts += ["## What was stated beforehand, and what came out", *judged] if judged else []
    else:
        parts += [f"*{one.experiment.paper}.*", text, *about]
        parts += ["## The paper's figures and ours", *judged] if judged else []
        parts += found
    parts += [f"## {table.title}\n\n" + markdown(table) for table in one.summary.tables]
    return "\n\n".join([*parts, GENERATED]) + "\n"


def command(one: Published) -> str:
    """What was run."""
    return f"python experiments {one.name} --{one.form}"


def _parts(docstring: str) -> tuple[str, str]:
    """The first line of a docstring, and the rest or, where there is none, that line."""
    first, _, rest = docstring.partition("\n")
    return first, rest.strip() or first


def _ran(one: Published) -> str:
    minutes = sum(float(row.get("seconds", 0.0)) for row in one.rows) / 60.0
    open_ended = sum(int(row.get("unconverged", 0)) > 0 for row in one.rows)
    caution = f" {open_ended} of {len(one.rows)} rows hold a fit that did not converge." if open_ended else ""
    part = f" Not all of it has been run: {one.done[0]} of {one.done[1]} cells." * (one.done[0] < one.done[1])
    return (
        f"Run with `{command(one)}`: at most {minutes:.1f} minutes of one core.{part}{caution} Every row, "
        f"one per split and method: [rows.csv.gz](data/{one.name}/rows.csv.gz)."
    )


def _tally(summary: Summary) -> str:
    """How many of the figures came out how."""
    counts = Counter(line.said for line in summary.lines)
    return ", ".join(f"{count} {word}" for word, count in counts.items()) + "."


def comparison(summary: Summary) -> list[list[str]]:
    """Lines of the comparison as text."""
    return [
        [
            line.what,
            line.paper,
            line.ours,
            str(line.n) if line.n else "",
            f"{line.said}: {line.why}" if line.why else line.said,
        ]
        for line in summary.lines
    ]


def show(
    console: Any, name: str, experiment: Experiment, summary: Summary, path: Path, figure: Path | None
) -> None:
    """Print the comparison, the other tables and the notes."""
    lines = comparison(summary)
    if lines:
        _print(console, Table(f"{name}: {experiment.paper}", COMPARISON, lines))
    for table in summary.tables:
        _print(console, table)
    for note in summary.notes:
        console.print(note, markup=False, highlight=False)
    written = [str(path), *([str(figure)] if figure is not None else [])]
    console.print("Wrote " + " and ".join(written), markup=False, highlight=False, soft_wrap=True)


def _print(console: Any, table: Table) -> None:
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = RichTable(title=escape(table.title), title_justify="left")
    for heading in table.header:
        shown.add_column(escape(heading))
    for line in table.lines:
        shown.add_row(*map(escape, line))
    console.print(shown)
