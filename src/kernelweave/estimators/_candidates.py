"""Models that compete for a fit: which there are, their held-out scores, their stack, and the choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray, IntArray
from ..gram import Dictionary
from ..kernels import Linear
from ..regularizers import ElasticNet, LpNorm, Regularizer, Uniform
from ..solvers.run import Result
from ._base import Spec
from ._chain import Chain, Guide
from ._mkl import Setup

#: shares of the stack below this are taken for zero
LEAST_SHARE = 0.02

#: numbers that differ by no more than this share are the same
SAME = 1e-6


@dataclass(frozen=True)
class Candidate:
    """A set of kernels, and how their weights are learned.

    Attributes
    ----------
    name : str
        As in "p = 1" or "uniform sum of rna".
    kernels : ndarray of int
    regularizer : Regularizer
    """

    name: str
    kernels: IntArray
    regularizer: Regularizer

    def on(self, dictionary: Dictionary) -> Dictionary | None:
        """The kernels of a dictionary that are its own; None where none of them varies."""
        places = np.flatnonzero(np.isin(dictionary.live, self.kernels))
        if len(places) == 0:
            return None
        if len(places) == len(dictionary.live):
            return dictionary
        part = copy(dictionary)
        part.gram, part.live = dictionary.gram.subset(kernels=places), dictionary.live[places]
        return part

    def solve(
        self, dictionary: Dictionary, setup: Setup, chain: Sequence[Spec], guides: Any = None
    ) -> list[list[Result]]:
        """Solutions of every problem of a fit at every point."""
        return [
            Chain(dictionary, part, setup.spec.C, guides and guides[k]).solve(chain)
            for k, part in enumerate(setup.problems)
        ]


def candidates(groups: dict[str, IntArray], families: dict[str, IntArray], M: int) -> list[Candidate]:
    """Candidates from the simplest to the least simple one.

    The uniform sum of all kernels; of those of every view, and of every family; learned weights, from the
    densest to the sparsest norm, of all kernels and of every family.

    Parameters
    ----------
    groups, families : dict
        Kernels of each view, and of each family, where there are several.
    M : int
        Kernels in all.

    Examples
    --------
    >>> views = {"rna": np.array([0, 1]), "dna": np.array([2])}
    >>> [candidate.name for candidate in candidates(views, {}, 3)][:4]
    ['uniform sum', 'uniform sum of rna', 'dna alone', 'p = 2']
    """
    every = np.arange(M)
    found = [Candidate("uniform sum", every, Uniform())]
    for name, kernels in {**groups, **families}.items():
        title = f"{name} alone" if len(kernels) == 1 else f"uniform sum of {name}"
        found.append(Candidate(title, kernels, Uniform()))
    if M == 1:
        return found[:1]
    rules: dict[str, Regularizer] = {"p = 2": LpNorm(2.0), "p = 4/3": LpNorm(4 / 3), "p = 1": LpNorm(1.0)}
    found += [Candidate(name, every, rule) for name, rule in rules.items()]
    found.append(Candidate("elastic net", every, ElasticNet()))
    for name, kernels in families.items():
        if len(kernels) > 1:
            found += [Candidate(f"{rule} of {name}", kernels, rules[rule]) for rule in ("p = 2", "p = 1")]
    return found


def families_of(kernels: Sequence[Any], matrices: Sequence[FloatArray]) -> dict[str, IntArray]:
    """Kernels that are alike: those without a width, as linear ones, and wide and narrow ones.

    Kernels with a width, such as Gaussian ones, have k(x, x) = 1 or another number for all x. They are wide
    or narrow by how many directions they spread over, (sum_j l_j)^2 / sum_j l_j^2 with the eigenvalues l_j of
    the centred matrix, below and above the median. Families that are all of the kernels are none.
    """
    diagonals = [K.diagonal() for K in matrices]
    flat = np.array([np.ptp(d) <= SAME * np.abs(d).max(initial=0.0) for d in diagonals], dtype=bool)
    plain, others = np.flatnonzero(~flat), np.flatnonzero(flat)
    spread = np.array([_directions(matrices[int(m)]) for m in others])
    narrow = spread > np.median(spread) * (1.0 + SAME) if len(others) else np.zeros(0, dtype=bool)
    linear = all(isinstance(kernels[int(m)], Linear) for m in plain)
    found = {
        "linear kernels" if linear else "kernels without a width": plain,
        "wide kernels": others[~narrow],
        "narrow kernels": others[narrow],
    }
    return {name: some for name, some in found.items() if 0 < len(some) < len(matrices)}


def _directions(K: FloatArray) -> float:
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, None] + mean.mean()
    return float(np.trace(centred)) ** 2 / max(float((centred**2).sum()), 1e-300)


def held_out(
    found: Sequence[Candidate],
    chains: Sequence[Sequence[Spec]],
    fold: Callable[[int], tuple[Dictionary, Setup, Callable[..., list[FloatArray]]]],
    n_folds: int,
    budget: float | None,
    report: Callable[[str], None],
) -> tuple[list[list[list[FloatArray]]], FloatArray]:
    """Values of candidates on every fold at every point of their chains, and the seconds each took.

    With a budget, candidates that the time for all folds would exceed after the first are left out: the list
    is as long as the candidates that fit.
    """
    values: list[list[list[FloatArray]]] = []
    seconds, guides = np.zeros(len(found)), dict[int, Any]()
    for k in range(n_folds):
        dictionary, setup, evaluate = fold(k)
        row: list[list[FloatArray]] = []
        for j, (candidate, chain) in enumerate(zip(found, chains, strict=True)):
            spent = float(seconds.sum())
            if k == 0 and j > 0 and budget is not None and spent * n_folds > budget:
                found, chains = found[:j], chains[:j]
                break
            report(f"fold {k + 1} of {n_folds}: {candidate.name}")
            start, own = time.perf_counter(), candidate.on(dictionary)
            if own is None:
                row.append([])
                continue
            lines = candidate.solve(own, setup, chain, guides.get(j))
            guides.setdefault(j, [[Guide.of(one, own) for one in line] for line in lines])
            row.append(evaluate(own, setup, list(zip(*lines, strict=True))))
            seconds[j] += time.perf_counter() - start
        values.append(row)
    return values, seconds[: len(found)]


def stack_shares(values: Sequence[FloatArray], targets: FloatArray, squared: bool) -> FloatArray:
    """Shares w >= 0 of sum 1 with the least loss of the held-out values sum_j w_j F_j.

    The squared error for regression; for classes, with targets of -1 and 1, sum max(0, 1 - t F w)^2. A convex
    problem of few variables, begun at the first candidate.

    Examples
    --------
    >>> t = np.array([[1.0], [-1.0], [1.0]])
    >>> stack_shares([t, -t], t, squared=True).round(3)
    array([1., 0.])
    """
    F = np.array([one.ravel() for one in values])
    t = targets.ravel()
    size = float(np.mean(t**2)) or 1.0

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        f = w @ F
        left = t - f if squared else t * np.maximum(1.0 - t * f, 0.0)
        return float(np.mean(left**2)) / size, -2.0 * (F @ left) / (len(t) * size)

    start = np.zeros(len(F))
    start[0] = 1.0
    total = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones_like(w)}
    options = {"maxiter": 200, "ftol": 1e-9}
    best = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(F),
        constraints=[total],
        options=options,
    )
    shares = np.where(best.x >= LEAST_SHARE, best.x, 0.0)
    return np.asarray(shares / shares.sum()) if shares.any() else start


def simplest(scores: FloatArray) -> int:
    """The first row that is no more than a standard error of the difference below the best row.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        From the simplest candidate on; larger is better.

    Examples
    --------
    >>> simplest(np.array([[0.1, 0.2, 0.3], [0.9, 0.7, 0.8], [0.9, 0.8, 0.8]]))
    1
    """
    best = int(np.nanargmax(np.nanmean(scores, axis=1)))
    behind = scores[best] - scores
    error = behind.std(axis=1, ddof=1) / np.sqrt(behind.shape[1]) if behind.shape[1] > 1 else 0.0
    return int(np.flatnonzero(behind.mean(axis=1) <= error + 1e-12)[0])
