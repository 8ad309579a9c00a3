"""What every function here takes (kernels, data, targets) and returns: a value, and what it assumes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from .._typing import FloatArray, IntArray
from ..gram import Dictionary, FeatureSource, KernelSource, StackSource
from ..gram.stack import as_stack
from ..kernels import as_views, resolve_kernels
from ..kernels.columns import as_table

#: how an assumption that holds, fails, or cannot be checked is marked
MARKS = {True: "holds", False: "FAILS", None: "unchecked"}


@dataclass(frozen=True)
class Assumption:
    """Something a statement needs.

    Attributes
    ----------
    name : str
    holds : bool or None
        Whether the data satisfy it; None if the data cannot tell.
    measured : str
        What was looked at, with numbers.

    Examples
    --------
    >>> Assumption("noiseless targets", True, "residual 1e-12")
    [holds] noiseless targets: residual 1e-12
    """

    name: str
    holds: bool | None
    measured: str

    def __repr__(self) -> str:
        return f"[{MARKS[self.holds]}] {self.name}: {self.measured}"


@dataclass(frozen=True, repr=False)
class Finding:
    """A value with what it means, what it was computed from, and what it assumes.

    Attributes
    ----------
    value : float or ndarray
    statement : str
        What the value is, in words.
    assumptions : tuple of Assumption
    parts : dict
        Quantities the value was computed from.

    Examples
    --------
    >>> Finding(0.25, "an upper bound", (Assumption("bounded kernel", True, "k(x, x) <= 1"),))
    0.25: an upper bound
      [holds] bounded kernel: k(x, x) <= 1
    """

    value: Any
    statement: str
    assumptions: tuple[Assumption, ...] = ()
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """Whether every assumption holds; None if none fails and some cannot be checked."""
        return all_hold(self.assumptions)

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        value = f"array of shape {self.value.shape}" if np.ndim(self.value) else f"{self.value:.4g}"
        return with_assumptions(f"{value}: {self.statement}", self.assumptions)


def all_hold(assumptions: Iterable[Assumption]) -> bool | None:
    """True if all hold, False if one fails, None otherwise."""
    found = {assumption.holds for assumption in assumptions}
    return False if False in found else None if None in found else True


def with_assumptions(head: str, assumptions: Iterable[Assumption]) -> str:
    """A headline and one indented line per assumption."""
    return "\n".join([head, *(f"  {assumption!r}" for assumption in assumptions)])


# -- inputs -------------------------------------------------------------------------------------------


TASKS = ("auto", "classification", "regression")


def kernel_source(kernels: Any, X: Any) -> KernelSource:
    """Kernels as the estimators take them: a specification and data, or "precomputed" and matrices."""
    if isinstance(kernels, str) and kernels == "precomputed":
        return StackSource(as_stack(X))
    table = as_table(as_views(X))
    if table.shape[0] < 2:
        raise ValueError(f"X has {table.shape[0]} samples: at least 2 are needed.")
    return FeatureSource(resolve_kernels(kernels, table), table)


def dictionary(kernels: Any, X: Any, normalize: str | None, matrices: bool = True) -> Dictionary:
    """The kernels on the samples, checked (finite, symmetric, positive semidefinite) and normalised.

    `matrices` says whether more than their diagonals will be asked for; if not, none is kept.
    """
    engine = "auto" if matrices else "blocked"
    return Dictionary(kernel_source(kernels, X), normalize, gram=engine, combined=matrices)


def target_matrix(y: Any, n_samples: int, task: str = "auto", centered: bool = True) -> FloatArray:
    """Targets as columns: +-1 for two classes, one indicator per class for more, numbers for regression.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, c)
    n_samples : int
    task : {"auto", "classification", "regression"}
    centered : bool, default=True
        Whether the columns get mean zero.
    """
    if task not in TASKS:
        raise ValueError(f"task={task!r} must be one of {', '.join(map(repr, TASKS))}.")
    values = np.asarray(y)
    if values.ndim not in (1, 2) or len(values) != n_samples:
        raise ValueError(f"y has shape {values.shape}: {n_samples} samples need as many targets.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("y has NaN or infinite values: fill them, or leave those samples out.")
    if is_classification(values, task):
        if values.ndim != 1:
            raise ValueError(f"y has shape {values.shape}: class labels are one column.")
        classes, codes = np.unique(values, return_inverse=True)
        Y = np.eye(len(classes))[codes] if len(classes) != 2 else np.where(codes == 1, 1.0, -1.0)[:, None]
    else:
        try:
            Y = values.astype(np.float64).reshape(len(values), -1)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers for task='regression' ({error}).") from error
    if np.abs(Y - Y.mean(axis=0)).max() <= 1e-12 * max(np.abs(Y).max(), 1e-300):
        raise ValueError("y is constant: there is nothing to align with; give targets that vary.")
    return Y - Y.mean(axis=0) if centered else Y


def is_classification(y: Any, task: str) -> bool:
    """Whether targets are classes: by `task`, or integers and text in one column."""
    if task != "auto":
        return task == "classification"
    try:
        return y.ndim == 1 and type_of_target(y) in ("binary", "multiclass")
    except ValueError as error:
        raise ValueError(f"y cannot be read as targets: {error}") from error


def check_number(name: str, value: Any, low: float, high: float = np.inf, closed: bool = False) -> float:
    """`value` as a float in (low, high), or [low, high] if `closed`; an error naming it otherwise."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    if not (low <= number <= high if closed else low < number < high):
        brackets = "[]" if closed else "()"
        raise ValueError(f"{name}={value!r} must be a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}.")
    return number


def check_count(name: str, value: Any, high: int) -> int:
    """`value` as an int from 1 to `high`, or an error naming it."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= high:
        raise ValueError(f"{name}={value!r} must be an integer from 1 to {high}.")
    return int(value)


def positions(names: list[str], chosen: Any, argument: str) -> IntArray:
    """Kernels given by name or by position, as sorted positions without repetition."""
    found = []
    for one in [chosen] if isinstance(chosen, str | Integral) else list(chosen):
        if isinstance(one, str) and one in names:
            found.append(names.index(one))
        elif isinstance(one, Integral) and not isinstance(one, bool) and 0 <= int(one) < len(names):
            found.append(int(one))
        else:
            raise ValueError(
                f"{argument}: there is no kernel {one!r}; give names ({', '.join(names[:5])}, ...) or "
                f"positions from 0 to {len(names) - 1}."
            )
    return np.unique(np.array(found, dtype=int))
