"""Kernel weights fitted on parts of the samples, the kernels evaluated once for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from .._linalg import blas_threads_for
from .._typing import FloatArray, IntArray
from ..estimators._base import Spec
from ..estimators._chain import Guide
from ..estimators._input import take
from ..estimators._kernels import BaseKernels, kernels_on
from ..estimators.auto import BaseMKLAuto
from ..estimators.path import Prepared, can_prepare, prepare
from ..gram import Dictionary, KernelStack, parse_memory
from ..gram.choice import SHARE, free_memory

#: smallest relative gap that is asked for
LEAST_TOL = 1e-9


def _share_of_energy(found: Any) -> float:
    """E / scale, at most 1; 1 for a model without weights, which no other tolerance changes."""
    proof, weights = found.state.certificate, found.state.weights
    live = (weights > 0.0) & (proof.norms > 0.0)
    energy = 0.5 * float((proof.norms[live] ** 2 / weights[live]).sum())
    return min(1.0, energy / proof.scale) if energy > 0.0 else 1.0


class Refits(Protocol):
    """Weights (n_models, M) of the kernels `names` by a fit on some rows; None means all of them.

    `require` is what joblib has to provide: threads, where the kernels exist only in this process.
    """

    names: list[str]
    require: str | None

    def weights(self, rows: IntArray | None) -> FloatArray:
        """Fit, and return the weights."""


def weights_of(refits: Refits, rows: IntArray) -> FloatArray:
    """`refits.weights(rows)`; joblib sends an argument once, but the object of a method with every call."""
    return refits.weights(rows)


def refits_for(estimator: Any, X: Any, y: Any, weight: FloatArray) -> Refits:
    """The fastest way to fit the estimator on parts of the samples.

    Parameters
    ----------
    estimator : estimator that learns kernel weights, unfitted; or MKLAuto..., fitted
    X, y
    weight : ndarray of shape (n,), positive
    """
    if isinstance(estimator, BaseMKLAuto):
        return StackedParts(estimator, X, y, weight)
    if can_prepare(estimator):
        return SolvedParts(prepare(estimator, X, y, weight))
    if isinstance(estimator, BaseKernels):
        source = kernels_on(estimator, X, weight)
        if _fits(len(source.names), source.n_samples, getattr(estimator, "memory_limit", None)):
            return MatrixParts(estimator, source, y, weight)
    return PlainParts(estimator, X, y, weight)


class SolvedParts:
    """MKL by any loss and regulariser: a part of the Gram matrices, and the solver itself.

    The gap is relative to the objective, but the weights decide only its energy E = 1/2 sum_m n_m^2 / d_m.
    Where costs are small, E is a small share of the objective and any weights close the gap, including those
    of the fit on all samples. Convex problems are therefore solved until the gap is within `tol` of E.

    Convex problems start from the component norms of the fit on all samples, which are close to their
    solution. Where a problem that is not convex ends depends on its start, so such fits start from the
    beginning: otherwise they would agree with the fit on all samples by construction.
    """

    def __init__(self, whole: Prepared, point: Spec | None = None) -> None:
        self.whole, self.point = whole, whole.spec if point is None else point
        self.names = whole.dictionary.names
        self.guides: list[list[Guide]] | None = None
        self.require = None if self.whole.dictionary.gram.portable else "sharedmem"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.whole.dictionary.__sizeof__()

    def weights(self, rows: IntArray | None) -> FloatArray:
        part = self.whole if rows is None else self.whole.part(rows)
        found = [solution for [solution] in part.solve([self.point], self.guides)]
        if part.convex:
            guides = [[Guide.of(solution, part.dictionary)] for solution in found]
            tol = max(self.point.tol * min(map(_share_of_energy, found)), LEAST_TOL)
            if tol < max(solution.state.certificate.gap for solution in found):
                found = [one for [one] in part.solve([replace(self.point, tol=tol)], guides)]
            if rows is None:
                self.guides = [[Guide.of(solution, part.dictionary)] for solution in found]
        return part.dictionary.all_weights(np.array([solution.state.weights for solution in found]))


class StackedParts:
    """What a competition took: its candidates on their own kernels at their own costs, d = sum_j w_j d_j."""

    def __init__(self, auto: Any, X: Any, y: Any, weight: FloatArray) -> None:
        template = clone(auto.best_estimator_)
        whole, self.parts = prepare(template, X, y, weight), list[tuple[float, SolvedParts]]()
        for share, candidate, C in auto._taken:
            point = Spec.of(clone(template).set_params(regularizer=candidate.regularizer, C=C))
            own = replace(
                whole, spec=replace(point, C=whole.spec.C), dictionary=candidate.on(whole.dictionary)
            )
            self.parts.append((share, SolvedParts(own, point)))
        self.names, self.require = self.parts[0][1].names, self.parts[0][1].require

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(part.__sizeof__() for _, part in self.parts)

    def weights(self, rows: IntArray | None) -> FloatArray:
        return np.asarray(sum(share * part.weights(rows) for share, part in self.parts))


class MatrixParts:
    """Other estimators over several kernels: parts of the normalised matrices as precomputed kernels."""

    require: str | None = None

    def __init__(self, estimator: Any, source: Any, y: Any, weight: FloatArray) -> None:
        self.estimator = clone(estimator).set_params(kernels="precomputed", normalize=None)
        self.y, self.weight = y, weight
        with blas_threads_for(len(weight)):
            limit = parse_memory(estimator.memory_limit)
            dictionary = Dictionary(source, estimator.normalize, weight, limit)
            units = np.eye(dictionary.gram.n_kernels)
            self.stack = KernelStack([dictionary.gram.combine(unit) for unit in units])
        self.names, self.live = dictionary.names, dictionary.live

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(K.nbytes for K in self.stack.matrices)

    def weights(self, rows: IntArray | None) -> FloatArray:
        stack, y, weight = self.stack, self.y, self.weight
        if rows is not None:
            stack, weight = stack[np.ix_(rows, rows)], weight[rows]
            y = None if y is None else y[rows]
        model = clone(self.estimator).fit(stack, y, sample_weight=weight)
        found = np.atleast_2d(model.weights_)
        full = np.zeros((len(found), len(self.names)))
        full[:, self.live] = found
        return full


class PlainParts:
    """Estimators whose kernel changes while they learn, and too many kernels to keep."""

    require: str | None = None

    def __init__(self, estimator: Any, X: Any, y: Any, weight: FloatArray) -> None:
        self.estimator, self.X, self.y, self.weight = estimator, X, y, weight
        self.names: list[str] = []

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + getattr(self.X, "nbytes", 0)

    def weights(self, rows: IntArray | None) -> FloatArray:
        X, y, weight = self.X, self.y, self.weight
        if rows is not None:
            X, y, weight = take(X, rows), None if y is None else y[rows], weight[rows]
        model = clone(self.estimator).fit(X, y, sample_weight=weight)
        self.names = list(model.kernel_names_)
        return np.atleast_2d(model.weights_)


def _fits(n_kernels: int, n: int, limit: Any) -> bool:
    """Whether two sets of matrices (raw and normalised) and a part of them fit into memory."""
    needed, free = 2.5 * n_kernels * n**2 * 8, free_memory()
    room = parse_memory(limit) if limit is not None else (None if free is None else SHARE * free)
    return room is None or needed <= room
