"""What training samples alone decide before a machine is trained: which kernels, at which scales."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh, lapack
from scipy.stats import gamma

from .._typing import FloatArray, IntArray
from ..gram import DenseGram, Dictionary
from ..gram.sources import FoldSource
from ..kernels.normalize import Dimension
from ..losses import Squared
from ..regularizers import LpNorm, Regularizer, Uniform
from ..solvers import Problem
from ..solvers.greedy import FactorDictionary, GreedyTask, GroupOMP
from ..solvers.multiple.empirical_bayes import EmpiricalBayes, GaussianEvidence
from ._mkl import Setup

#: samples that are looked at, kernels whose errors alone are computed, and kernels of a greedy path, at most
MOST_SAMPLES, MOST_KERNELS, MOST_STEPS = 200, 64, 8

#: what is added to the diagonal: of a kernel alone, as shares of its trace; of greedy paths of kernels whose
#: effective dimension is 10 at 1
SHARES, SHIFTS = np.geomspace(1.0, 1e-9, 13), (1.0, 0.01)

#: entries that differ by no more than this share are the same
SAME = 1e-12

#: chance at which a group of kernels that has nothing to do with the targets is kept
CHANCE = 0.05

#: residual at which the evidence of weights is taken to be largest
EVIDENCE_TOL = 3e-2


@dataclass(frozen=True)
class Look:
    """Training samples as rules see them: at most 200, with targets spread like those of all.

    Attributes
    ----------
    matrices : list of ndarray of shape (n, n)
        The kernels that vary over these samples, normalised.
    live : ndarray of int
        Their numbers.
    n_kernels : int
        Of all, those that do not vary too.
    y : ndarray of shape (n, c)
        Targets of all problems; of a loss that couples samples, the residuals of f = 0.
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
        targets = [one.spread(_numbers(one.problem), n) for one in setup.problems]
        given = problem.C / float(setup.spec.C or 1.0) if problem.weight is None else problem.weight
        weight = given[rows, 0] if whole else np.ones(len(rows))
        gram = dictionary.gram if len(rows) == n else dictionary.gram.subset(rows)
        units = np.eye(gram.n_kernels)
        matrices: list[FloatArray] = [gram.combine(unit).astype(np.float64) for unit in units]
        varies = np.array([np.ptp(K) > SAME * np.abs(K).max() for K in matrices])
        varies = varies if varies.any() else ~varies
        matrices = [K for K, kept in zip(matrices, varies, strict=True) if kept]
        y, flat = np.hstack(targets)[rows], bool(problem.fit_intercept or _shifts(problem))
        return cls(matrices, dictionary.live[varies], len(dictionary.names), y, weight, flat)

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

    @cached_property
    def targets(self) -> FloatArray:
        """Targets less their means, times the roots of the weights."""
        return np.asarray(self.root[:, None] * (self.y - np.average(self.y, axis=0, weights=self.weight)))

    @cached_property
    def chances(self) -> FloatArray:
        """Of every kernel the chance that it is aligned as much with targets in another order (`Related`)."""
        L, chances = doubly_centred(self.targets @ self.targets.T), np.ones(len(self.live))
        for m, K in enumerate(self.matrices):
            K = doubly_centred(K * np.multiply.outer(self.root, self.root))
            mean, variance = over_all_orders(K, L)
            if mean > 0.0 and variance > 0.0:
                chances[m] = gamma.sf(float((K * L).sum()), mean**2 / variance, scale=variance / mean)
        return chances

    def errors(self, K: FloatArray, shifts: Sequence[float] | FloatArray) -> FloatArray:
        """Mean squared errors of ridge regression with a centred K', each sample by the machine without it.

        With t = H S y and P = (K' + shift I)^-1, less u u' / shift with an intercept, u = S 1 / |S 1|,

            y_i - f_i = (P t)_i / (s_i P_ii)

        exact for the squared loss, at every shift from one set of eigenvectors.
        """
        t, u = self.root[:, None] * self.y, self.root / np.linalg.norm(self.root)
        t, trace = t - np.outer(u, u @ t) if self.fit_intercept else t, float(np.trace(K))
        if self.fit_intercept:  # u is an eigenvector of value 0: another one keeps its share of P small
            K = K + trace * np.outer(u, u)
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
            own = u**2 / (trace + shift) if self.fit_intercept else 0.0
            diagonal = np.maximum(diagonal - own, 1e-9 * diagonal)
            lost = left / diagonal[:, None]  # times the roots
            found.append(float((lost**2).sum() / self.weight.sum()))
        return np.array(found)


def _numbers(problem: Problem) -> FloatArray:
    """Targets that least squares can be told: of a loss that couples samples its residuals, -L'(0)."""
    if problem.loss.separable:
        return problem.y.reshape(len(problem.y), -1)
    return problem.alpha_of(np.zeros(problem.shape))


def _shifts(problem: Problem) -> bool:
    """Whether the loss does not see constants."""
    return bool(getattr(problem.loss, "shift_invariant", False))


def _inverse(K: FloatArray, shift: float) -> FloatArray:
    A = K.copy()
    A.flat[:: len(A) + 1] += shift
    lower = lapack.dpotri(lapack.dpotrf(A, lower=True)[0], lower=True)[0]
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


#: gives the kernels and the regulariser of a machine, from a look at its training samples
Rule = Callable[[Look], tuple[IntArray, Regularizer]]


