"""What training samples alone decide before a machine is trained: which kernels, at which scales."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh, lapack

from .._typing import FloatArray, IntArray
from ..gram import DenseGram, Dictionary
from ..gram.sources import FoldSource
from ..kernels.normalize import Dimension
from ..losses import Squared
from ..regularizers import LpNorm, Regularizer, Uniform
from ..solvers.greedy import FactorDictionary, GreedyTask, GroupOMP
from ..solvers.multiple.empirical_bayes import EmpiricalBayes, GaussianEvidence
from ._mkl import Setup

#: samples that are looked at, kernels whose errors alone are computed, and kernels of a greedy path, at most
MOST_SAMPLES, MOST_KERNELS, MOST_STEPS = 200, 64, 8

#: what is added to the diagonal: of a kernel alone, as shares of its trace; of greedy paths of kernels whose
#: effective dimension is 10 at 1
SHARES, SHIFTS = np.geomspace(1.0, 1e-9, 13), (1.0, 0.01)

#: residual at which the evidence of weights is taken to be largest
EVIDENCE_TOL = 3e-2


@dataclass(frozen=True)
class Look:
    """Training samples as rules see them: at most 200, with targets spread like those of all.

    Attributes
    ----------
    matrices : list of ndarray of shape (n, n)
        The kernels that vary, normalised.
    live : ndarray of int
        Their numbers.
    n_kernels : int
        Of all, those that do not vary too.
    y : ndarray of shape (n, c)
        Targets of all problems.
    weight : ndarray of shape (n,)
    fit_intercept : bool
    """

    matrices: list[FloatArray]
    live: IntArray
    n_kernels: int
    y: FloatArray
    weight: FloatArray
    fit_intercept: bool

    @classmethod
    def at(cls, dictionary: Dictionary, setup: Setup) -> Look:
        """A look at the training samples of a fit."""
        problem, n = setup.problems[0].problem, dictionary.gram.n_samples
        whole = setup.problems[0].rows is None
        rows: IntArray = np.arange(n)
        if n > MOST_SAMPLES:
            rows = problem.spread(MOST_SAMPLES) if whole else np.linspace(0, n - 1, MOST_SAMPLES).astype(int)
        targets = [one.spread(one.problem.y.reshape(len(one.problem.y), -1), n) for one in setup.problems]
        given = problem.C / float(setup.spec.C or 1.0) if problem.weight is None else problem.weight
        weight = given[rows, 0] if whole else np.ones(len(rows))
        gram = dictionary.gram if len(rows) == n else dictionary.gram.subset(rows)
        units = np.eye(gram.n_kernels)
        matrices: list[FloatArray] = [gram.combine(unit).astype(np.float64) for unit in units]
        y, flat = np.hstack(targets)[rows], bool(problem.fit_intercept)
        return cls(matrices, dictionary.live, len(dictionary.names), y, weight, flat)

    @cached_property
    def root(self) -> FloatArray:
        """Roots of the weights."""
        return np.asarray(np.sqrt(self.weight))

    def centred(self, K: FloatArray) -> FloatArray:
        """H S K S H, S the roots of the weights and H the projection off S 1, where there is an intercept."""
        K = K * np.multiply.outer(self.root, self.root)
        if not self.fit_intercept:
            return K
        u = self.root / np.linalg.norm(self.root)
        Ku = K @ u
        return np.asarray(K - np.outer(u, Ku) - np.outer(Ku, u) + float(u @ Ku) * np.outer(u, u))

    def errors(self, K: FloatArray, shifts: Sequence[float] | FloatArray) -> FloatArray:
        """Mean squared errors of ridge regression with a centred K', each sample by the machine without it.

        With t = H S y and P = (K' + shift I)^-1, less u u' / shift with an intercept, u = S 1 / |S 1|,

            y_i - f_i = (P t)_i / (s_i P_ii)

        exact for the squared loss, at every shift from one set of eigenvectors.
        """
        t, u = self.root[:, None] * self.y, self.root / np.linalg.norm(self.root)
        t = t - np.outer(u, u @ t) if self.fit_intercept else t
        if len(shifts) > 1:
            values, U = eigh(K, driver="evd")
            values, squares, turned = np.maximum(values, 0.0), U**2, U.T @ t
        found = []
        for shift in shifts:
            if len(shifts) > 1:
                inverse = 1.0 / (values + shift)
                diagonal, left = squares @ inverse, U @ (inverse[:, None] * turned)
            else:
                P = _inverse(K, shift)
                diagonal, left = P.diagonal().copy(), P @ t
            if self.fit_intercept:
                diagonal = diagonal - u**2 / shift
            lost = left / np.maximum(diagonal, 1e-300)[:, None]  # times the roots
            found.append(float((lost**2).sum() / self.weight.sum()))
        return np.array(found)


def _inverse(K: FloatArray, shift: float) -> FloatArray:
    A = K.copy()
    A.flat[:: len(A) + 1] += shift
    lower = lapack.dpotri(lapack.dpotrf(A, lower=True)[0], lower=True)[0]
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


#: gives the kernels and the regulariser of a machine, from a look at its training samples
Rule = Callable[[Look], tuple[IntArray, Regularizer]]


@dataclass(frozen=True)
class Best:
    """Of groups of kernels the one whose sum has the least error on samples left out, at its best ridge.

    Of more than 64 groups, those of the largest alignment <K', t t'> / |K'| with the targets t are compared.
    """

    groups: tuple[IntArray, ...]

    def __call__(self, look: Look) -> tuple[IntArray, Regularizer]:
        t = look.root[:, None] * (look.y - np.average(look.y, axis=0, weights=look.weight))
        found = []
        for group in self.groups:
            places = np.flatnonzero(np.isin(look.live, group))
            if len(places):
                K = look.centred(np.sum([look.matrices[m] for m in places], axis=0))
                found.append((_alignment(K, t), look.live[places], K))
        found = sorted(found, key=lambda one: -one[0])[:MOST_KERNELS]
        errors = [look.errors(K, np.trace(K) * SHARES).min() for _, _, K in found]
        return found[int(np.argmin(errors))][1], Uniform()


def _alignment(K: FloatArray, t: FloatArray) -> float:
    return float((t * (K @ t)).sum()) / max(float(np.linalg.norm(K)), 1e-300)


@dataclass(frozen=True)
class Greedy:
    """Kernels that come in one after the other (`solvers.greedy.GroupOMP`), and then weigh the same.

    Paths of two ridges, and of every path the number of kernels, are compared by errors on samples left
    out. Kernels have one effective dimension (`kernels.Dimension`): else those that fit anything come first.
    """

    def __call__(self, look: Look) -> tuple[IntArray, Regularizer]:
        n, names = len(look.y), [str(m) for m in look.live]
        scales = same_dimension(look)
        matrices = [scale * K for scale, K in zip(scales, look.matrices, strict=True)]
        source = FoldSource(matrices, names, np.arange(n))
        total, best = float(look.weight.sum()), (np.inf, np.array([0]))
        options: dict[str, Any] = {"centred": look.fit_intercept, "check": False}
        for shift in SHIFTS:
            task = GreedyTask(look.y, look.weight, Squared(), shift / total, look.fit_intercept)
            dictionary = FactorDictionary(source, None, look.weight, shift=shift, **options)
            stages = GroupOMP(MOST_STEPS).solve(dictionary, task).state.stages
            summed = np.zeros((n, n))
            for before, stage in itertools.pairwise(stages):
                for m in set(stage.fit.kernels) - set(before.fit.kernels):
                    summed = summed + matrices[m]
                error = float(look.errors(look.centred(summed), [shift])[0])
                if error < best[0]:
                    best = error, np.array(stage.fit.kernels)
        places = np.sort(best[1])
        return look.live[places], _fixed(look, scales, places)


@dataclass(frozen=True)
class Evidence:
    """Weights of the largest evidence of Gaussian noise (`solvers.multiple.empirical_bayes`), of sum 1."""

    def __call__(self, look: Look) -> tuple[IntArray, Regularizer]:
        evidence = GaussianEvidence(DenseGram(look.matrices), look.y, look.weight, look.fit_intercept)
        weights = EmpiricalBayes().solve(evidence, tol=EVIDENCE_TOL).state.weights
        weights = weights if weights.any() else np.ones(len(weights))
        places = np.flatnonzero(weights)
        return look.live[places], _fixed(look, weights / weights.sum(), places)


@dataclass(frozen=True)
class Even:
    """An lp norm of kernels that have all the same effective dimension (`kernels.Dimension`).

    With s_m K_m in place of K_m, and d_m / s_m the weights of these, ||d||_p <= 1 is ||c d||_p <= 1 at the
    costs c_m = 1 / s_m.
    """

    p: float
    kernels: IntArray

    def __call__(self, look: Look) -> tuple[IntArray, Regularizer]:
        places = np.flatnonzero(np.isin(look.live, self.kernels))
        return look.live[places], _fixed(look, same_dimension(look), places, self.p)


def same_dimension(look: Look) -> FloatArray:
    """Scales of the kernels at which all have the same effective dimension."""
    scales = np.array([Dimension().fit(K, look.weight).scale_ for K in look.matrices])
    return np.where(scales > 0.0, scales, 1.0)


def _fixed(look: Look, scales: FloatArray, places: IntArray, p: float = np.inf) -> LpNorm:
    """The norm whose weights are the scales of some kernels, or with p < inf those times others."""
    costs = np.ones(look.n_kernels)
    costs[look.live[places]] = 1.0 / scales[places]
    return LpNorm(p, costs=costs)
