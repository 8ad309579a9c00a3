"""Models that compete for a fit: which there are, their held-out scores, their stack, and the choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray, IntArray
from ..gram import Dictionary
from ..kernels import Linear
from ..regularizers import ElasticNet, LpNorm, Regularizer, Uniform
from ._base import Spec
from ._chain import Chain, Guide, Node
from ._mkl import SubProblem
from ._rules import Best, Even, Greedy, LargestEvidence, Look, Related, Rule
from .cross_validation import ChainSearch, held_out, outermost

#: shares of the stack below this are taken for zero
LEAST_SHARE = 0.02

#: what the family of kernels that spread over many directions is called
NARROW = "narrow kernels"

#: views up to which each is a candidate
MOST_VIEWS = 8

#: numbers that differ by no more than this share are the same
SAME = 1e-6


@dataclass(frozen=True)
class Candidate:
    """A set of kernels, and the way in which their weights are learned.

    Attributes
    ----------
    name : str
        As in "lp-norm, p = 1" or "uniform sum, rna".
    kernels : ndarray of int
    regularizer : Regularizer
    rule : Rule, optional
        Takes kernels and regulariser from the training samples, in place of the two.
    """

    name: str
    kernels: IntArray
    regularizer: Regularizer
    rule: Rule | None = None

    def made(self, look: Callable[[], Look]) -> Candidate:
        """The candidate with what its rule takes from training samples."""
        return self if self.rule is None else Candidate(self.name, *self.rule(look()))

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


def candidates(
    views: dict[str, IntArray],
    families: dict[str, IntArray],
    M: int,
    together: IntArray | None = None,
    looks: bool = True,
    evidence: bool = False,
) -> list[Candidate]:
    """Candidates from the simplest to the least simple one.

    The uniform sum of all kernels; of those of every view, and of every family; the best single kernel; the
    views (kernels, where each is its own view) that are related to the targets; learned weights, from the
    densest to the sparsest norm, of all kernels and of every family; greedy selection, and weights of the
    largest evidence.

    Parameters
    ----------
    views, families : dict
        Kernels of each view, and of each family, where there are several.
    M : int
        Kernels in all.
    together : ndarray of int, optional
        Kernels that see the columns of all views.
    looks : bool, default=True
        Whether candidates may look at matrices of their training samples.
    evidence : bool, default=False
        Whether the targets have Gaussian noise, so that evidence is defined.

    Examples
    --------
    >>> views = {"rna": np.array([0, 1]), "dna": np.array([2])}
    >>> [candidate.name for candidate in candidates(views, {}, 3)][:5]
    ['uniform sum', 'uniform sum, rna', 'dna alone', 'best single kernel', 'lp-norm, p = 2']
    """
    every = np.arange(M)
    found = [Candidate("uniform sum", every, Uniform())]
    if M == 1:
        return found
    groups = {**(views if len(views) <= MOST_VIEWS else {}), **families}
    if together is not None:
        groups["all columns together"] = together
    for name, kernels in groups.items():
        title = f"{name} alone" if len(kernels) == 1 else f"uniform sum, {name}"
        found.append(Candidate(title, kernels, Uniform()))
    if looks and len(views) > MOST_VIEWS:
        found.append(Candidate("best single view", every, Uniform(), Best(tuple(views.values()))))
    if looks:
        found.append(Candidate("best single kernel", every, Uniform(), Best(tuple(every[:, None]))))
    units = tuple(views.values()) or tuple(every[:, None])
    title = "related views" if views else "related kernels"
    if looks and len(units) > 2:
        found.append(Candidate(f"uniform sum, {title}", every, Uniform(), Related(units)))
    norms: dict[str, float] = {"p = 2": 2.0, "p = 4/3": 4 / 3, "p = 1": 1.0}
    found += [Candidate(f"lp-norm, {name}", every, LpNorm(p)) for name, p in norms.items()]
    found.append(Candidate("elastic net", every, ElasticNet()))
    if looks and len(units) > 2:
        found.append(Candidate(f"lp-norm, p = 2, {title}", every, LpNorm(2.0), Related(units, 2.0)))
    for name, kernels in groups.items():
        if (
            len(kernels) > 1 and name not in views and name != NARROW
        ):  # which are good together, or not at all
            found.append(Candidate(f"lp-norm, p = 1, {name}", kernels, LpNorm(1.0)))
    if looks:
        even = ((name, Even(norms[name], every)) for name in ("p = 2", "p = 1"))
        found += [Candidate(f"lp-norm, {name}, of one capacity", every, LpNorm(r.p), r) for name, r in even]
        found.append(Candidate("greedy selection", every, Uniform(), Greedy()))
    if looks and evidence:
        found.append(Candidate("empirical Bayes", every, Uniform(), LargestEvidence()))
    return found


def families_of(kernels: Sequence[Any], matrices: Sequence[FloatArray]) -> dict[str, IntArray]:
    """Kernels that are alike: those without a width, as linear ones, and wide and narrow ones.

    Kernels with a width, such as Gaussian ones, have k(x, x) = 1 or another number for all x. They are wide
    or narrow by how many directions they spread over, (sum_j l_j)^2 / sum_j l_j^2 with the eigenvalues l_j of
    the centred matrix, below and above the median. A family that holds all kernels is left out.
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
        NARROW: others[narrow],
    }
    return {name: some for name, some in found.items() if 0 < len(some) < len(matrices)}


