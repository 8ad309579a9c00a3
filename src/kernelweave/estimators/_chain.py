"""Solutions along a chain of neighbouring problems: each begins with what is known from those before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import State
from ..solvers.certificate import certificate
from ..solvers.run import Result
from ._base import Spec
from ._mkl import AnyDictionary, SubProblem, live_regularizer, solve

#: share of the tolerance that weights known already may cost, by what is expected of the norms
KNOWN_SHARE = 0.5

#: most that a norm is expected to change by from one point to the next
MOST_CHANGE = 5.0


class Chain:
    """Solves one problem at point after point, and computes no more than each of them asks for.

    The solution (alpha, d) of a point is feasible at the next one, where only its certificate is new: P and D
    need K_d alpha and alpha' K_m alpha, which are known. Where that closes the gap nothing else is done, as
    where all margins are met and a larger C changes nothing. Otherwise a machine is trained at weights whose
    sum sum_m d_m K_m is known, if their price at the norms n that are expected,

        1/2 sum_m n_m^2 / d_m + 1/2 h(d) - Omega(n),

    is a small part of the tolerance; else at the weights of these norms. Whatever begins, the solver goes on
    until the gap is closed: every point is certified like a fit of its own.

    Parameters
    ----------
    dictionary : Dictionary or LowRankDictionary
    part : SubProblem
    C : float
        The cost it was set up with; the points' own costs replace it.
    guides : sequence of ndarray of shape (M,), optional
        Norms (of all kernels) of a similar problem at the same points.
    """

    def __init__(
        self, dictionary: AnyDictionary, part: SubProblem, C: Any, guides: Sequence[FloatArray] | None = None
    ) -> None:
        self.dictionary, self.part, self.C = dictionary, part, C
        self.guides = None if guides is None else [norms[dictionary.live] for norms in guides]
        self.gram = part.gram(dictionary)
        self.solutions: list[Result] = []
        self.known: tuple[FloatArray, Any] | None = None  # weights, and their sum of the kernels

    def solve(self, points: Sequence[Spec]) -> list[Result]:
        """Solutions at every point, in order."""
        for point in points:
            problem = self.part.problem.at_cost(point.C / self.C)
            rule = live_regularizer(point, self.dictionary).bound_to(self.gram)
            self.solutions.append(self._carried(point, problem, rule) or self._solved(point, problem, rule))
        return self.solutions

    def _carried(self, point: Spec, problem: Problem, rule: Regularizer) -> Result | None:
        """The last solution, if it is one of this problem too."""
        if not (self.solutions and rule.convex and problem.loss.separable):
            return None
        state: State = self.solutions[-1].state
        own = state.coefficients
        norms = None if own is None else self.gram.component_norms(own)
        parts = (state.alpha, state.weights, state.fitted, state.squares, norms)
        proof = certificate(problem, self.gram, rule, *parts)
        if not proof.gap <= point.tol:
            return None
        row = {"primal": proof.primal, "dual": proof.dual, "gap": proof.gap, "n_passes": self.gram.n_passes}
        state = replace(state, certificate=proof, residual=proof.gap)
        return Result(state, 0, True, "tol", {name: [value] for name, value in row.items()})

    def _solved(self, point: Spec, problem: Problem, rule: Regularizer) -> Result:
        start: dict[str, Any] = {}
        norms = self._expected(rule)
        if norms is not None:
            start["norms"] = norms if rule.sparse and rule.convex else _positive(norms)
            if self.known is not None and rule.convex and not rule.ascends:
                scale = self.solutions[-1].state.certificate.scale
                if _excess(rule, norms, self.known[0]) <= KNOWN_SHARE * point.tol * scale:
                    start["known"] = self.known
        if self.solutions:
            start["alpha"] = _moved(self.solutions[-1], problem)
        found = solve(point, self.dictionary, problem, self.gram, **start)
        if found.matrix is not None:
            self.known = found.state.weights, found.matrix
        return replace(found, matrix=None)

    def _expected(self, rule: Regularizer) -> FloatArray | None:
        """Norms at the next point: as they were changing, or as those of the guides do from here."""
        own, k = [_norms(found, rule) for found in self.solutions[-2:]], len(self.solutions)
        if self.guides is not None and self.guides[k].any():
            if not own or not own[-1].any():
                return self.guides[k]
            return own[-1] * _change(self.guides[k - 1], self.guides[k])
        if not own or not own[-1].any():
            return None  # a start near zero would be far from everything else
        return own[-1] if len(own) == 1 else own[-1] * _change(own[0], own[1])


def _norms(found: Result, rule: Regularizer) -> FloatArray:
    proof = found.state.certificate
    return proof.dual_norms if rule.ascends else proof.norms


def _change(before: FloatArray, now: FloatArray) -> FloatArray:
    """By which factor norms changed; 1 where they were zero."""
    factor = np.clip(now / np.maximum(before, 1e-300), 1.0 / MOST_CHANGE, MOST_CHANGE)
    return np.where(before > 0.0, factor, 1.0)


def _positive(norms: FloatArray) -> FloatArray:
    """Zero norms a little above zero, so that every kernel can return."""
    return np.maximum(norms, 1e-3 * float(norms.max(initial=0.0)) or 1.0)


def _excess(rule: Regularizer, norms: FloatArray, weights: FloatArray) -> float:
    """1/2 sum_m n_m^2 / d_m + 1/2 h(d) - Omega(n): what other weights than those of the norms cost."""
    live = norms > 0.0
    if not (weights[live] > 0.0).all():
        return np.inf
    energy = float((norms[live] ** 2 / weights[live]).sum())
    return 0.5 * (energy + rule.price(weights)) - rule.penalty(norms)


def _moved(found: Result, problem: Problem) -> FloatArray:
    return found.state.alpha
