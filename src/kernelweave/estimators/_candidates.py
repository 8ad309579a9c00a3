"""Models that compete for a fit: which there are, and what they predict for held-out samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..gram import Dictionary
from ..kernels import Linear
from ..regularizers import ElasticNet, LpNorm, Regularizer, Uniform
from ._base import Spec
from ._chain import Chain, Guide, Node
from ._mkl import SubProblem
from ._rules import Best, Greedy, LargestEvidence, Look, Related, Rule
from .cross_validation import ChainSearch, held_out, outermost

#: what the families of kernels without a width, and of those that spread over few and over many directions,
#: are called
LINEAR, PLAIN, WIDE, NARROW = "linear kernels", "kernels without a width", "wide kernels", "narrow kernels"

#: what kernels that see all columns of a view, and those that see the columns of all views, are called
WHOLE, TOGETHER = "whole views", "all columns together"

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
    looks: bool = True,
    evidence: bool = False,
    variants: bool = True,
    related: Sequence[str] = (),
    smooth: bool = False,
) -> list[Candidate]:
    """Candidates from the simplest to the least simple one.

    The uniform sum of all kernels; of those of every view, and of every family; the best single kernel; the
    views (kernels, where each is its own view) that are related to the targets; learned weights, from the
    densest to the sparsest norm, of all kernels, of those of whole views, and of families; greedy selection,
    and weights of the largest evidence.

    Parameters
    ----------
    views, families : dict
        Kernels of each view, and of each family, where there are several.
    M : int
        Kernels in all.
    looks : bool, default=True
        Whether candidates may look at matrices of their training samples.
    evidence : bool, default=False
        Whether the targets have Gaussian noise, so that evidence is defined.
    variants : bool, default=True
        Whether those that vary others are there, too: without them single kernels, the elastic net, learned
        weights of related views, and greedy selection are left out.
    related : sequence of str, optional
        The views that are related to the targets, the most related first, where others are not: of many
        views these are candidates, and the uniform sums of families and the norms of whole views are also
        those of the views that are related on the training samples.
    smooth : bool, default=False
        Whether targets may be smooth, so that the kernels without a width of a view are better alone than
        summed with those that fit anything.

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
    units = tuple(views.values()) or tuple(every[:, None])
    title = "related views" if views else "related kernels"
    listed = list(views) if len(views) <= MOST_VIEWS else related[:MOST_VIEWS]
    own = {name: views[name] for name in listed}
    plain = _plain(own, families) if smooth else {}
    groups = {**own, **plain, **families}
    for name, kernels in groups.items():
        alone = f"{name} alone" if len(kernels) == 1 else f"uniform sum, {name}"
        found.append(Candidate(alone, kernels, Uniform()))
    if looks and len(views) > MOST_VIEWS and not related:
        found.append(Candidate("best single view", every, Uniform(), Best(tuple(views.values()))))
    if looks and variants:
        found.append(Candidate("best single kernel", every, Uniform(), Best(tuple(every[:, None]))))
    if looks and len(units) > 2:
        found.append(Candidate(f"uniform sum, {title}", every, Uniform(), Related(units)))
    for name, some in families.items() if related else ():
        if TOGETHER not in name:
            rule = Related(units, np.inf, some)
            found.append(Candidate(f"uniform sum, {name}, {title}", some, Uniform(), rule))
    norms: dict[str, float] = {"p = 2": 2.0, "p = 4/3": 4 / 3, "p = 1": 1.0}
    found += [Candidate(f"lp-norm, {name}", every, LpNorm(p)) for name, p in norms.items()]
    if not variants:
        return found
    if WHOLE in families:
        some, end = families[WHOLE], f", {title}" if related else ""
        found += [
            Candidate(
                f"lp-norm, {name}, {WHOLE}{end}", some, LpNorm(p), Related(units, p, some) if end else None
            )
            for name, p in norms.items()
        ]
    found.append(Candidate("elastic net", every, ElasticNet()))
    if looks and len(units) > 2:
        found.append(Candidate(f"lp-norm, p = 2, {title}", every, LpNorm(2.0), Related(units, 2.0)))
    # good together, or not at all
    dense = {*views, *plain, WHOLE, WIDE, NARROW, TOGETHER}
    for name, kernels in groups.items():
        if len(kernels) > 1 and name not in dense:
            found.append(Candidate(f"lp-norm, p = 1, {name}", kernels, LpNorm(1.0)))
    if looks:
        found.append(Candidate("greedy selection", every, Uniform(), Greedy()))
    if looks and evidence:
        found.append(Candidate("empirical Bayes", every, Uniform(), LargestEvidence()))
    return found


def _plain(views: dict[str, IntArray], families: dict[str, IntArray]) -> dict[str, IntArray]:
    """Of views that have others, too, the kernels without a width."""
    title, some = next(((name, families[name]) for name in (LINEAR, PLAIN) if name in families), ("", ()))
    parts = {name: np.intersect1d(kernels, some) for name, kernels in views.items()}
    return {f"{title}, {name}": part for name, part in parts.items() if 0 < len(part) < len(views[name])}


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
        LINEAR if linear else PLAIN: plain,
        WIDE: others[~narrow],
        NARROW: others[narrow],
    }
    return {name: some for name, some in found.items() if 0 < len(some) < len(matrices)}


def reaches_of(
    widths: IntArray, views: Sequence[str], across: Any, linear: Any, measured: Any
) -> dict[str, IntArray]:
    """Kernels by the columns they see: those of all views together, the linear ones of these, whole views.

    Single columns of a view that other kernels see whole would be most of a uniform sum, and so would not
    say what all columns of a view say together.

    Parameters
    ----------
    widths : ndarray of int of shape (M,)
        Columns that each kernel sees.
    views : sequence of str
        The view of each.
    across, linear, measured : ndarray of bool of shape (M,)
        Whether a kernel sees the columns of all views, whether it is linear, and in the units of the columns.

    Examples
    --------
    >>> no = np.zeros(4, dtype=bool)
    >>> reaches_of(np.array([3, 3, 1, 1]), ["a"] * 4, no, no, no)
    {'whole views': array([0, 1])}
    """
    own = np.array(views)
    most = {name: widths[(own == name) & ~across].max(initial=0) for name in views}
    whole = ~across & (widths == np.array([most[name] for name in views]))
    found = {
        TOGETHER: np.flatnonzero(across),
        f"linear, {TOGETHER}": np.flatnonzero(across & linear & ~measured),
        f"linear, {TOGETHER}, as measured": np.flatnonzero(across & linear & measured),
        WHOLE: np.flatnonzero(whole),
    }
    return {name: some for name, some in found.items() if 0 < len(some) < len(views)}


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
