"""Solutions along a chain of neighbouring problems: each begins with what is known from the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import State
from ..solvers.certificate import certificate
from ..solvers.growing import Known
from ..solvers.multiple import choose_solver
from ..solvers.run import Result
from ..solvers.single import machine_gap
from ._base import Spec
from ._mkl import AnyDictionary, SubProblem, live_regularizer
from ._spanned import Spanned

#: share of the tolerance that weights known already may cost, by what is expected of the norms
KNOWN_SHARE = 1.0

#: most that a norm is expected to change by from one point to the next
MOST_CHANGE = 5.0

#: steps from one solved point to the next where those between may be interpolated: the first, the most, and
#: the share of the tolerance that a gap between them has to stay below for one more
FIRST_STRIDE, MOST_STRIDE, WIDER = 2, 4, 0.3


#: sums of the kernels kept to interpolate between, and samples up to which they are
MATRICES, MOST_SAMPLES = 3, 3000

#: share of a bound that a dual variable which is there has at least
NEARLY = 1.0 - 1e-9

#: a multiple of weights that differs from 1 by no more than this is 1
ROUNDING = 1e-12

#: guides that change by no more than this share stay where they are
STILL = 0.1


@dataclass(frozen=True)
class Node:
    """A point whose solution others begin with.

    Attributes
    ----------
    t : float
        Where it is: log C, or where something else varies the number of the point.
    state : State
    norms : ndarray of shape (M,)
        What is thought of its component norms.
    known : Known
        What else its solution leaves to others.
    n_bounded : int
        Dual variables that rise with C: those at a bound. Without any, nothing changes any more.
    """

    t: float
    state: State
    norms: FloatArray
    known: Known
    n_bounded: int


class Guide(NamedTuple):
    """What the solution of a similar problem tells: norms of all kernels, and machines that it took.

    Kernels are known by their names: folds with and without gaps in a view differ by its indicator.
    """

    names: list[str]
    norms: FloatArray
    n_machines: int

    @classmethod
    def of(cls, found: Result, dictionary: AnyDictionary) -> Guide:
        """That of a solution."""
        norms = dictionary.all_weights(found.state.certificate.norms)
        return cls(list(dictionary.names), norms, found.n_iter)

    def on(self, dictionary: AnyDictionary) -> FloatArray:
        """Norms of the kernels of a dictionary that vary; 0 for those that it tells nothing of."""
        norms = self.norms
        if self.names != list(dictionary.names):
            known = dict(zip(self.names, self.norms, strict=True))
            norms = np.array([known.get(name, 0.0) for name in dictionary.names])
        return np.asarray(norms[dictionary.live])


class Chain:
    """Solves one problem at point after point, and computes no more than each of them asks for.

    The solution (alpha, d) of a point is feasible at the next one, where only its certificate is new: P and D
    need K_d alpha and alpha' K_m alpha, which are known. Where that closes the gap nothing else is done, as
    where all margins are met and a larger C changes nothing. Otherwise a machine is trained at weights whose
    sum sum_m d_m K_m is known, if their price at the norms n that are expected,

        1/2 sum_m n_m^2 / d_m + 1/2 h(d) - Omega(n),

    is within the tolerance; else at the weights of these norms.

    Where the loss is smooth so are alpha and d in log C. One point in a few is solved then, and those between
    are interpolated, both by the same polynomial through two or three solved points: their sum of the kernels
    is that of known matrices, and what is left to compute is alpha' K_m alpha, half a pass over the kernels.
    Points of the squared loss are solved together (`Spanned`).

    Whatever begins, the solver goes on until the gap is closed: every point is certified like a fit of its
    own.

    Parameters
    ----------
    dictionary : Dictionary or LowRankDictionary
    part : SubProblem
    C : float
        The cost it was set up with; the points' own costs replace it.
    guides : sequence of Guide, optional
        What is known from a similar problem at the same points.
    """

    def __init__(
        self, dictionary: AnyDictionary, part: SubProblem, C: Any, guides: Sequence[Guide] | None = None
    ) -> None:
        self.dictionary, self.part, self.C = dictionary, part, C
        self.guides = None if guides is None else [guide.on(dictionary) for guide in guides]
        self.machines = [] if guides is None else [guide.n_machines for guide in guides]
        self.gram = part.gram(dictionary)
        self.nodes: list[Node] = []

    def solve(self, points: Sequence[Spec]) -> list[Result]:
        """Solutions at every point, in order."""
        made = {id(point.regularizer): live_regularizer(point, self.dictionary) for point in points}
        bound = {key: rule.bound_to(self.gram) for key, rule in made.items()}
        self.points, self.rules = points, [bound[id(point.regularizer)] for point in points]
        costs = np.array([point.C for point in points], dtype=float)
        self.t = np.log(costs) if len(bound) == 1 else np.arange(len(points), dtype=float)
        self.found: list[Result | None] = [None] * len(points)
        self.smooth = len(bound) == 1 and self._is_smooth()
        if self.smooth and len(points) > 1:
            parts = (self.part.problem, self.gram, self.rules[0])
            if Spanned.serves(*parts, points[0]):
                return Spanned(*parts, points, self.C).solve(self.guides, self.machines)
        place, stride = 0, FIRST_STRIDE if self.smooth else 1
        self._take(0)
        while place < len(points) - 1:
            last, place = place, min(place + stride, len(points) - 1)
            self._take(place)
            share = max((self._take(between) for between in range(last + 1, place)), default=0.0)
            if self.smooth:
                stride += int(share <= WIDER and stride < MOST_STRIDE) - int(
                    share > 1.0 and stride > FIRST_STRIDE
                )
        return [found for found in self.found if found is not None]

    def _is_smooth(self) -> bool:
        """Whether alpha is a smooth function of log C, which rises or falls along the points."""
        loss, steps = self.part.problem.loss, np.diff(self.t)
        kinked = hasattr(loss, "linear_dual") or hasattr(loss, "simplex_dual") or not loss.separable
        one_way = bool((steps > 0.0).all() or (steps < 0.0).all())
        return one_way and self.rules[0].convex and not kinked

    def _take(self, place: int) -> float:
        """Solve a point, unless something known closes its gap; that share of the tolerance, or 2."""
        problem = self.part.problem.at_cost(self.points[place].C / self.C)
        rule, tol = self.rules[place], self.points[place].tol
        nodes = sorted(self.nodes, key=lambda node: abs(node.t - self.t[place]))
        guesses = (
            (self._carried, self._interpolated) if rule.convex and problem.loss.separable and nodes else ()
        )
        for guess in guesses:
            state = guess(place, problem, nodes)
            if state is None:
                continue
            own = state.coefficients
            norms = None if own is None else self.gram.component_norms(own)
            parts = (state.alpha, state.weights, state.fitted, state.squares, norms)
            proof = certificate(problem, self.gram, rule, *parts)
            if proof.gap <= tol:
                state = replace(state, certificate=proof, residual=proof.gap)
                row = {"primal": proof.primal, "dual": proof.dual, "gap": proof.gap}
                history = {name: [value] for name, value in (*row.items(), ("n_passes", self.gram.n_passes))}
                self.found[place] = Result(state, 0, True, "tol", history)
                if guess == self._carried:
                    self.nodes.append(replace(nodes[0], t=self.t[place], state=state))
                return proof.gap / tol
        self.found[place] = self._solved(place, problem, nodes)
        return 2.0

    def _carried(self, place: int, problem: Problem, nodes: list[Node]) -> State | None:
        """The solution of the nearest point, whose regulariser may be another one."""
        state = nodes[0].state
        factor = factor_within(self.rules[place], state.weights)
        if factor is None or (factor != 1.0 and state.coefficients is not None):
            return None
        if factor == 1.0:
            return state
        return replace(state, weights=factor * state.weights, fitted=factor * state.fitted)

    def _interpolated(self, place: int, problem: Problem, nodes: list[Node]) -> State | None:
        """alpha and weights by a polynomial in log C between solved points: the better of two polynomials."""
        best: tuple[float, State] | None = None
        for mixture in self._mixtures(place, nodes):
            mixed = mixture.of(lambda node: node.state.weights)
            factor = factor_within(self.rules[place], mixed)
            if factor is None or nodes[0].state.coefficients is not None:
                continue
            weights = factor * mixed
            alpha = problem.feasible(mixture.of(lambda node: node.state.alpha))
            if mixture.has_matrices:
                fitted = factor * mixture.of(lambda node: node.known.matrix @ alpha)  # noqa: B023
            else:
                fitted = self.gram.dot(weights, alpha)
            gap = machine_gap(problem, alpha, fitted)  # a part of the gap
            if gap <= self.points[place].tol and (best is None or gap < best[0]):
                best = gap, replace(nodes[0].state, weights=weights, alpha=alpha, fitted=fitted)
        return None if best is None else replace(best[1], squares=self.gram.quad(best[1].alpha))

    def _mixtures(self, place: int, nodes: list[Node]) -> list[Mixture]:
        """Between two nodes and, where there is another, three; none outside of them."""
        t = float(self.t[place])
        below, above = ([node for node in nodes if way * (node.t - t) > 0.0][:1] for way in (-1, 1))
        if not (self.smooth and below and above):
            return []
        more = [node for node in nodes if node is not below[0] and node is not above[0]][:1]
        return [Mixture([*below, *above], t), *[Mixture([*below, *above, third], t) for third in more]]

    def _solved(self, place: int, problem: Problem, nodes: list[Node]) -> Result:
        """The solution by the solver, from norms, dual variables and weights that are expected to be near."""
        point, rule, norms = self.points[place], self.rules[place], self._expected(place, nodes)
        start: dict[str, Any] = {"alpha": nodes[0].state.alpha} if nodes else {}
        if norms is not None:
            start["norms"] = norms if rule.sparse and rule.convex else _positive(norms)
        if norms is not None and nodes and rule.convex and rule.priced and not rule.ascends:
            between = [mixture for mixture in self._mixtures(place, nodes)[:1] if mixture.has_matrices]
            known = between[0].known(rule) if between else nodes[0].known
            allowed = known.matrix is not None and factor_within(rule, known.weights) == 1.0
            most = KNOWN_SHARE * point.tol * nodes[0].state.certificate.scale
            near = allowed and _excess(rule, norms, known.weights) <= most
            start["known"] = known if near else known._replace(matrix=None)
        solver = choose_solver(point.solver, rule)
        solver = solver if isinstance(point.solver, str) else clone(solver)
        limits: Any = point.tol, point.max_iter
        found: Result = solver.solve(problem, self.gram, rule, *limits, **start)
        known, proof = solver.learnt(found, problem, self.gram, rule), found.state.certificate
        thought = proof.dual_norms if rule.ascends else solver.refined_norms(found, known)
        room = MATRICES - 1 if self.smooth and self.gram.n_samples <= MOST_SAMPLES else 0
        first = len(self.nodes) - room
        self.nodes = [node if k >= first else without_matrix(node) for k, node in enumerate(self.nodes)]
        self.nodes.append(
            Node(float(self.t[place]), found.state, thought, known, _n_bounded(problem, found.state.alpha))
        )
        return replace(found, matrix=None)

    def _expected(self, place: int, nodes: list[Node]) -> FloatArray | None:
        """Norms at a point: as they change between the nearest nodes, or as those of the guides do."""
        guide = None if self.guides is None or self.rules[place].ascends else self.guides[place]
        guide = guide if guide is not None and guide.any() else None
        if not nodes or not nodes[0].norms.any():  # a start near zero would be far from everything else
            return guide
        first, norms = nodes[0], nodes[0].norms
        if guide is not None and self.guides is not None:
            before = self.guides[int(np.abs(self.t - first.t).argmin())]
            if self.rules[place].sparse and not np.allclose(before, guide, rtol=STILL):
                return guide  # which kernels have weight changes from point to point
            return norms * _change(before, guide)
        apart = [node for node in nodes[1:] if node.t != first.t][:1]
        if not apart:
            return norms
        power = (self.t[place] - first.t) / (first.t - apart[0].t)
        fewer = first.n_bounded / apart[0].n_bounded if apart[0].n_bounded else 1.0
        return norms * _change(apart[0].norms, norms, power * min(fewer, 1.0))


class Mixture:
    """What is between solved points: the polynomial in t through what they have.

    Parameters
    ----------
    nodes : list of Node
        Of different t.
    t : float
    """

    def __init__(self, nodes: list[Node], t: float) -> None:
        self.nodes = nodes
        self.shares = [
            float(np.prod([(t - other.t) / (node.t - other.t) for other in nodes if other is not node]))
            for node in nodes
        ]

    @property
    def has_matrices(self) -> bool:
        """Whether every node has its sum of the kernels, as an array."""
        return all(isinstance(node.known.matrix, np.ndarray) for node in self.nodes)

    def of(self, read: Callable[[Node], FloatArray], factor: float = 1.0) -> FloatArray:
        """`factor` times the polynomial through what is read from each node."""
        parts = zip(self.shares, self.nodes, strict=True)
        return np.asarray(sum((factor * share) * read(node) for share, node in parts))

    def known(self, rule: Regularizer) -> Known:
        """Weights between those of the nodes that the rule allows, their sum, and norms near their own."""
        first = self.nodes[0].known
        factor = factor_within(rule, self.of(attrgetter("known.weights")))
        if factor is None:
            return first
        norms = np.exp(self.of(lambda node: np.log(np.maximum(node.known.norms, 1e-300))))
        weights, matrix = (self.of(attrgetter(f"known.{name}"), factor) for name in ("weights", "matrix"))
        return Known(norms, weights, matrix, first.newton)


def factor_within(rule: Regularizer, weights: FloatArray) -> float | None:
    """The c for which the rule allows c d, d being nearly weights that it allows; None if none is known.

    Rules without a price of weights allow all that are not negative.
    """
    if (weights < 0.0).any():
        return None
    if not (rule.convex and rule.priced):
        return 1.0
    factor = rule.multiple(weights)
    if factor is None:
        return 1.0 if np.isfinite(rule.price(weights)) else None
    return 1.0 if abs(factor - 1.0) <= ROUNDING else factor


def without_matrix(node: Node) -> Node:
    """A node that leaves no sum of the kernels to others."""
    return replace(node, known=node.known._replace(matrix=None))


def _change(before: FloatArray, now: FloatArray, power: float = 1.0) -> FloatArray:
    """By which factor norms changed, to a power; 1 where they were or are zero."""
    both = (before > 0.0) & (now > 0.0)
    log = power * (np.log(np.where(both, now, 1.0)) - np.log(np.where(both, before, 1.0)))
    return np.exp(np.clip(log, -np.log(MOST_CHANGE), np.log(MOST_CHANGE)))


def _n_bounded(problem: Problem, alpha: FloatArray) -> int:
    """How many dual variables are at a bound other than zero; none where they have no bounds."""
    if not problem.loss.separable or problem.loss.coupled:
        return 0
    lower, upper = problem.box()
    above, below = (alpha >= NEARLY * upper) & (upper > 0.0), (alpha <= NEARLY * lower) & (lower < 0.0)
    return int(np.count_nonzero(above | below))


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
