"""Conformal prediction: how far held-out samples were from their predictions says what to expect of new ones.

Every held-out sample i has a score s_i under the function of the fold k(i) that was trained without it, and a
new sample with a target y has one under each of these functions. With n scores,

    p(x, y) = (1 + #{i : s_i >= s_k(i)(x, y)}) / (n + 1)

is small for targets that are stranger than nearly all held-out samples; the targets with p > 1 - coverage are
the answer (Vovk 2015: cross-conformal prediction). With one fold this is split conformal prediction; with
samples left out one by one it is the jackknife+.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from .._warnings import warn
from ..gram import Gram, KernelSource, Predictor
from ..gram.missing.sources import spread_rule
from ..gram.terms import checked, kernel_terms
from ..kernels import Normalization
from ..solvers import Problem
from ..solvers.leave_one_out import _bordered_inverse

#: numbers of a block of new samples, each with all scores
BLOCK = 1 << 22

#: coefficients of the functions without each sample: of one output, 2000 samples
MOST_COEFFICIENTS = 4_000_000


class FoldFunctions(NamedTuple):
    """The J functions that a fold has learned at a point of the grid: f_j = sum_m weights[j, m] K_m alpha_j.

    Attributes
    ----------
    rows : ndarray of int
        The training samples.
    rules : sequence of Normalization
        Of the kernels, fitted on them.
    weights : ndarray of shape (J, M)
    alpha : ndarray of shape (n_rows, J)
    intercept : ndarray of shape (J,)
    """

    rows: IntArray
    rules: Sequence[Normalization]
    weights: FloatArray
    alpha: FloatArray
    intercept: FloatArray


def joint_predictor(source: KernelSource, parts: Sequence[FoldFunctions], device: str | None) -> Predictor:
    """The functions of all folds as one predictor of the samples of all of them, fold by fold.

    Where kernels are only scaled, the scales of a fold join its weights, and new samples meet every kernel
    once; where they are centred, once for every fold.
    """
    sizes = [len(part.intercept) for part in parts]
    ends = np.cumsum(sizes)
    alpha = np.zeros((source.n_samples, ends[-1]))
    weights = np.vstack([part.weights for part in parts])
    places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    for part, place in zip(parts, places, strict=True):
        alpha[part.rows, place] = part.alpha
    if not any(rule.per_sample for rule in parts[0].rules):
        scales = [np.tile([rule.scale_ for rule in part.rules], (len(part.intercept), 1)) for part in parts]
        terms = kernel_terms(
            source, [_unit(rule) for rule in parts[0].rules], weights * np.vstack(scales), alpha
        )
    else:
        terms = []
        for part, place in zip(parts, places, strict=True):
            own = np.zeros_like(weights)
            own[place] = part.weights
            rules = [spread_rule(rule, part.rows, source.n_samples) for rule in part.rules]
            terms += kernel_terms(source, rules, own, alpha)
    return Predictor.of(
        source, terms, alpha, np.concatenate([part.intercept for part in parts]), device=device
    )


def _unit(rule: Normalization) -> Normalization:
    rule = copy(rule)
    rule.scale_ = 1.0
    return rule


def without_each(problem: Problem, gram: Gram, weights: FloatArray, alpha: FloatArray, b: FloatArray) -> Any:
    """Coefficients and intercepts of the least-squares machines without each sample, at the same weights.

    With M = sum_m d_m K_m + diag(1 / C_i), bordered by ones for the intercept, and N its inverse,

        (alpha, b)^(-i) = (alpha, b) - N_:i alpha_i / N_ii,

    whose entry i is 0: the solution without sample i.

    Parameters
    ----------
    problem : Problem
        Of c outputs, of the squared loss.
    gram : Gram
    weights : ndarray of shape (M,)
    alpha : ndarray of shape (n, c)
    b : ndarray of shape (c,)

    Returns
    -------
    alphas : ndarray of shape (n, n, c)
        alphas[:, i] are those without sample i.
    intercepts : ndarray of shape (n, c)
    """
    n, K = len(alpha), np.asarray(gram.combine(weights), dtype=np.float64)
    alphas, intercepts = np.empty((n, *alpha.shape)), np.tile(b, (n, 1))
    costs, groups = np.unique(np.broadcast_to(problem.C, alpha.shape), axis=1, return_inverse=True)
    for g, cost in enumerate(costs.T):
        N, columns = _bordered_inverse(K, 1.0 / cost, problem.fit_intercept), np.flatnonzero(groups == g)
        N = N / np.diagonal(N)
        alphas[:, :, columns] = alpha[:, None, columns] - N[:n, :n, None] * alpha[None, :, columns]
        if problem.fit_intercept:
            intercepts[:, columns] -= N[n, :n, None] * alpha[:, columns]
    return alphas, intercepts


# -- answers ----------------------------------------------------------------------------------------


class Calibration(NamedTuple):
    """What is known of the samples held out, one entry for each time that a sample was.

    Attributes
    ----------
    fold : ndarray of int
        Whose function predicted it.
    score : ndarray of shape (P,) or (P, n_outputs)
        How far it was from its prediction.
    weight : ndarray of shape (P,)
        Of mean 1 over the samples, and of sum the number of samples.
    label : ndarray of int or None
        Its class, of classifications.
    """

    fold: IntArray
    score: FloatArray
    weight: FloatArray
    label: IntArray | None

    @classmethod
    def of(
        cls, tests: Sequence[IntArray], scores: FloatArray, weight: FloatArray, labels: Any = None
    ) -> Calibration:
        """Of the test samples of every fold; a sample that is in several counts as one."""
        rows = np.concatenate(tests)
        fold = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
        own = weight[rows] / np.bincount(rows)[rows]
        own = own * (len(np.unique(rows)) / own.sum())
        return cls(fold, scores, own, None if labels is None else labels[rows])

    def fits(self, n_folds: int, classifies: bool) -> bool:
        """Whether it is what a fit makes, of so many folds."""
        try:
            n = len(checked(self.fold, "i", (None,)))
            checked(self.score, "f", (n,) if classifies else (n, None))
            checked(self.weight, "f", (n,))
            if classifies:
                checked(self.label, "i", (n,))
        except ValueError:
            return False
        return n > 0 and bool(0 <= self.fold.min() <= self.fold.max() < n_folds)


def check_coverage(coverage: Any) -> float:
    """A number between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, Real) or not 0.0 < float(coverage) < 1.0:
        raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9.")
    return float(coverage)