@dataclass(frozen=True)
class Best:
    """The group of kernels whose sum has the least error on samples left out, at its best ridge.

    With more than 64 groups, only those of the largest alignment <K', t t'> / |K'| with the targets t
    are compared.
    """

    groups: tuple[IntArray, ...]

    def __call__(self, look: Look) -> tuple[IntArray, Regularizer]:
        found = []
        for group in self.groups:
            places = np.flatnonzero(np.isin(look.live, group))
            if len(places):
                K = look.centred(np.sum([look.matrices[m] for m in places], axis=0))
                found.append((_alignment(K, look.targets), look.live[places], K))
        found = sorted(found, key=lambda one: -one[0])[:MOST_KERNELS]
        errors = [look.errors(K, np.trace(K) * SHARES).min() for _, _, K in found]
        return found[int(np.argmin(errors))][1], Uniform()


def _alignment(K: FloatArray, t: FloatArray) -> float:
    return float((t * (K @ t)).sum()) / max(float(np.linalg.norm(K)), 1e-300)


@dataclass(frozen=True)
class Related:
    """An lp norm of the groups of kernels that are related to the targets.

    A group is left out where its alignments sum_ij K'_ij L'_ij with L = t t' could as well be those of
    targets in another order: the chance of as large a one, by the gamma distribution of the mean and the
    variance over all orders, times the kernels of the group, is held against 5 % for all groups together
    (Holm 1979). With `kernels`, those of the related groups that are among them.
    """

    groups: tuple[IntArray, ...]
    p: float = np.inf
    kernels: IntArray | None = None

    def ranked(self, look: Look) -> tuple[IntArray, int]:
        """Groups, the most related first, and how many of them are related."""
        own = [np.isin(look.live, group) for group in self.groups]
        some = np.array([k for k, places in enumerate(own) if places.any()], dtype=int)
        least = np.array([look.chances[own[k]].min() * own[k].sum() for k in some])
        order = np.argsort(least)
        passed = np.cumprod(least[order] * np.arange(len(some), 0, -1) <= CHANCE)
        return some[order], int(passed.sum())

    def __call__(self, look: Look) -> tuple[IntArray, Regularizer]:
        order, count = self.ranked(look)
        live = look.live[np.isin(look.live, np.concatenate([self.groups[k] for k in order[: max(count, 1)]]))]
        own = live if self.kernels is None else live[np.isin(live, self.kernels)]
        return own if len(own) else live, Uniform() if np.isinf(self.p) else LpNorm(self.p)


def doubly_centred(K: FloatArray) -> FloatArray:
    """H K H, H the projection off the constants."""
    mean = K.mean(axis=0)
    return np.asarray(K - mean - mean[:, None] + mean.mean())


def over_all_orders(K: FloatArray, L: FloatArray) -> tuple[float, float]:
    """Mean and variance of sum_ij K_ij L_s(i)s(j) over all orders s of n > 3 samples; K and L doubly centred.

    With T = tr K, T2 = sum_ij K_ij^2, S2 = sum_i K_ii^2, and those of L with a prime,

        mean     = T T' / (n - 1)
        variance = 2 ((n-1) T2 - T^2) ((n-1) T2' - T'^2) / ((n-1)^2 (n+1) (n-2))
                 + (n (n+1) S2 - (n-1) (T^2 + 2 T2)) (the same of L) / ((n+1) n (n-1) (n-2) (n-3))

    Kazi-Aoual, Hitier, Sabatier & Lebreton, Refined approximations to permutation tests for multivariate
    inference, Computational Statistics & Data Analysis 20, 1995.
    """
    n = len(K)
    if n < 4:
        return 0.0, 0.0
    parts = [(np.trace(A), (A**2).sum(), (A.diagonal() ** 2).sum()) for A in (K, L)]
    first = np.prod([(n - 1) * T2 - T**2 for T, T2, _ in parts])
    second = np.prod([n * (n + 1) * S2 - (n - 1) * (T**2 + 2 * T2) for T, T2, S2 in parts])
    variance = 2 * first / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance += second / ((n + 1.0) * n * (n - 1) * (n - 2) * (n - 3))
    return float(parts[0][0] * parts[1][0] / (n - 1)), float(variance)


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
class LargestEvidence:
    """Weights of the largest evidence of Gaussian noise (`solvers.multiple.empirical_bayes`), of sum 1."""

    def __call__(self, look: Look) -> tuple[IntArray, Regularizer]:
        evidence = GaussianEvidence(DenseGram(look.matrices), look.y, look.weight, look.fit_intercept)
        weights = EmpiricalBayes().solve(evidence, tol=EVIDENCE_TOL).state.weights
        weights = weights if weights.any() else np.ones(len(weights))
        places = np.flatnonzero(weights)
        return look.live[places], _fixed(look, weights / weights.sum(), places)


def same_dimension(look: Look) -> FloatArray:
    """Scales of the kernels at which all have the same effective dimension."""
    scales = np.array([Dimension().fit(K, look.weight).scale_ for K in look.matrices])
    return np.where(scales > 0.0, scales, 1.0)


def _fixed(look: Look, scales: FloatArray, places: IntArray) -> LpNorm:
    """The norm whose weights are the scales of some kernels."""
    costs = np.ones(look.n_kernels)
    costs[look.live[places]] = 1.0 / scales[places]
    return LpNorm(np.inf, costs=costs)
