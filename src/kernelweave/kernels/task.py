"""Multi-task dictionaries: a shared kernel, and one kernel for each task."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from .bandwidth import RBF
from .base import Kernel
from .columns import Columns, as_table, resolve_columns, take_columns, take_rows
from .convert import as_kernel
from .families import Family, Named, members, positions


class TaskKernel(Kernel):
    """A kernel between samples of one task, k_t(x, z) = k(x, z) if x and z belong to task t, else 0.

    Parameters
    ----------
    kernel : kernel
        Fitted on the samples of all tasks, so that it is the same k for each of them.
    task : int or str
        The column of task labels.
    value : label
        The task.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> X = [[1.0, 0], [2.0, 1], [3.0, 1]]
    >>> TaskKernel(Linear(columns=[0]), task=1, value=1)(X)
    array([[0., 0., 0.],
           [0., 4., 6.],
           [0., 6., 9.]])
    """

    name = "task"

    def __init__(self, kernel: Any, task: int | str, value: Any) -> None:
        self.kernel = kernel
        self.task = task
        self.value = value

    @property
    def accepts(self) -> str:  # type: ignore[override]
        return "mixed"

    @property
    def counts_all_rows(self) -> bool:
        return as_kernel(self.kernel).counts_all_rows

    @property
    def label(self) -> str:
        return f"{as_kernel(self.kernel).label} on {self.task}={self.value}"

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Self:
        """Fit a copy of the kernel on the samples of all tasks."""
        X = as_table(X)
        self.kernel_ = clone(as_kernel(self.kernel)).fit(X, sample_weight=sample_weight)
        self.columns_ = task_position(self.task, X)
        return self

    def with_columns(self, columns: Columns, override: bool = True) -> Kernel:
        return type(self)(as_kernel(self.kernel).with_columns(columns, override), self.task, self.value)

    def in_view(self, X: Any, start: int) -> Kernel:
        task = start + int(task_position(self.task, X)[0])
        return type(self)(as_kernel(self.kernel).in_view(X, start), task, self.value)

    def _view(self, X: Any) -> Any:
        return X

    def _members(self, X: Any) -> np.ndarray:
        return np.flatnonzero(task_labels(X, self.columns_) == self.value)

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        K = np.zeros((X.shape[0], Z.shape[0]))
        rows = self._members(X)
        columns = rows if Z is X else self._members(Z)
        if rows.size and columns.size:
            A = take_rows(X, rows)
            K[np.ix_(rows, columns)] = self.kernel_(A, None if Z is X else take_rows(Z, columns))
        return K

    def _diag(self, X: Any) -> np.ndarray:
        values = np.zeros(X.shape[0])
        rows = self._members(X)
        if rows.size:
            values[rows] = self.kernel_.diag(take_rows(X, rows))
        return values


class PerTask(Family):
    """A shared kernel and one kernel for each task; see `per_task`."""

    def __init__(self, kernel: Any = None, task: int | str = 0) -> None:
        self.kernel = kernel
        self.task = task

    def expand(self, X: Any) -> Named:
        X = as_table(X)
        kernels = members(self.kernel, X, RBF())
        position = task_position(self.task, X)
        others = [int(c) for c in positions(None, X, kernels) if c != position[0]]
        if not others:
            raise ValueError(
                f"task={self.task!r} is the only column: X needs columns beside the task labels."
            )
        shared = [(label, kernel.with_columns(others, override=False)) for label, kernel in kernels]
        tasks = np.unique(task_labels(X, position)).tolist()
        named: Named = [(_name("shared", label, kernels), kernel) for label, kernel in shared]
        for value in tasks:
            title = f"{self.task}={value:g}" if isinstance(value, float) else f"{self.task}={value}"
            named += [(_name(title, label, kernels), TaskKernel(k, self.task, value)) for label, k in shared]
        return named


def per_task(kernel: Any = None, task: int | str = 0) -> PerTask:
    """Multi-task learning: a kernel shared by all tasks, and the same kernel within each task.

    With weights d_0 and d_t the learned kernel is (d_0 + d_t [x, z both in t]) k(x, z): tasks
    share what d_0 carries, and d_t carries what is special to task t. A task that was not among the
    training samples is predicted through the shared kernel alone.

    Parameters
    ----------
    kernel : kernel, list of kernels or family, default=RBF()
        Without `columns` of its own it sees every column but the task labels.
    task : int or str, default=0
        The column of task labels; its values in the training rows are the tasks.

    References
    ----------
    Evgeniou and Pontil, Regularized multi-task learning, KDD 2004.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 1.5, 2.0], [1, 2.5, 0.0], [1, 0.5, 1.0]])
    >>> [name for name, _ in per_task(task=0).expand(X)]
    ['shared', '0=0', '0=1']
    """
    return PerTask(kernel, task)


def task_position(task: int | str, X: Any) -> np.ndarray:
    """Position of the column of task labels, as an array of one."""
    position = resolve_columns(task, X)
    if position is None or len(position) != 1:
        raise ValueError(f"task={task!r}: expected the name or position of one column.")
    return position


def task_labels(X: Any, position: np.ndarray | None) -> np.ndarray:
    """Task label of every row."""
    column = take_columns(X, position)
    return (column.toarray() if hasattr(column, "toarray") else np.asarray(column)).ravel()


def _name(title: str, label: str, kernels: Named) -> str:
    return title if len(kernels) == 1 else f"{title}: {label}"
