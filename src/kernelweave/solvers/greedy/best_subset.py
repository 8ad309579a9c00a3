"""The best set of kernels of a given size, by branch and bound, to compare greedy selection with."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from numbers import Integral
from typing import NamedTuple

import numpy as np

from ..._typing import FloatArray
from .dictionary import FactorDictionary
from .refit import Fit, GreedyTask, refit_for

#: most fits that a node may spend on its lower bound
BOUND_STEPS = 4

#: relative difference of objectives that counts as none
CLOSED = 1e-6


@dataclass(frozen=True)
class BestSubset:
    """The best set of kernels found, and what is proved about it.

    Attributes
    ----------
    kernels : tuple of int
    objective : float
        J of `kernels`.
    lower_bound : float
        No set of that size has a smaller J.
    start : tuple of int
        The set that was compared with the optimum, such as a greedy one.
    start_objective : float
    n_nodes : int
        Nodes of the search tree whose bound was computed.
    exact : bool
        Whether `kernels` is proved optimal (to a relative 1e-6).
    """

    kernels: tuple[int, ...]
    objective: float
    lower_bound: float
    start: tuple[int, ...]
    start_objective: float
    n_nodes: int
    exact: bool

    @property
    def gap(self) -> float:
        """Relative distance of the start from the optimum, at most: (J(start) - lower bound) / J(start)."""
        return max(self.start_objective - self.lower_bound, 0.0) / max(abs(self.start_objective), 1e-300)


def best_subset(
    dictionary: FactorDictionary,
    task: GreedyTask,
    n_kernels: int,
    start: Sequence[int] | None = None,
    max_nodes: int = 10_000,
) -> BestSubset:
    """The set of `n_kernels` kernels with the smallest objective J, by branch and bound.

    J(d), the objective with kernel weights d, is convex and falls when kernels are added. A node of the
    search tree has kernels that are in and kernels that are undecided. The J of all of them bounds the sets
    below the node from below; dual variables of any weights d give a sharper bound,

        level - lambda ( sum_{m in} a'K_m a + sum of the largest a'K_m a among the undecided )

    computed here at weights d that first share what is left evenly among the undecided kernels, and then move
    towards those with the largest a'K_m a (Frank-Wolfe steps on the relaxation 0 <= d <= 1, sum d =
    n_kernels).

    Parameters
    ----------
    dictionary : FactorDictionary
    task : GreedyTask
    n_kernels : int
        Size of the sets.
    start : sequence of int, optional
        A set to compare with the optimum and to start from; by default the set that the first bound suggests.
    max_nodes : int, default=10000
        Number of nodes after which the search ends with what is proved so far.

    Returns
    -------
    result : BestSubset

    Examples
    --------
    >>> from kernelweave.gram import FeatureSource
    >>> from kernelweave.kernels import Linear
    >>> from kernelweave.losses import Squared
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> X[:, 2] += X[:, 0] + X[:, 1]  # nearly the target, so greedy selection takes it first
    >>> task = GreedyTask(X[:, [0]] + X[:, [1]], np.ones(50), Squared(), ridge=0.01)
    >>> source = FeatureSource([(f"x{j}", Linear(columns=[j])) for j in range(4)], X)
    >>> dictionary = FactorDictionary(source, "variance", task.weight, True, task.shift)
    >>> result = best_subset(dictionary, task, 2, start=(2, 0))
    >>> result.kernels, result.exact, result.gap > 0.5
    ((0, 1), True, True)
    """
    if not (isinstance(n_kernels, Integral) and 1 <= n_kernels <= len(dictionary.live)):
        raise ValueError(f"n_kernels={n_kernels!r} must be an integer from 1 to {len(dictionary.live)}.")
    if start is not None and len(set(start)) != n_kernels:
        raise ValueError(f"start={tuple(start)!r} must hold {n_kernels} different kernels.")
    search = _Search(dictionary, task, int(n_kernels))
    return search.run(start, max_nodes)


class _Node(NamedTuple):
    inside: tuple[int, ...]  # decided to be in
    open: tuple[int, ...]  # undecided
    branch: int  # the undecided kernel to decide next


@dataclass
class _Search:
    dictionary: FactorDictionary
    task: GreedyTask
    size: int
    best: tuple[int, ...] = ()
    objective: float = np.inf
    n_nodes: int = 0
    queue: list[tuple[float, int, _Node]] = field(default_factory=list)

    def run(self, start: Sequence[int] | None, max_nodes: int) -> BestSubset:
        self._number = count()
        if start is not None:
            self._try(tuple(int(m) for m in start))
        self._push((), tuple(int(m) for m in self.dictionary.live))
        first = (self.best, self.objective) if start is None else (tuple(map(int, start)), self._value(start))
        while self.queue and self.queue[0][0] < self._target() and self.n_nodes < max_nodes:
            node = heapq.heappop(self.queue)[2]
            rest = tuple(m for m in node.open if m != node.branch)
            self._push((*node.inside, node.branch), rest)
            self._push(node.inside, rest)
        exact = not self.queue or self.queue[0][0] >= self._target()
        bound = self.objective if exact else min(self.queue[0][0], self.objective)
        return BestSubset(self.best, self.objective, bound, *first, self.n_nodes, exact)

    def _target(self) -> float:
        """The bound from which on nodes cannot lead to a noticeably better set."""
        return self.objective - CLOSED * abs(self.objective)

    def _push(self, inside: tuple[int, ...], undecided: tuple[int, ...]) -> None:
        """Bound a node; queue it unless it holds a single set, or no better set."""
        wanted = self.size - len(inside)
        if wanted < 0 or wanted > len(undecided):
            return
        if wanted in (0, len(undecided)):
            self._try(inside if wanted == 0 else inside + undecided)
            return
        self.n_nodes += 1
        bound, branch = self._bound(inside, undecided, wanted)
        if bound < self._target():
            heapq.heappush(self.queue, (bound, next(self._number), _Node(inside, undecided, branch)))

    def _bound(self, inside: tuple[int, ...], undecided: tuple[int, ...], wanted: int) -> tuple[float, int]:
        """A lower bound on J of all sets of a node, and the kernel to branch on."""
        weights, bound, branch = np.full(len(undecided), wanted / len(undecided)), -np.inf, undecided[0]
        for step in range(BOUND_STEPS):
            fit = self._fit(inside, undecided, weights)
            energies = self.task.ridge * self.dictionary.quads(fit.scaled_alpha, np.array(inside + undecided))
            of_open = energies[len(inside) :]
            top = np.argsort(-of_open, kind="stable")[:wanted]
            value = fit.level - energies[: len(inside)].sum() - of_open[top].sum()
            if value > bound:
                bound, branch = float(value), undecided[top[0]]
            if step == 0:
                self._try(inside + tuple(undecided[k] for k in top))
            if bound >= self._target():
                break
            vertex = np.zeros(len(undecided))
            vertex[top] = 1.0
            weights += 2.0 / (step + 3.0) * (vertex - weights)
        return bound, branch

    def _fit(self, inside: tuple[int, ...], undecided: tuple[int, ...], weights: FloatArray) -> Fit:
        refit = refit_for(self.dictionary, self.task)
        for m in inside:
            refit.add(m)
        for m, weight in zip(undecided, weights, strict=True):
            if weight > 0.0:
                refit.add(m, float(weight))
        return refit.fit()

    def _value(self, kernels: Sequence[int]) -> float:
        return refit_for(self.dictionary, self.task).with_kernels(list(kernels)).fit().objective

    def _try(self, kernels: tuple[int, ...]) -> None:
        value = self._value(kernels)
        if value < self.objective:
            self.best, self.objective = tuple(sorted(kernels)), value
