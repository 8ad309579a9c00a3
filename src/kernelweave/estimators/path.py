"""Regularisation paths: one parameter varied, each fit started from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from ..solvers.run import Result
from ._base import Spec
from ._chain import Chain
from ._input import check_positive
from ._mkl import AnyDictionary, BaseMKL, SubProblem, live_regularizer


@dataclass(frozen=True)
class Path:
    """The fits along a path, one entry per value of the parameter.

    Attributes
    ----------
    param : str
        The parameter varied, in `set_params` notation.
    values : list
    kernel_names : list of str
    weights, norms : ndarray of shape (n_values, M), or (n_values, n_models, M)
    objective, dual_gap, n_iter : ndarray of shape (n_values,), or (n_values, n_models)
        `n_iter` counts single-kernel fits: 0 where a point took none.
    """

    param: str
    values: list[Any]
    kernel_names: list[str]
    weights: FloatArray
    norms: FloatArray
    objective: FloatArray
    dual_gap: FloatArray
    n_iter: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def frame(self) -> Any:
        """Weights as a pandas DataFrame, values in rows and kernels in columns (needs pandas)."""
        import pandas as pd

        rows = self.weights.reshape(len(self.values), -1)
        index = pd.Index(self.values, name=self.param)
        names = self.kernel_names * (rows.shape[1] // len(self.kernel_names))
        return pd.DataFrame(rows, index=index, columns=names)


def mkl_path(
    estimator: BaseMKL,
    X: Any,
    y: Any,
    param: str = "C",
    values: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> Path:
    """Fit along the values of one parameter, computing the Gram matrices once.

    Every point is certified to the estimator's `tol` like a fit of its own, and starts from what its
    neighbours found: their solution, if that closes its gap (`n_iter` is 0 then), or else the norms and dual
    variables to expect. For smooth losses, points between solved ones are interpolated first; for the squared
    loss, all points are solved within the span of single-kernel fits at a few of them.

    Parameters
    ----------
    estimator : MKLClassifier, MKLRegressor, or another classifier or regressor of their base
        Unfitted; left as it is.
    X, y, sample_weight
        As in its ``fit``.
    param : str, default="C"
        "C", or a parameter of the regulariser: "p", "l1_ratio", "q", "eta", or in full
        "regularizer__p"; "regularizer" for a list of regularisers.
    values : sequence, optional
        In the order to go through them; by default 50 values of C from 1e-3 to 1e3.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF()), regularizer=kw.LpNorm(p=1))
    >>> path = kw.mkl_path(clf, X, y == 1, values=[0.1, 1.0, 10.0])
    >>> path.weights.shape
    (3, 4)
    >>> bool((path.dual_gap <= 1e-3).all())
    True
    """
    if not can_prepare(estimator):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}: mkl_path takes classifiers and regressors with a "
            "cost C, such as MKLClassifier and MKLRegressor."
        )
    values = list(np.geomspace(1e-3, 1e3, 50) if values is None else values)
    if not values:
        raise ValueError("values is empty: give at least one, or leave it out for 50 values of C.")
    name = _full_name(estimator, param)
    points = specs_along(estimator, name, values)
    prepared = prepare(clone(estimator), X, y, sample_weight)
    return _assemble(name, values, prepared.dictionary, prepared.solve(points))


def specs_along(estimator: BaseMKL, name: str, values: Sequence[Any]) -> list[Spec]:
    """The settings of a fit at every value of one parameter; those of C share their parts."""
    if name != "C":
        return [Spec.of(clone(estimator).set_params(**{name: value})) for value in values]
    first: list[Spec] = []
    for value in values:
        check_positive("C", value)
        first = first or [Spec.of(clone(estimator).set_params(C=value))]
    return [replace(first[0], C=value) for value in values]


@dataclass(frozen=True)
class Prepared:
    """A fit but for its solver: the problems, and the kernels on the training samples.

    Attributes
    ----------
    spec : Spec
    dictionary : Dictionary or LowRankDictionary
    problems : list of SubProblem
    """

    spec: Spec
    dictionary: AnyDictionary
    problems: list[SubProblem]

    @property
    def convex(self) -> bool:
        """Whether its solutions do not depend on where the solver starts."""
        return live_regularizer(self.spec, self.dictionary).convex

    def part(self, rows: IntArray) -> Prepared:
        """The same on some of the training samples; the kernels keep their normalisation."""
        dictionary = copy(self.dictionary)
        dictionary.gram = self.dictionary.gram.subset(rows)
        return Prepared(self.spec, dictionary, [one.part(rows) for one in self.problems])

    def solve(self, points: Sequence[Spec], guides: Any = None) -> list[list[Result]]:
        """Solutions of every problem at every point; `guides` as in `Chain`, for each problem."""
        with blas_threads_for(self.dictionary.gram.n_samples):
            return [
                Chain(self.dictionary, one, self.spec.C, guides and guides[k]).solve(points)
                for k, one in enumerate(self.problems)
            ]


def can_prepare(estimator: Any) -> bool:
    """Whether the problems of an estimator on some samples are parts of those on all of them."""
    return isinstance(estimator, BaseMKL) and hasattr(estimator, "_setup")


def prepare(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Prepared:
    """Check parameters and data of an estimator that `can_prepare`, and compute its kernels."""
    setup = estimator._setup(X, y, sample_weight)
    with blas_threads_for(int(np.count_nonzero(setup.weight))):
        return Prepared(setup.spec, estimator._dictionary(setup), setup.problems)


def _full_name(estimator: BaseMKL, param: str) -> str:
    known, rule = estimator.get_params(deep=True), estimator.regularizer
    if isinstance(rule, str):  # its parameters count as well
        parts, kind = estimator._parts["regularizer"]
        known |= {f"regularizer__{name}": None for name in parts.resolve(rule, kind).get_params()}
    name = param if param in known else f"regularizer__{param}"
    if name not in known:
        raise ValueError(
            f"param={param!r} is a parameter of neither the estimator nor its regularizer "
            f"{estimator.regularizer!r}; pass a regularizer object that has it."
        )
    return name


def _assemble(name: str, values: list[Any], dictionary: AnyDictionary, chains: list[list[Result]]) -> Path:
    def table(read: Any) -> FloatArray:
        rows = np.array([[read(solution) for solution in chain] for chain in chains])
        return rows[0] if len(chains) == 1 else np.swapaxes(rows, 0, 1)

    return Path(
        param=name,
        values=values,
        kernel_names=dictionary.names,
        weights=table(lambda solution: dictionary.all_weights(solution.state.weights)),
        norms=table(lambda solution: dictionary.all_weights(solution.state.certificate.norms)),
        objective=table(lambda solution: solution.state.certificate.primal),
        dual_gap=table(lambda solution: solution.state.certificate.gap),
        n_iter=table(lambda solution: solution.n_iter),
    )
