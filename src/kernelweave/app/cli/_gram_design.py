"""Gram matrices ready to be learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...gram import KernelStack
from ._errors import CliError
from ._npz import Grams
from ._options import KernelChoice, Reading
from ._parts import Parts
from ._paths import listed
from ._task import FEWEST_ROWS, Target, infer_target, target_column


@dataclass(frozen=True)
class GramEncoder:
    """Which samples of a file of Gram matrices a model was trained on.

    Attributes
    ----------
    rows : list of int
        The training samples.
    n_samples : int
        Samples of the file.
    names : list of str
        The kernels.
    """

    rows: list[int]
    n_samples: int
    names: list[str]

    def transform(self, grams: Grams) -> KernelStack:
        """New samples (rows) against the training samples, found among the columns of the file."""
        if grams.K.shape[2] != len(self.names):
            raise CliError(
                f"{grams.path} has {grams.K.shape[2]} Gram matrices, the model was fitted on "
                f"{len(self.names)}: {listed(self.names)}."
            )
        width = grams.K.shape[1]
        if width not in (self.n_samples, len(self.rows)):
            raise CliError(
                f"{grams.path}: K has {width} columns; give new samples (rows) against the {self.n_samples} "
                f"samples of the file fitted on, or against the {len(self.rows)} of its training part."
            )
        columns = np.asarray(self.rows) if width == self.n_samples else np.arange(width)
        return stack_of(grams.K[:, columns], self.names)


@dataclass(frozen=True)
class GramDesign:
    """Gram matrices of all samples, and targets."""

    grams: Grams
    target: Target
    ids: np.ndarray

    @property
    def n_rows(self) -> int:
        return self.grams.n_rows

    def split(self, train: np.ndarray, rest: np.ndarray) -> Parts:
        grams = self.grams
        encoder = GramEncoder(train.tolist(), grams.n_rows, grams.names)
        X, X_rest = (stack_of(grams.K[np.ix_(rows, train)], grams.names) for rows in (train, rest))
        return Parts(X, X_rest, encoder, "precomputed", f"{len(grams.names)} Gram matrices of the file")


def stack_of(K: np.ndarray, names: list[str]) -> KernelStack:
    """Matrices (rows, columns, M) one after another in memory, with their names."""
    return KernelStack(list(np.ascontiguousarray(np.moveaxis(K, 2, 0))), names)


def gram_design(grams: Grams, reading: Reading, choice: KernelChoice) -> GramDesign:
    """Square Gram matrices with targets."""
    path, shape = grams.path, grams.K.shape
    if choice.given:
        raise CliError(
            f"{path} holds Gram matrices, which are the kernels: leave out --kernels, --groups, --bands."
        )
    if shape[0] != shape[1]:
        raise CliError(f"{path}: K has shape {shape}; a fit needs square matrices, one row per sample.")
    if shape[0] < FEWEST_ROWS:
        raise CliError(f"{path} has {shape[0]} samples; a fit needs at least {FEWEST_ROWS}.")
    values = target_column(grams.targets, reading.target, path)
    target = infer_target(values, reading.target, path, reading.task)
    return GramDesign(grams, target, np.arange(1, shape[0] + 1))
