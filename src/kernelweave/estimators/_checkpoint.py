"""Checkpoints of estimators: what tells their problems apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..gram import Gram
from ..solvers._fingerprint import describe, digest
from ..solvers.checkpoint import Checkpoint, Keeper


def mkl_checkpoint(estimator: Any, regularizer: Any, tasks: Any) -> Checkpoint | None:
    """The checkpoint of an MKL estimator, refused when its file is of another problem.

    Tolerance, solver and Gram engine are no part of the problem: they may change from one run to
    the next.
    """
    if estimator.checkpoint is None:
        return None
    problems = [task.problem for task in tasks]
    rows = [np.arange(0) if task.rows is None else task.rows for task in tasks]
    parts = {
        "estimator": type(estimator).__name__,
        "models": describe([task.title for task in tasks]),
        "regularizer": describe(regularizer),
        "loss": describe(problems[0].loss),
        "fit_intercept": describe(bool(problems[0].fit_intercept)),
        "targets": digest(*(problem.y for problem in problems), *rows),
        "C or weights of the samples": digest(*(problem.C for problem in problems)),
    }
    return open_checkpoint(estimator, parts)


def open_checkpoint(estimator: Any, parts: dict[str, str]) -> Checkpoint | None:
    """The checkpoint at the path of an estimator, if it has one."""
    if estimator.checkpoint is None:
        return None
    checkpoint = Checkpoint(estimator.checkpoint, parts)
    if estimator.verbose and checkpoint.resumed:
        print(f"[{type(estimator).__name__}] resuming from {str(checkpoint.path)!r}")
    return checkpoint


class Keepers:
    """The keepers of the models of a fit.

    Attributes
    ----------
    require : str or None
        What joblib has to provide: threads, where all models write one file or ask kernels that are
        nowhere but in this process.
    """

    def __init__(self, checkpoint: Checkpoint | None, gram: Gram | None = None) -> None:
        self.checkpoint = checkpoint
        anywhere = checkpoint is None and (gram is None or gram.portable)
        self.require = None if anywhere else "sharedmem"

    def __call__(self, index: int, stage: str = "") -> Keeper:
        """The keeper of one model, in one stage of its fit; without a checkpoint it keeps nothing."""
        return Keeper(self.checkpoint, f"{index} {stage}".strip())

    def finish(self, converged: bool) -> None:
        """Write the final state."""
        if self.checkpoint is not None:
            self.checkpoint.finish(converged)


@contextmanager
def keeping(checkpoint: Checkpoint | None, gram: Gram | None = None) -> Iterator[Keepers]:
    """Check that a checkpoint is of these kernels, and write its last state whatever happens."""
    if checkpoint is None:
        yield Keepers(None, gram)
        return
    if gram is not None:
        checkpoint.check_kernels(gram)
    try:
        yield Keepers(checkpoint)
    finally:
        checkpoint.flush()
