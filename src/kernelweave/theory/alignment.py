"""Kernel alignment: cosines between kernels, and between kernels and the target."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from ..gram import Dictionary
from ..regularizers.structured import alignments
from ._statements import Assumption, Finding, dictionary, target_matrix


def pairwise_alignment(kernels: Any, X: Any, centered: bool = True) -> Finding:
    """Cosines between the kernels.

        A_ml = <K_m, K_l> / (||K_m|| ||K_l||),   <K, L> = tr(K L)

    on the samples. With `centered`, every K is replaced by H K H, H = I - 11'/n (Cortes, Mohri &
    Rostamizadeh 2012). A is between 0 and 1 and does not depend on the scale of the kernels; centred,
    it does not change when a constant is added to a kernel.

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices.
    centered : bool, default=True

    Returns
    -------
    finding : Finding
        `value` of shape (M, M), rows and columns of zeros for kernels that do not vary;
        `parts["names"]` and `parts["effective_number"]` of different kernels (`effective_number`).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Linear
    >>> X = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> pairwise_alignment([Linear(columns=0), Linear(columns=1), Linear()], X).value.round(3)
    array([[1.   , 0.   , 0.707],
           [0.   , 1.   , 0.707],
           [0.707, 0.707, 1.   ]])
    """
    found = dictionary(kernels, X, "center" if centered else None)
    M = len(found.names)
    value = np.zeros((M, M))
    value[np.ix_(found.live, found.live)] = alignments(found.gram)
    parts = {"names": found.names, "effective_number": effective_number(value)}
    statement = f"{'centred ' if centered else ''}alignment of {M} kernels with one another"
    return Finding(value, statement, _checked(found), parts)


def target_alignment(kernels: Any, X: Any, y: Any, centered: bool = True, task: str = "auto") -> Finding:
    """Cosine between every kernel and the target.

        a_m = <K_m, Y Y'> / (||K_m|| ||Y Y'||)

    with Y = +-1 for two classes, one indicator column per class for more, the targets themselves in
    regression. With `centered`, K and Y are centred first (Cortes, Mohri & Rostamizadeh 2012); without,
    they are taken as they are (Cristianini et al. 2002).

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices.
    y : array-like of shape (n,) or (n, c)
    centered : bool, default=True
    task : {"auto", "classification", "regression"}, default="auto"
        What y is; "auto" treats integers and text as classes.

    Returns
    -------
    finding : Finding
        `value` of shape (M,); `parts["names"]`, and in `parts["by_chance"]` what shuffled targets
        would give on average (centred only).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Linear
    >>> X = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> target_alignment([Linear(columns=0), Linear(columns=1), Linear()], X, [1, 0, 1, 0]).value.round(3)
    array([1.   , 0.   , 0.707])
    """
    found = dictionary(kernels, X, "center" if centered else None)
    Y = target_matrix(y, found.gram.n_samples, task, centered)
    gram, units = found.gram, np.eye(found.gram.n_kernels)
    sizes = np.array([np.linalg.norm(gram.combine(unit)) for unit in units]) * np.linalg.norm(Y.T @ Y)
    value = found.all_weights(gram.quad(Y) / sizes)
    parts: dict[str, Any] = {"names": found.names}
    if centered:  # mean of <K_m, P Y Y' P'> over all permutations P: tr(K_m) tr(Y Y') / (n - 1)
        traces = np.array([gram.diag(unit).sum() for unit in units])
        parts["by_chance"] = found.all_weights(traces * (Y**2).sum() / (gram.n_samples - 1) / sizes)
    statement = f"{'centred ' if centered else ''}alignment of {len(found.names)} kernels with the target"
    return Finding(value, statement, _checked(found), parts)


def effective_number(A: FloatArray) -> float:
    """The number of different kernels that a matrix of cosines stands for.

        (sum of eigenvalues)^2 / sum of squared eigenvalues = tr(A)^2 / ||A||^2

    M for kernels orthogonal to one another, 1 for M copies of one.

    Parameters
    ----------
    A : ndarray of shape (M, M)

    Examples
    --------
    >>> import numpy as np
    >>> effective_number(np.eye(3)), effective_number(np.ones((3, 3)))
    (3.0, 1.0)
    """
    size = float(np.sum(np.square(A)))
    return float(np.trace(A)) ** 2 / size if size > 0 else 0.0


def _checked(found: Dictionary) -> tuple[Assumption, ...]:
    still = [found.names[m] for m in np.setdiff1d(np.arange(len(found.names)), found.live)]
    text = f"without variance: {', '.join(still[:5])}" if still else "all do"
    return (
        Assumption("positive semidefinite", True, f"{len(found.names)} matrices checked"),
        Assumption("every kernel varies", not still, text),
    )
