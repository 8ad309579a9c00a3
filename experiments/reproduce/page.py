"""Pages of the documentation, written from summaries."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from .blocks import write_standings
from .experiment import Experiment, Mode, Row
from .files import GENERATED, markdown, read_csv, write_csv
from .learned import write_learned
from .summary import Summary, Table

COMPARISON = ["what", "paper", "ours ± standard error", "repetitions", "verdict"]
LARGEST_FIGURE = 150_000  # bytes


def publish(
    name: str,
    experiment: Experiment,
    summary: Summary,
    rows: list[Row],
    mode: Mode,
    docs: Path | str,
    figure: Path | None = None,
    done: tuple[int, int] | None = None,
) -> Path:
    """Write ``results/NAME.md`` of a documentation folder, with its CSV files and its figure.

    The summary is stored in ``results/data/NAME``, one CSV file a table, and the page is made from these
    files alone (`page_from`), so that page and figures cannot disagree.

    Parameters
    ----------
    name : str
        Name of the experiment.
    experiment : Experiment
        Its title, paper and text.
    summary : Summary
        What was found.
    rows : list of dict
        Results, for the time they took.
    mode : Mode
        What was run.
    docs : path
        Folder of the documentation.
    figure : Path, optional
        The figure to copy.
    done : pair of int, optional
        Cells that are done, and all of them.

    Returns
    -------
    page : Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from reproduce import Experiment, Mode, Summary, compare, publish
    >>> one = Experiment("Halves", "nobody, Table 1", list, dict, Summary, about="Halves are halves.")
    >>> found = Summary([compare("half", [0.5], 0.5)])
    >>> page = publish("half", one, found, [], Mode("quick"), tempfile.mkdtemp())
    >>> page.read_text().splitlines()[0]
    '# half: Halves'
    """
    results = Path(docs) / "results"
    data = results / "data" / name
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    pictured = figure is not None and figure.stat().st_size <= LARGEST_FIGURE
    if figure is not None and pictured:
        shutil.copyfile(figure, results / f"{name}.png")
    write_csv(data / "about.csv", ["key", "value"], _about(name, experiment, rows, mode, pictured, done))
    write_csv(data / "comparison.csv", [*COMPARISON, "why"], _lines(summary))
    for number, table in enumerate(summary.tables, 1):
        write_csv(data / f"table{number}.csv", table.header, [[table.title], *table.lines])
    write_csv(data / "notes.csv", ["note"], [[note] for note in summary.notes])
    if summary.standings:
        write_standings(data / "standings.csv", summary.standings)
    page = results / f"{name}.md"
    page.write_text(page_from(data), encoding="utf-8")
    (results / "experiments.md").write_text(overview(results), encoding="utf-8")
    write_learned(results)
    return page


def _about(
    name: str,
    experiment: Experiment,
    rows: list[Row],
    mode: Mode,
    pictured: bool,
    done: tuple[int, int] | None,
) -> list[list[str]]:
    seconds = sum(float(row.get("seconds", 0.0)) for row in rows)
    command = f"python experiments {name} --{mode.name}"
    command += f" --repetitions {mode.repetitions}" if mode.repetitions else ""
    return [
        ["name", name],
        ["title", experiment.title],
        ["paper", experiment.paper],
        ["text", experiment.about.strip()],
        ["command", command],
        ["minutes", f"{seconds / 60:.1f}"],
        ["unconverged", str(sum(int(row.get("unconverged", 0)) > 0 for row in rows))],
        ["rows", str(len(rows))],
        ["cells", " of ".join(map(str, done)) if done and done[0] < done[1] else ""],
        ["figure", f"{name}.png" if pictured else ""],
    ]


def _lines(summary: Summary) -> list[list[str]]:
    return [
        [line.what, line.paper, line.ours, str(line.n) if line.n else "", line.verdict, line.why]
        for line in summary.lines
    ]


def page_from(data: Path) -> str:
    """The page, from the CSV files of one experiment."""
    about = {line[0]: line[1] for line in read_csv(data / "about.csv")[1:]}
    lines = read_csv(data / "comparison.csv")[1:]
    parts = [
        f"# {about['name']}: {about['title']}",
        f"*{about['paper']}.*",
        _text(about["text"]),
        _ran(about),
    ]
    if lines:
        parts += ["## The paper's figures and ours", _tally(lines), _comparison(lines)]
    if about["figure"]:
        parts += [f"![{about['title']}]({about['figure']})"]
    parts += [line[0] for line in read_csv(data / "notes.csv")[1:]]
    parts += [_table_of(path) for path in sorted(data.glob("table*.csv"), key=_number)]
    return "\n\n".join([*parts, GENERATED]) + "\n"


OPENING = """# Experiments

The tables and figures of the papers, run again by `python experiments`: how many of the papers' figures
and statements came out how. *Reproduced*: within one standard deviation of the paper's figure, or the
statement holds. *Better*: outside it, on the good side. *Different*: neither, and the page says why as far as
it is known. *Ours alone*: the paper has no figure of its own."""


def overview(results: Path) -> str:
    """A page that collects all experiments, from their CSV files."""
    lines = []
    for data in sorted(path.parent for path in (results / "data").glob("*/comparison.csv")):
        about = {line[0]: line[1] for line in read_csv(data / "about.csv")[1:]}
        counts = Counter(line[4] for line in read_csv(data / "comparison.csv")[1:])
        link = f"[{about['name']}]({about['name']}.md)"
        words = ("reproduced", "better", "different", "ours alone")
        lines.append([link, about["paper"], about["command"], *(str(counts[word]) for word in words)])
    header = ["experiment", "paper", "run with", "reproduced", "better", "different", "ours alone"]
    return "\n\n".join([OPENING, markdown(Table("", header, lines)), GENERATED]) + "\n"


def _number(path: Path) -> int:
    return int(re.sub(r"\D", "", path.stem))


def _text(docstring: str) -> str:
    """A docstring without its first line, which is the title."""
    return docstring.partition("\n")[2].strip() or docstring


def _ran(about: dict[str, str]) -> str:
    open_ended = int(about["unconverged"])
    caution = f" {open_ended} of {about['rows']} rows hold a fit that did not converge." if open_ended else ""
    part = f" Not all of it has been run: {about['cells']} cells." if about["cells"] else ""
    return f"Run with `{about['command']}`: at most {about['minutes']} minutes of one core.{part}{caution}"


def _tally(lines: list[list[str]]) -> str:
    """How many of the figures came out how."""
    counts = Counter(line[4] for line in lines)
    return ", ".join(f"{count} {word}" for word, count in counts.items()) + "."


def _comparison(lines: list[list[str]]) -> str:
    shown = [[*line[:4], f"{line[4]}: {line[5]}" if line[5] else line[4]] for line in lines]
    return markdown(Table("", COMPARISON, shown))


def _table_of(path: Path) -> str:
    header, (title, *_), *lines = read_csv(path)
    return f"## {title}\n\n" + markdown(Table(title, header, lines))


def show(
    console: Any, name: str, experiment: Experiment, summary: Summary, path: Path, figure: Path | None
) -> None:
    """Print the comparison, the other tables and the notes."""
    lines = [[*line[:4], f"{line[4]}: {line[5]}" if line[5] else line[4]] for line in _lines(summary)]
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
