"""What the target says about the task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelweave.app.cli._columns import infer_target

HERE = Path("data.csv")


def column(values: list[object]) -> np.ndarray:
    if isinstance(values[0], str):
        texts = np.empty(len(values), dtype=object)
        texts[:] = values
        return texts
    return np.array(values, dtype=float)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"] * 10, "classification"),
        ([0, 1] * 10, "classification"),
        ([-1.5, 1.5] * 10, "classification"),
        ([0, 1, 2] * 10, "classification"),
        (list(range(30)), "regression"),
        ([0.1, 0.2, 0.3] * 10, "regression"),
    ],
)
def test_task(values: list[object], task: str) -> None:
    target = infer_target(column(values), "y", HERE)
    assert target.task == task
    assert "'y'" in target.why


def test_the_user_decides() -> None:
    values = column([0, 1, 2] * 10)
    assert infer_target(values, "y", HERE, "regression").y.dtype == np.float64
    assert infer_target(values, "y", HERE, "classification").y.tolist() == [0, 1, 2] * 10
