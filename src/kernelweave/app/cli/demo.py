"""``kernelweave demo``: a first look, on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    from ..demo import run

    run(out=out, seed=seed)
