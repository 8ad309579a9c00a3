"""Solutions along a path of costs, within the span of those at a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..gram import Gram
from ..gram.lowrank import LowRankGram
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import State
from ..solvers.multiple import choose_solver
from ..solvers.run import Result
from ..solvers.single import choose_single, machine_for
from ..solvers.span import Span
from ._base import Spec

#: where the first machines are trained, in quarters of the path
FIRST_PLACES = (2, 1, 3, 0, 4)

#: machines trained at a point before the solver is asked
MOST_MACHINES = 3

#: share of the tolerance left to the problem within the span
SHARE = 0.3

#: entries of K_m alpha of all kernels up to which they are kept
MOST_ENTRIES = 10_000_000


class Spanned:
    """Solves a problem of the squared loss at all costs together, with as few machines as it takes.

    A machine is trained at a few costs, and every point is solved within the `Span` of what they found: its
    gap is that of a fit of its own, and takes no pass over the kernels. Points that are farthest from all
    machines come first; where that leaves a gap open the next machine is trained, at the weights found there.
    What machines do not close, the solver does.

    Parameters
    ----------
    problem : Problem
    gram : Gram
    regularizer : Regularizer
    points : sequence of Spec
        From small to large costs, or the other way.
    C : float
        The cost of `problem`.
    """

    def __init__(
        self, problem: Problem, gram: Gram, regularizer: Regularizer, points: Sequence[Spec], C: Any
    ) -> None:
        self.gram, self.rule, self.points, self.span = gram, regularizer, points, Span(problem, gram)
        self.factors = [point.C / C for point in points]
        self.states: list[State | None] = [None] * len(points)
        self.machines = np.zeros(len(points), dtype=int)
        self.norms: Sequence[FloatArray] | None = None

    @staticmethod
    def serves(problem: Problem, gram: Gram, regularizer: Regularizer, point: Spec) -> bool:
        """Whether solutions at these costs span one another, and the solver is the choice of the library."""
        quadratic = bool(getattr(problem.loss, "quadratic", False)) and point.solver == "auto"
        exact = not (gram.rounds or gram.conditional or isinstance(gram, LowRankGram))
        small = gram.n_kernels * problem.y.size <= MOST_ENTRIES
        return quadratic and exact and small and regularizer.priced and not regularizer.ascends

    def solve(self, norms: Sequence[FloatArray] | None, machines: Sequence[int]) -> list[Result]:
        """Solutions at every point.

        Parameters
        ----------
        norms : sequence of ndarray of shape (M,) or None
            Component norms of a similar problem at every point.
        machines : sequence of int
            How many machines that one took there.
        """
        self.norms = norms
        for place in self._first() if norms is None else np.flatnonzero(machines).tolist():
            if norms is not None or not self._closes(place):
                self._widen(place, self._known_norms(place))
        results: list[Any] = [None] * len(self.points)
        left = list(range(len(self.points)))
        while left:
            place = self._farthest(left)
            if not self._closes(place):
                if self.machines[place] < MOST_MACHINES and self.span.size:
                    self._widen(place, self._known_norms(place))
                    continue
                results[place] = self._solved(place)
            left.remove(place)
        return [self._result(place) if found is None else found for place, found in enumerate(results)]

    def _first(self) -> list[int]:
        """Where the first machines are trained."""
        return list(dict.fromkeys((len(self.points) - 1) * quarter // 4 for quarter in FIRST_PLACES))

    def _farthest(self, places: list[int]) -> int:
        """That of some points which is farthest from all machines."""
        trained = np.flatnonzero(self.machines)
        return max(places, key=lambda place: int(np.abs(trained - place).min(initial=len(self.points))))

    def _known_norms(self, place: int) -> FloatArray:
        """Component norms found here, of the similar problem, or at the nearest point; else equal ones."""
        known = [k for k, state in enumerate(self.states) if state is not None]
        norms: FloatArray = np.ones(self.gram.n_kernels)
        if self.norms is not None and self.states[place] is None:
            norms = self.norms[place]
        elif known:
            state: Any = self.states[min(known, key=lambda k: abs(k - place))]
            norms = state.certificate.norms
        return norms if norms.any() else np.ones(len(norms))

    def _closes(self, place: int) -> bool:
        """Whether the best within the span closes the gap of a point."""
        if self.span.size == 0:
            return False
        solver, tol, norms = (
            choose_solver("auto", self.rule),
            self.points[place].tol,
            self._known_norms(place),
        )
        norms = norms if self.rule.sparse else np.maximum(norms, 1e-3 * norms.max())
        state = self.span.best(self.factors[place], self.rule, solver, SHARE * tol, norms)
        self.states[place] = state
        return state.residual <= tol

    def _widen(self, place: int, norms: FloatArray) -> None:
        """Train a machine at a point, at the weights of these norms."""
        problem, K = (
            self.span.problem.at_cost(self.factors[place]),
            self.gram.combine(self.rule.weights(norms)),
        )
        machine = machine_for(K, choose_single("auto", problem.loss))
        self.span.add(machine.solve(K, problem, SHARE * self.points[place].tol).alpha)
        self.gram.release(K)
        self.machines[place] += 1

    def _solved(self, place: int) -> Result:
        """The solution by the solver itself."""
        problem, point = self.span.problem.at_cost(self.factors[place]), self.points[place]
        solver, norms = choose_solver("auto", self.rule), self._known_norms(place)
        most: Any = point.max_iter
        found: Result = solver.solve(problem, self.gram, self.rule, point.tol, most, norms=norms)
        self.machines[place] += found.n_iter
        return found

    def _result(self, place: int) -> Result:
        state: Any = self.states[place]
        proof = state.certificate
        row = {"primal": proof.primal, "dual": proof.dual, "gap": proof.gap, "n_passes": self.gram.n_passes}
        history = {name: [value] for name, value in row.items()}
        return Result(state, int(self.machines[place]), True, "tol", history)