def _directions(K: FloatArray) -> float:
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, None] + mean.mean()
    return float(np.trace(centred)) ** 2 / max(float((centred**2).sum()), 1e-300)


class Contest:
    """Candidates on the folds of a cross-validation: what they predict there, line by line.

    Parameters
    ----------
    candidates : list of Candidate
    specs : list of Spec
        The settings of each, at any cost.
    search : ChainSearch
    splits : list of (train, test)
    budget : float, optional
        Seconds; candidates that the time for all folds would exceed after the first are left out.
    report : callable
        Told of progress.

    Attributes
    ----------
    values : dict
        Of a candidate's number and a cost the held-out values (n_test, c) of every fold.
    seconds : ndarray of shape (n_candidates,)
    late : set of int
        Candidates that there was no time for.
    """

    def __init__(
        self,
        candidates: list[Candidate],
        specs: list[Spec],
        search: ChainSearch,
        splits: Sequence[tuple[IntArray, IntArray]],
        budget: float | None,
        report: Callable[[str], None],
    ) -> None:
        self.candidates, self.specs, self.search, self.splits = candidates, specs, search, splits
        self.budget, self.report, self.seconds = budget, report, np.zeros(len(candidates))
        self.values: dict[tuple[int, float], list[FloatArray]] = {}
        self.late: set[int] = set()
        self._made: dict[tuple[int, int], Candidate] = {}
        self._nodes: dict[tuple[int, int], list[list[Node]]] = {}
        self._guides: dict[int, list[list[Guide]]] = {}

    @property
    def over(self) -> bool:
        """Whether the time is spent."""
        return self.budget is not None and float(self.seconds.sum()) > self.budget

    def run(self, lines: dict[int, FloatArray]) -> list[int]:
        """Solve costs of candidates on every fold; those that could be, on all folds."""
        first, count = not self.values, len(self.splits)
        for k, (train, _test) in enumerate(self.splits):
            dictionary = self.search.dictionary(train)
            parts = [part.part(train) for part in self.search.setup.problems]
            look = lru_cache(1)(partial(Look.at, dictionary, self.search.setup._replace(problems=parts)))
            for j in [j for j in lines if j not in self.late]:
                if first and k == 0 and j and self.budget and float(self.seconds.sum()) * count > self.budget:
                    self.late.add(j)
                    continue
                self.report(f"fold {k + 1} of {count}: {self.candidates[j].name}")
                start = time.perf_counter()
                if (j, k) not in self._made:
                    self._made[j, k] = self.candidates[j].made(look)
                own = self._made[j, k].on(dictionary)
                solved = [] if own is None else self._solved(j, k, own, parts, lines[j])
                for C, values in zip(lines[j].tolist(), solved, strict=False):
                    self.values.setdefault((j, C), []).append(values)
                self.seconds[j] += time.perf_counter() - start
        points = [(j, float(C)) for j, Cs in lines.items() for C in Cs]
        return [j for j in lines if all(len(self.values.get(p, ())) == count for p in points if p[0] == j)]

    def _solved(
        self, j: int, k: int, own: Dictionary, parts: list[SubProblem], Cs: FloatArray
    ) -> list[FloatArray]:
        """Values of a candidate on a fold at every cost."""
        rule, given = self._made[j, k].regularizer, self.search.setup.spec.C
        specs = [replace(self.specs[j], regularizer=rule, C=float(C)) for C in Cs]
        begun = (j, k) in self._nodes
        guides = None if begun else self._guides.get(j)
        chains = [Chain(own, part, given, guides[i] if guides else None) for i, part in enumerate(parts)]
        for i, chain in enumerate(chains):
            chain.nodes += self._nodes[j, k][i] if begun else []
        lines = [chain.solve(specs) for chain in chains]
        self._nodes[j, k] = [outermost(chain.nodes) for chain in chains]
        if self.candidates[j].rule is None and not begun:
            self._guides.setdefault(j, [[Guide.of(one, own) for one in line] for line in lines])
        points, test = list(zip(*lines, strict=True)), self.search.samples(self.splits[k][1])
        return held_out(own, parts, points, test)[0]


