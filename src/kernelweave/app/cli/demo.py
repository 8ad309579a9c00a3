"""``kernelweave demo``: a first look, on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as opt
from ._console import guarded

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
    from ._console import show
    from ._facts import certificate_words
    from ._monitor import Monitor
    from ._output import screen_table, weights_table

    show("Breast cancer: benign or malignant, from three views of the cell nuclei", style="bold")
    show(f"{len(make_kernels())} kernels: {', '.join(VIEWS)} x linear and {len(GAMMAS)} RBF\n")
    with Monitor() as monitor:
        monitor.stage("fitting")
        results = compare(seed, monitor.part)
    learned = results[-1]
    show(weights_table(learned.model, len(learned.model.kernel_names_)))
    show(f"{certificate_words(learned.model)}\n")
    title = f"{learned.label}, p = {learned.model.regularizer.p:.3g}"
    rows = []
    for result in results:
        scores = f"{result.model.C:g}", f"{result.validation:.3f}", f"{result.accuracy:.3f}"
        label = title if result is learned else result.label
        rows.append((label, *scores, f"{result.errors} of {result.n_test}"))
    show(screen_table("Accuracy", ("model", "C", "validation", "held out", "errors"), rows))
    show(f"{learned.n_train} tumours to learn from, {learned.n_test} held out, in one split: a")
    show("difference of a few errors is within chance.\n")
    try:
        display = KernelWeightsDisplay.from_estimator(learned.model)
    except ImportError as error:
        show(f"No plot: {error}")
        return
    display.ax_.set_title(f"kernelweave demo: {title}")
    display.figure_.savefig(out, dpi=150)
    show(f"Plot of the weights: {out}")
