"""``kernelweave inspect --explain``: what the values of samples are made of, by kernel and by feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._words import counted, quoted
from ...inspection import BeeswarmDisplay, Explanation, WaterfallDisplay, explain
from ...inspection._models import spread
from ...inspection.explanation import OWN_BACKGROUND, affordable
from ..report.given import as_rows, take
from ._bundle import Bundle, load_bundle, new_samples, write_text
from ._console import CliError, check_file, note, print_json, refusing, show
from ._npz import GramEncoder
from ._options import Source
from ._output import cells, csv_text, screen_table
from .report import training_data, training_files

#: most samples, and most work, of mean sizes; rows of a table on the screen
MOST, WORK, ROWS = 200, 1e9, 15

#: parts smaller than this share of the largest are rounding
ROUNDING = 1e-12

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Question:
    """What is asked: of which model and which samples, against what, and where the answer goes."""

    model: Path
    source: Source
    ident: str | None
    sample: str | None
    background: str | None
    function: str | None
    out: Path | None
    plot: Path | None
    as_json: bool


@dataclass(frozen=True)
class Gathered:
    """Samples to explain, their names, what each is, and those that they are compared with.

    `noun` is what a sample is called; `other` what one of the others is, where they are not of the same
    samples; `searched` where a name was looked for, in words.
    """

    X: Any
    ids: np.ndarray
    ident: str
    noun: str
    others: Any
    other: str | None = None
    of: str = ""
    searched: str | None = None

    def words(self, n_explained: int, n_others: int) -> str:
        """Which samples are explained, and against how many others."""
        total = counted(len(self.ids), self.noun)
        told = total if n_explained == len(self.ids) else f"{n_explained} of {total}"
        others = f"{n_others} of them" if self.other is None else f"{counted(n_others, self.other)}{self.of}"
        return f"{told}, against {others}"


def answer(asked: Question) -> None:
    """Explain, and show, print or write it."""
    if asked.plot is not None and asked.plot.suffix.lower() not in PICTURES:
        raise CliError(f"--plot {asked.plot}: name a file that ends in {', '.join(PICTURES[:-1])} or .pdf.")
    bundle = load_bundle(asked.model)
    samples = gathered(bundle, asked)
    chosen = None if asked.sample is None else place_of(asked.sample, samples)
    found, rows, others = explained(bundle, samples, asked.background, chosen)
    which = function_of(found, asked.function)
    at = None if chosen is None else int(np.searchsorted(rows, chosen))
    words = samples.words(len(rows), others)
    if asked.out is not None:
        write_text(asked.out, attributions_text(found, samples.ident))
    if asked.plot is not None:
        draw(found, asked.plot, at, which)
    document = {"samples": words, **facts(found, at, which)}
    classes = getattr(bundle.estimator, "classes_", ())
    if at is not None and len(classes) == 2 and len(found.function_names) == 1:
        document["sample"]["below_0"], document["sample"]["above_0"] = map(str, classes)
    if asked.as_json:
        print_json(document)
        return
    show(f"Attributions of {type(bundle.estimator).__name__} in {bundle.path}: {words}.", style="bold")
    show_facts(document)
    for path in filter(None, (asked.out, asked.plot)):
        note(f"Written to {path}.")


# -- samples ------------------------------------------------------------------------------------


def gathered(bundle: Bundle, asked: Question) -> Gathered:
    """The samples of a file, or those held out when the model was fitted, or those it was fitted on.

    They are compared with training samples as long as these can be read, whichever samples they are.
    """
    if asked.source.files:
        new = new_samples(bundle, asked.source, {}, asked.ident, False)
        for message in new.notes:
            note(message)
        own = _training_rows(bundle, asked, len(new.ids))
        compared = (new.X, None) if own is None else (own, "training sample")
        found = Gathered(new.X, new.ids, new.ident, "sample", *compared)
    else:
        parts = training_data(bundle, training_files(bundle, asked.source))
        ident = bundle.settings["request"]["reading"]["ident"] or "row"
        trained = Gathered(parts["X"], parts["ids"], ident, "training sample", parts["X"])
        found = trained
        if "X_test" in parts:
            found = Gathered(
                parts["X_test"], parts["ids_test"], ident, "held-out sample", parts["X"], "training sample"
            )
            trained = replace(trained, searched="held-out and training samples")
        if asked.sample is not None and asked.sample not in map(str, cells(np.asarray(found.ids))):
            found = trained
    named = asked.background
    if named is None or (named.isdigit() and not Path(named).exists()):
        return found
    if bundle.of_views:
        raise CliError(f"--background {named}: of a model of several tables, give a number of rows.")
    check_file(Path(named))
    others = new_samples(bundle, Source(Path(named)), {}, asked.ident, False)
    return replace(found, others=others.X, other="row", of=f" of {Path(named).name}")


def _training_rows(bundle: Bundle, asked: Question, count: int) -> Any:
    """Training samples to compare new ones with; None if other samples are named, or they cannot be read."""
    if asked.background is not None and not asked.background.isdigit():
        return None
    try:
        return training_data(bundle, training_files(bundle, Source()))["X"]
    except CliError as error:
        if count == 1:
            raise CliError(
                f"one sample is compared with others, and the training samples are not there ({error}): name "
                "a file of such samples with --background FILE."
            ) from error
        note(f"The samples are compared with each other, as the training samples are not there ({error}).")
        return None


def place_of(label: str, samples: Gathered) -> int:
    """The row of a sample, by its name."""
    names = [str(name) for name in cells(np.asarray(samples.ids))]
    if label not in names:
        searched = samples.searched or f"{samples.noun}s"
        raise CliError(
            f"--sample {label}: there is none among the {searched}; the column {samples.ident!r} has "
            f"{quoted(names, 5)}."
        )
    if names.count(label) > 1:
        raise CliError(f"--sample {label}: {names.count(label)} rows have this {samples.ident}.")
    return names.index(label)


def explained(
    bundle: Bundle, samples: Gathered, background: str | None, chosen: int | None
) -> tuple[Explanation, np.ndarray, int]:
    """The explanation, of which rows, and against how many."""
    estimator, total, n_others = bundle.estimator, len(samples.ids), len(as_rows(samples.others))
    count = int(background) if background is not None and background.isdigit() else OWN_BACKGROUND
    if count < 1:
        raise CliError("--background 0: samples are compared with one row at least.")
    n, B = affordable(estimator, samples.X, min(total, MOST), min(n_others, count), WORK)
    B = min(n_others, count) if background is not None and background.isdigit() else B
    rows = np.union1d(spread(total, n), [] if chosen is None else [chosen]).astype(int)
    with refusing("--explain"):
        found = explain(
            estimator,
            take(samples.X, rows),
            take(samples.others, spread(n_others, B)),
            feature_names=None if isinstance(bundle.encoder, GramEncoder) else bundle.features,
        )
    names = cells(np.asarray(samples.ids)[rows])
    return replace(found, sample_names=names), rows, B


# -- what is said -------------------------------------------------------------------------------


def function_of(found: Explanation, name: str | None) -> int | None:
    """Which function a name stands for; None for all of several."""
    names = [str(each) for each in found.function_names]
    if name is None:
        return 0 if len(names) == 1 else None
    if name not in names:
        raise CliError(f"--function {name}: the model has {quoted(names)}.")
    return names.index(name)


def largest(found: Explanation, sample: int) -> int:
    """The function of largest value of a sample."""
    values, _ = found.parts_by("kernel")
    return int(np.argmax(values[:, sample].sum(axis=1) + np.ravel(found.base_value)))


def facts(found: Explanation, sample: int | None, which: int | None) -> dict[str, Any]:
    """Mean sizes over samples, and what the value of one sample is made of, the largest first."""
    document = {
        "functions": found.function_names,
        "importance": {f"{by}s": mean_sizes(found, by, which) for by in ("kernel", "feature")},
        "whole": found.whole,
    }
    if sample is None:
        return document
    function = largest(found, sample) if which is None else which
    parts = {f"{by}s": parts_of(found, by, sample, function) for by in ("kernel", "feature")}
    base = float(np.ravel(found.base_value)[function])
    told = {"id": found.sample_names[sample], "function": found.function_names[function]}
    total = base + sum(part["adds"] for part in parts["kernels"])
    return {**document, "sample": {**told, "base_value": base, "value": total, **parts}}


def mean_sizes(found: Explanation, by: str, which: int | None) -> list[dict[str, Any]]:
    """Of kernels or features over samples, of one function or all of them."""
    if which is not None and found.values.ndim == 3:
        found = replace(found, values=found.values[which], kernel_values=found.kernel_values[which])
    sizes = found.importance(by=by)
    columns = {"mean": sizes.mean, "low": sizes.low, "high": sizes.high}
    return [
        {"name": sizes.feature_names[k], **{key: float(values[k]) for key, values in columns.items()}}
        for k in np.argsort(-sizes.mean, kind="stable")
    ]


def parts_of(found: Explanation, by: str, sample: int, function: int) -> list[dict[str, Any]]:
    """What kernels or features add to a sample; values of features are those that the model sees."""
    values, names = found.parts_by(by)
    row = values[function, sample]
    own = {} if by == "kernel" else {"value": found.data[sample]}
    return [
        {"name": names[k], **{key: float(cell[k]) for key, cell in own.items()}, "adds": float(row[k])}
        for k in np.argsort(-np.abs(row), kind="stable")
    ]


def show_facts(document: dict[str, Any]) -> None:
    """The sample, then the mean sizes, as tables."""
    told = document.get("sample")
    if told is not None:
        of = f" of {told['function']}" if len(document["functions"]) > 1 else ""
        sides = f" (above 0: {told['above_0']}, below: {told['below_0']})" if "above_0" in told else ""
        show(
            f"Sample {told['id']}: value{of} {told['value']:.4g}{sides} = mean of the comparison samples "
            f"{told['base_value']:.4g} + contributions {told['value'] - told['base_value']:.4g}, the sum of "
            "each table."
        )
        show(listing(f"What kernels add to sample {told['id']}", "kernel", told["kernels"]))
        show(listing(f"What features add to sample {told['id']}", "feature", told["features"]))
    for by in ("kernel", "feature"):
        rows = document["importance"][f"{by}s"]
        title = f"Mean size of what {by}s add, {counted(len(rows), by)}"
        show(listing(title, by, rows))
    for name, reason in document["whole"].items():
        note(f"Kernel {name} is not taken apart by features: {reason}.")


def listing(title: str, by: str, rows: list[dict[str, Any]]) -> Any:
    """The largest of them; those that add nothing are left out, the others are one row."""
    size = "mean" if "mean" in rows[0] else "adds"
    least = ROUNDING * max(abs(row[size]) for row in rows)
    live = [row for row in rows if abs(row[size]) > least]
    lines = [[row["name"], *(word(key, row[key]) for key in row if key != "name")] for row in live[:ROWS]]
    if len(live) > ROWS:
        rest = sum(row[size] for row in live[ROWS:])
        blank = {key: "" for key in rows[0] if key != "name"} | (
            {"adds": f"{rest:+.4g}"} if size == "adds" else {}
        )
        lines.append([counted(len(live) - ROWS, "other"), *blank.values()])
    return screen_table(title, [by, *(key for key in rows[0] if key != "name")], lines)


def word(key: str, value: float) -> str:
    """A number in a cell."""
    return "" if np.isnan(value) else f"{value:+.4g}" if key == "adds" else f"{value:.4g}"


def attributions_text(found: Explanation, ident: str) -> str:
    """All attributions as CSV: a row for each sample (and function), a column for each feature."""
    values, names = found.parts_by("feature")
    several, base = len(values) > 1, np.ravel(found.base_value)
    header = [ident, *["function"] * several, "base value", *names]
    rows = (
        [name, *[str(found.function_names[j])] * several, float(base[j]), *values[j, k].tolist()]
        for k, name in enumerate(found.sample_names)
        for j in range(len(values))
    )
    return csv_text(header, rows)


def draw(found: Explanation, path: Path, sample: int | None, which: int | None) -> None:
    """A waterfall of the sample, or the swarm of all of them."""
    try:
        import matplotlib
    except ImportError as error:
        raise CliError('--plot needs matplotlib: pip install "kernelweave[plot]".') from error
    matplotlib.use("agg")
    if sample is not None:
        function = largest(found, sample) if which is None else which
        display: Any = WaterfallDisplay(found).plot(sample=sample, function=function)
    elif which is None and len(found.function_names) > 1:
        names = quoted(str(name) for name in found.function_names)
        raise CliError(f"--plot: choose one of {names} with --function, or a sample with --sample.")
    else:
        display = BeeswarmDisplay(found).plot(function=which)
    try:
        display.figure_.savefig(path)
    except OSError as error:
        raise CliError(
            f"--plot {path} cannot be written ({error.strerror}): choose another place."
        ) from error
