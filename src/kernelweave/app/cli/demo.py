"""``kernelweave demo``: a first look, on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._errors import guarded

PLOT = Path("kernelweave-demo.png")


@guarded
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the plot of the weights.", dir_okay=False)] = PLOT,
    seed: Annotated[int, typer.Option(help="Seed of the train/test split and of the folds.", min=0)] = 0,
    debug: opt.Debug = False,
) -> None:
    """Learn kernel weights on three views of a real data set, and compare."""
    from ...inspection import KernelWeightsDisplay
    from ..demo import GAMMAS, VIEWS, compare, make_kernels
    from ._console import out as console
    from ._facts import certificate_words
    from ._monitor import Monitor
    from ._summary import weights_table

    screen = console()
    screen.print("[bold]Breast cancer:[/bold] benign or malignant, from three views of the cell nuclei")
    views, widths = ", ".join(VIEWS), len(GAMMAS)
    screen.print(f"{len(make_kernels())} kernels: {views} x linear and {widths} RBF\n")
    with Monitor() as monitor:
        monitor.stage("fitting")
        results = compare(seed, monitor.part)
    learned = results[-1]
    screen.print(weights_table(learned.model, len(learned.model.kernel_names_)))
    screen.print(f"{certificate_words(learned.model)}\n")
    title = f"{learned.label}, p = {learned.model.regularizer.p:.3g}"
    screen.print(accuracy_table(results, title))
    screen.print(f"{learned.n_train} tumours to learn from, {learned.n_test} held out, in one split: a")
    screen.print("difference of a few errors is within chance.\n")
    try:
        display = KernelWeightsDisplay.from_estimator(learned.model)
    except ImportError as error:
        screen.print(f"No plot: {error}", markup=False)
        return
    display.ax_.set_title(f"kernelweave demo: {title}")
    display.figure_.savefig(out, dpi=150)
    screen.print(f"Plot of the weights: {out}", markup=False)


def accuracy_table(results: list[Any], title: str) -> Any:
    """The models side by side, the last under its title: cross-validated and held-out accuracy."""
    from rich.table import Table

    table = Table(title="Accuracy", title_justify="left")
    for heading in ("model", "C", "validation", "held out", "errors"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for result in results:
        scores = f"{result.model.C:g}", f"{result.validation:.3f}", f"{result.accuracy:.3f}"
        label = title if result is results[-1] else result.label
        table.add_row(label, *scores, f"{result.errors} of {result.n_test}")
    return table