def intervals(values: FloatArray, known: Calibration, coverage: float) -> FloatArray:
    """Intervals (n, c, 2) around the predictions (n, n_folds, c) of every fold.

    With k(i) the fold of sample i and R_i how far it was from its prediction, the ends are the
    ceil(coverage (n + 1))-th smallest of f_k(i)(x) + R_i, and the as many-th largest of f_k(i)(x) - R_i
    (Barber, Candes, Ramdas & Tibshirani 2021, CV+ and jackknife+).

    Examples
    --------
    One fold, and residuals of 1, 2, ..., 9:

    >>> known = Calibration(np.zeros(9, int), np.arange(1.0, 10.0)[:, None], np.ones(9), None)
    >>> intervals(np.array([[[5.0]]]), known, 0.8)
    array([[[-3., 13.]]])
    """
    n, _, c = values.shape
    out, step = np.empty((n, c, 2)), max(1, BLOCK // len(known.fold))
    for start in range(0, n, step):
        for k in range(c):
            rows = slice(start, start + step)
            centres, apart = values[rows, :, k][:, known.fold], known.score[:, k]
            out[rows, k, 1] = _order_statistic(centres + apart, known.weight, coverage)
            out[rows, k, 0] = -_order_statistic(apart - centres, known.weight, coverage)
    if not np.isfinite(out).all():
        warn(
            f"coverage={coverage:g} takes more than the {known.weight.sum():.0f} samples that were held out: "
            "intervals are infinite. Ask for less, or fit on more samples."
        )
    return out


def _order_statistic(values: FloatArray, weight: FloatArray, coverage: float) -> FloatArray:
    """The smallest number in each row that values of weight coverage (n + 1) do not exceed; or infinity."""
    needed = coverage * (weight.sum() + 1.0) * (1.0 - 1e-12)
    if needed > weight.sum():
        return np.full(len(values), np.inf)
    if np.ptp(weight) == 0.0:
        place = int(np.ceil(needed / weight[0])) - 1
        return np.asarray(np.partition(values, place, axis=1)[:, place])
    order = np.argsort(values, axis=1)
    place = (np.cumsum(weight[order], axis=1) < needed).sum(axis=1)
    place = order[np.arange(len(values)), np.minimum(place, len(weight) - 1)]
    return np.asarray(values[np.arange(len(values)), place])


def strangeness(values: FloatArray) -> FloatArray:
    """How far every class is behind the best other one: s(x, y) = max_(y' != y) f_y'(x) - f_y(x).

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, n_classes)
        Decision values; of two classes those of the second.

    Examples
    --------
    >>> strangeness(np.array([[1.0, 3.0, 2.0]]))
    array([[ 2., -1.,  1.]])
    """
    if values.ndim == 1:
        return np.column_stack([values, -values])
    two = np.sort(values, axis=1)[:, -2:]
    best = np.where(values.argmax(axis=1)[:, None] == np.arange(values.shape[1]), two[:, :1], two[:, 1:])
    return np.asarray(best - values)


def label_sets(
    scores: Callable[[int], FloatArray], n: int, known: Calibration, coverage: float, by_class: bool
) -> BoolArray:
    """Which classes are in the set of each of n new samples, (n, n_classes).

    Parameters
    ----------
    scores : callable
        Of a fold, those of the new samples and all classes (n, n_classes) by its functions.
    n : int
    known : Calibration
    coverage : float
    by_class : bool
        Whether a class is compared with the samples of that class only (Vovk 2012: Mondrian).
    """
    assert known.label is not None
    as_strange: Any = 0.0
    for fold in np.unique(known.fold):
        of_new, own = scores(int(fold)), np.flatnonzero(known.fold == fold)
        own = own[np.argsort(known.score[own])]
        counted = np.zeros_like(of_new)
        for y in range(of_new.shape[1]):
            same = own[known.label[own] == y] if by_class else own
            after = np.append(np.cumsum(known.weight[same][::-1])[::-1], 0.0)
            counted[:, y] = after[np.searchsorted(known.score[same], of_new[:, y])]
        as_strange = as_strange + counted
    total = np.array([known.weight[known.label == y].sum() for y in range(as_strange.shape[1])])
    total = total if by_class else total.sum()
    return np.asarray((1.0 + as_strange) * (1.0 - 1e-12) > (1.0 - coverage) * (total + 1.0))
