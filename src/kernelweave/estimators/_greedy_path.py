"""The path of a greedy fit, as users see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray


@dataclass(frozen=True, repr=False, eq=False)
class GreedyPath:
    """The models of a greedy fit, one for every number of kernels.

    Entry k - 1 of everything belongs to the model of k kernels.

    Attributes
    ----------
    kernel_names : list of str
        Of the whole dictionary.
    sets : list of tuple of int
        The kernels of each model in the order in which they came in. Without backward steps each
        adds one kernel to the one before.
    gains : ndarray of shape (n_steps,)
        The gain that the last kernel of each model promised when it came in.
    objective, train_error : ndarray of shape (n_steps,)
        J = 2/l sum_i w_i V(y_i, f(x_i)) + lambda ||f||^2, and its first term, for the squared loss
        the mean squared error summed over outputs.
    validation_error : ndarray of shape (n_steps,), or None
        On the held-out samples: share of wrong labels, or mean loss.
    dual_coef : ndarray of shape (n_steps, n, n_outputs)
    intercept : ndarray of shape (n_steps, n_outputs)
    n_selected : int
        The number of kernels of the model chosen.
    stopped : str
        What ended the path: "tol", "n_kernels" or "interrupted".
    """

    kernel_names: list[str]
    sets: list[tuple[int, ...]]
    gains: FloatArray
    objective: FloatArray
    train_error: FloatArray
    validation_error: FloatArray | None
    dual_coef: FloatArray
    intercept: FloatArray
    n_selected: int
    stopped: str

    @property
    def order(self) -> list[int]:
        """Kernels of the longest model, in the order in which they came in."""
        return list(self.sets[-1]) if self.sets else []

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        names = " > ".join(self.kernel_names[m] for m in self.order[:6])
        more = " > ..." if len(self) > 6 else ""
        count = f"{len(self)} of {len(self.kernel_names)} kernels, {self.n_selected} chosen"
        return f"GreedyPath({count}, stopped by {self.stopped}: {names}{more})"

    def frame(self) -> Any:
        """One row per model, as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns: dict[str, Any] = {
            "kernel": [self.kernel_names[kernels[-1]] for kernels in self.sets],
            "gain": self.gains,
            "objective": self.objective,
            "train_error": self.train_error,
        }
        if self.validation_error is not None:
            columns["validation_error"] = self.validation_error
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(self) + 1, name="n_kernels"))

    def weights(self) -> IntArray:
        """Which kernels each model uses, ones and zeros of shape (n_steps, M)."""
        out = np.zeros((len(self), len(self.kernel_names)), dtype=int)
        for row, kernels in zip(out, self.sets, strict=True):
            row[list(kernels)] = 1
        return out