def stack_shares(
    values: Sequence[FloatArray], targets: FloatArray, squared: bool, weight: FloatArray | None = None
) -> FloatArray:
    """Shares w >= 0 of sum 1 with the least loss of the held-out values sum_j w_j F_j.

    The squared error for regression; for classes, with targets of -1 and 1, sum max(0, 1 - t F w)^2. Samples,
    the rows of targets (n, c), count by their `weight`. A convex problem of few variables, begun at the first
    candidate.

    Examples
    --------
    >>> t = np.array([[1.0], [-1.0], [1.0]])
    >>> stack_shares([t, -t], t, squared=True).round(3)
    array([1., 0.])
    """
    F = np.array([one.ravel() for one in values])
    t = targets.ravel()
    mass = np.ones(len(t)) if weight is None else np.repeat(weight, targets[0].size)
    mass = mass / mass.sum()
    size = float(mass @ t**2) or 1.0

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        f = w @ F
        left = t - f if squared else t * np.maximum(1.0 - t * f, 0.0)
        return float(mass @ left**2) / size, -2.0 * (F @ (mass * left)) / size

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


def simplest(scores: FloatArray, losses: FloatArray | None = None, clusters: Any = None) -> int:
    """The first row that is no more than a standard error of the difference below the best row.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        From the simplest candidate on; larger is better.
    losses : ndarray of shape (n_candidates, n_tested), optional
        Weighted losses of single samples, where scores are means of them: their differences say more of the
        standard error than a few folds do.
    clusters : ndarray of int of shape (n_tested,), optional
        Samples that belong together, such as those of a group, or tested several times.

    Examples
    --------
    >>> simplest(np.array([[0.1, 0.2, 0.3], [0.9, 0.7, 0.8], [0.9, 0.8, 0.8]]))
    1
    """
    best = int(np.nanargmax(np.nanmean(scores, axis=1)))
    if losses is None:
        behind = scores[best] - scores
        error = behind.std(axis=1, ddof=1) / np.sqrt(behind.shape[1]) if behind.shape[1] > 1 else 0.0
        return int(np.flatnonzero(behind.mean(axis=1) <= error + 1e-12)[0])
    best = int(np.argmin(losses.sum(axis=1)))
    behind = losses - losses[best]
    own = np.arange(losses.shape[1]) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sums = np.array([np.bincount(own, row) for row in behind])
    error = sums.std(axis=1, ddof=1) * np.sqrt(sums.shape[1])
    return int(np.flatnonzero(behind.sum(axis=1) <= error + 1e-12)[0])
